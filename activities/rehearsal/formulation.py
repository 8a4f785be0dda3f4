"""How the rehearsal model carries out the tactical todos of finding requirements."""

from __future__ import annotations

import json
import re
from collections.abc import Generator
from typing import Any

from activities.rehearsal.candidates import ADDED, Candidate, parse_lines
from activities.rehearsal.extraction import (
    AGAIN,
    LIST,
    NOT_RELEVANT,
    REGISTER,
    RESULT,
    report,
)
from activities.rehearsal.plans import counted
from activities.rehearsal.reading import MAX_PAGES, read_all, read_page
from activities.rehearsal.replay import Call, Steps, insist, once
from activities.rehearsal.seen import failed

_BATCH = re.compile(r"^Formulate \S+ to \S+ of `([^`]+)` \(lines (\d+)-(\d+) of")
_NAMED = re.compile(r"`([^`]+)`")
_CITATION = re.compile(r"CIT-\d+")
_SCORE = re.compile(r"\b(?:0?\.\d+|[01]\.\d+)\b")
DOUBTFUL = 0.6
PAIR = 2
LINES = 60
"""Lines of one read; a page of long candidates still fits into one tool result."""


def procedure(text: str) -> Steps | None:
    """The procedure for a tactical todo, or None when it is not about requirements."""
    named = _NAMED.findall(text)
    if found := _BATCH.match(text):
        lines = (int(found.group(2)), int(found.group(3)))
        return formulate(found.group(1), *lines, again=text.endswith(AGAIN))
    if text.startswith("Extract the text of") and named:
        return extract(named[0])
    if text.startswith("Identify candidates in") and named:
        return identify(named[0])
    if text.startswith(f"Write `{RESULT}`"):
        return collect()
    if text.startswith("Write the report `output/summary.md`"):
        return report()
    if text.startswith("Note in `notes/open_questions.md`"):
        return open_questions()
    return None


def extract(document: str) -> Steps:
    result = yield from once("extract_document_text", path=document)
    mentions = yield from once("extract_entity_mentions", path=document)
    lines = [f"# {document}", "", *_quoted(result, 6)]
    if not failed(mentions):
        lines += ["", "Terms:", "", *_quoted(mentions, 12)]
    path = f"notes/{re.sub(r'[^a-z0-9]+', '_', document.lower())}.md"
    yield from insist("write_file", path=path, content="\n".join(lines) + "\n")
    if failed(result):
        return f"{document} could not be read: {result[:200]}"
    return f"Read {document}; its terms are in {path}."


def identify(document: str) -> Steps:
    result = yield from insist("identify_requirement_candidates", path=document)
    return result.partition("\n")[0]


def formulate(document: str, first: int, last: int, *, again: bool = False) -> Steps:
    """Cite and write down a few candidates, two at a time."""
    page = yield from read_page(LIST, first, last - first + 1)
    if not page.lines:
        page = yield from read_page(LIST, first, last - first + 1)
    candidates = parse_lines(line for _, line in page.lines)
    if not candidates:
        return f"Lines {first}-{last} of {LIST} hold no candidates."
    if again:
        register = yield from read_all(REGISTER, LINES)
        candidates = [item for item in candidates if not _registered(register, document, item)]
        if not candidates:
            return "All of these were decided before the phase was done again."
    where = str(candidates[0].page)
    yield from once("extract_document_text", path=document, pages=where)
    doubtful = [item for item in candidates if item.confidence < DOUBTFUL][:3]
    verdicts = yield [("assess_relevance", {"text": item.text}) for item in doubtful]
    dropped = {item.id for item, said in zip(doubtful, verdicts, strict=True) if _irrelevant(said)}
    entries = [f"left out · {name} · {document} · {NOT_RELEVANT}" for name in sorted(dropped)]
    accepted = [item for item in candidates if item.id not in dropped]
    for at in range(0, len(accepted), PAIR):
        entries += yield from _add_pair(document, accepted[at : at + PAIR])
    yield from insist("append_file", path=REGISTER, content="\n".join(entries) + "\n")
    added = sum(entry.startswith("REQ") for entry in entries)
    return f"{counted(added, 'requirement')} from {counted(len(candidates), 'candidate')}."


def collect() -> Steps:
    """`output/requirements.json`, page by page from the register."""
    yield from insist("write_file", path=RESULT, content="[")
    offset, total = 1, 0
    for _ in range(MAX_PAGES):
        page = yield from read_page(REGISTER, offset, LINES)
        rows = [line.split(" · ", 6) for _, line in page.lines if line.startswith("REQ-")]
        keys = ("id", "candidate", "type", "citation", "file", "document", "text")
        entries = [dict(zip(keys, row, strict=True)) for row in rows if len(row) == len(keys)]
        if entries:
            yield from insist("append_file", path=RESULT, content=_rows(entries, total))
        total += len(entries)
        if not page.more:
            break
        offset = page.after
    yield from insist("append_file", path=RESULT, content="\n]\n")
    return (
        f"{counted(total, 'requirement')} in {RESULT}."
        if total
        else "There are no requirements to list."
    )


def open_questions() -> Steps:
    register = yield from read_all(REGISTER, LINES)
    left = [f"- {line}" for line in register if line.startswith("left out")]
    lines = ["# Open questions", "", *(left or ["Every candidate found was formulated."]), ""]
    yield from insist("write_file", path="notes/open_questions.md", content="\n".join(lines))
    return f"Left out: {counted(len(left), 'candidate')}."


def _rows(entries: list[dict[str, Any]], before: int) -> str:
    """Entries of a JSON list that has `before` of them already."""
    rows = ",\n".join(json.dumps(entry, ensure_ascii=False) for entry in entries)
    return (",\n" if before else "\n") + rows


def _add_pair(
    document: str, candidates: list[Candidate]
) -> Generator[list[Call], list[str], list[str]]:
    """Cite, then add; returns what goes into the register."""
    citations = yield from _cite(document, candidates)
    cited = [item for item in candidates if item.id in citations]
    entries = [
        f"left out · {item.id} · {document} · the quote was not found on page {item.page}"
        for item in candidates
        if item.id not in citations
    ]
    if not cited:
        return entries
    calls = [_addition(document, item, citations[item.id]) for item in cited]
    results = yield calls
    again = [n for n, result in enumerate(results) if failed(result)]
    if again:
        repeated = yield [calls[n] for n in again]
        for n, result in zip(again, repeated, strict=True):
            results[n] = result
    for item, result in zip(cited, results, strict=True):
        if found := ADDED.search(result):
            name, folder = found.groups()
            row = [name, item.id, item.type, citations[item.id], f"{folder}/final.json"]
            entries.append(" · ".join([*row, document, item.text]))
        else:
            entries.append(f"left out · {item.id} · {document} · {result[:200].splitlines()[0]}")
    return entries


def _cite(
    document: str, candidates: list[Candidate]
) -> Generator[list[Call], list[str], dict[str, str]]:
    """Citations by candidate; a quote that is refused is tried once more, shorter."""
    citations: dict[str, str] = {}
    for attempt in (0, -1):
        calls: list[Call] = []
        names = []
        for item in candidates:
            if item.id not in citations:
                arguments = {"path": document, "page": item.page, "quote": item.quotes[attempt]}
                calls.append(("cite_document", arguments))
                names.append(item.id)
        if not calls:
            break
        results = yield calls
        for name, result in zip(names, results, strict=True):
            if not failed(result) and (found := _CITATION.search(result)):
                citations[name] = found.group(0)
    return citations


def _addition(document: str, item: Candidate, citation: str) -> Call:
    reasoning = f"The passage on page {item.page} of {document} states this {item.kind}."
    return (
        "add_requirement",
        {
            "text": item.text,
            "type": item.type,
            "citations": [citation],
            "reasoning": reasoning,
            "confidence": item.confidence,
            "candidate": item.id,
        },
    )


def _registered(register: list[str], document: str, item: Candidate) -> bool:
    return any(f" · {item.id} · " in line and f" · {document} · " in line for line in register)


def _irrelevant(verdict: str) -> bool:
    if failed(verdict):
        return False
    if re.search(r"not relevant|irrelevant|relevant: (?:no|false)", verdict, re.IGNORECASE):
        return True
    score = _SCORE.search(verdict)
    return score is not None and float(score.group(0)) < 0.4


def _quoted(result: str, count: int) -> list[str]:
    lines = [line.strip() for line in result.splitlines() if line.strip()]
    return [f"> {line[:200]}" for line in lines[:count]]
