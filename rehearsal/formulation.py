"""How the rehearsal model carries out the tactical todos of finding requirements."""

from __future__ import annotations

import re
from collections.abc import Generator

from rehearsal.candidates import Candidate, parse_lines
from rehearsal.collection import check, collect
from rehearsal.extraction import AGAIN, COLLECT, LEFT, LIST, NOT_RELEVANT, RESULT, UNCOVERED, report
from rehearsal.plans import counted
from rehearsal.replay import Call, Steps, closing, insist
from rehearsal.request_view import failed
from rehearsal.tool_answers import read_all, read_page

_BATCH = re.compile(r"^Formulate the candidates in lines (\d+)-(\d+) of `[^`]+` from `([^`]+)`")
_NAMED = re.compile(r"`([^`]+)`")
DOUBTFUL = 0.6
WEAK = "weak wording, which mostly asks for nothing"
LINES = 60
"""Lines of one read; a page of long candidates still fits into one tool result."""


def procedure(text: str) -> Steps | None:
    """The procedure for a tactical todo, or None when it is not about requirements."""
    named = _NAMED.findall(text)
    if found := _BATCH.match(text):
        return formulate(found[3], int(found[1]), int(found[2]), again=text.endswith(AGAIN))
    if text.startswith("Extract the text of") and named:
        return extract(named[0])
    if text.startswith("Identify candidates in") and named:
        return identify(named[0])
    if text.startswith(f"Write `{RESULT}`"):
        return collect(COLLECT)
    if text.startswith(f"Check `{RESULT}`"):
        return settle()
    if text.startswith("Write the report `output/summary.md`"):
        return report()
    if text.startswith("Note in `notes/open_questions.md`"):
        return open_questions()
    return None


def extract(document: str) -> Steps:
    result, mentions = yield [
        ("extract_document_text", {"path": document}),
        ("extract_entity_mentions", {"path": document}),
    ]
    lines = [f"# {document}", "", *_quoted(result, 6)]
    if not failed(mentions):
        lines += ["", "Terms:", "", *_quoted(mentions, 12)]
    path = f"notes/{re.sub(r'[^a-z0-9]+', '_', document.lower())}.md"
    note = f"Read {document}; its terms are in {path}."
    if failed(result):
        note = f"{document} could not be read: {result[:200]}"
    return (yield from closing(note, "write_file", path=path, content="\n".join(lines) + "\n"))


def identify(document: str) -> Steps:
    result = yield from insist("identify_requirement_candidates", path=document)
    return result.partition("\n")[0]


def formulate(document: str, first: int, last: int, *, again: bool = False) -> Steps:
    """Cite and write down a few candidates."""
    page = yield from read_page(LIST, first, last - first + 1)
    candidates = parse_lines(line for _, line in page.lines)
    if not candidates:
        return f"Lines {first}-{last} of {LIST} hold no candidates."
    if again:
        candidates = yield from _undecided(document, candidates)
        if not candidates:
            return "All of these were decided before the phase was done again."
    doubtful = [item for item in candidates if item.confidence < DOUBTFUL]
    verdicts: list[str] = []
    if doubtful:
        verdicts = yield [("assess_relevance", {"text": item.text}) for item in doubtful]
    dropped = [
        item.id for item, said in zip(doubtful, verdicts, strict=True) if NOT_RELEVANT in said
    ]
    left = [f"{name} · {document} · {NOT_RELEVANT}" for name in sorted(dropped)]
    accepted = [item for item in candidates if item.id not in dropped]
    left += yield from _add(document, accepted)
    added = len(candidates) - len(left)
    note = f"{counted(added, 'requirement')} from {counted(len(candidates), 'candidate')}."
    if not left:
        return note
    return (yield from closing(note, "append_file", path=LEFT, content="\n".join(left) + "\n"))


def settle() -> Steps:
    """Set aside what is cited by no requirement, by rules with reasons; check what is left."""
    told = yield from insist(COLLECT)
    if not told.startswith("Error") and "Not covered: " in told:
        listed = yield from read_all(UNCOVERED, LINES)
        yield _rules(parse_lines(listed), (yield from read_all(LEFT, LINES)))
    return (yield from check(COLLECT))


def _rules(uncovered: list[Candidate], left: list[str]) -> list[Call]:
    """A call for each document and reason."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for item in uncovered:
        begin = f"{item.id} · {item.document} · "
        why = next((line.removeprefix(begin) for line in left if line.startswith(begin)), WEAK)
        reasons.setdefault((item.document, why), []).append(item.id)
    return [
        ("set_sentences_aside", {"path": path, "reason": f"By rule: {why}", "ids": ids})
        for (path, why), ids in reasons.items()
    ]


def open_questions() -> Steps:
    left = [f"- {line}" for line in (yield from read_all(LEFT, LINES))]
    lines = ["# Open questions", "", *(left or ["Every candidate found was formulated."]), ""]
    note, path = f"Left out: {counted(len(left), 'candidate')}.", "notes/open_questions.md"
    return (yield from closing(note, "write_file", path=path, content="\n".join(lines)))


def _add(document: str, candidates: list[Candidate]) -> Generator[list[Call], list[str], list[str]]:
    """Add with the quote; one that is refused is tried once more, shorter.

    Returns a line on each that is left out.
    """
    results = yield [_addition(document, item, item.quotes) for item in candidates]
    again = [item for item, said in zip(candidates, results, strict=True) if failed(said)]
    if not again:
        return []
    results = yield [_addition(document, item, [(item.page, item.part)]) for item in again]
    return [
        f"{item.id} · {document} · {said[:200].splitlines()[0]}"
        for item, said in zip(again, results, strict=True)
        if failed(said)
    ]


def _addition(document: str, item: Candidate, quotes: list[tuple[int, str]]) -> Call:
    reasoning = f"The passage on page {item.page} of {document} says {item.force}."
    return (
        "add_requirement",
        {
            "text": item.statement,
            "type": item.type,
            "force": item.force,
            "quotes": [{"path": document, "page": page, "quote": quote} for page, quote in quotes],
            "reasoning": reasoning,
            "confidence": item.confidence,
            "candidate": item.id,
        },
    )


def _undecided(
    document: str, candidates: list[Candidate]
) -> Generator[list[Call], list[str], list[Candidate]]:
    """Those that are neither a requirement nor left out."""
    left = yield from read_all(LEFT, LINES)
    rest = [item for item in candidates if not any(
        line.startswith(f"{item.id} · {document} · ") for line in left
    )]  # fmt: skip
    found = yield [
        ("search_files", {"query": item.statement, "path": "requirements"}) for item in rest
    ]
    return [item for item, hits in zip(rest, found, strict=True) if "requirements/req_" not in hits]


def _quoted(result: str, count: int) -> list[str]:
    lines = [line.strip() for line in result.splitlines() if line.strip()]
    return [f"> {line[:200]}" for line in lines[:count]]
