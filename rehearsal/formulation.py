"""How the rehearsal model carries out the tactical todos of an extraction of requirements."""

import re
from collections.abc import Generator

from protocol.short_text import count_noun
from rehearsal.candidate_lines import (
    CandidateLine,
    parse_candidate_lines,
    parse_number_lines,
    parse_sample_lines,
)
from rehearsal.extraction import (
    AGAIN,
    COLLECT,
    LATER,
    LEFT_OUT,
    LIST,
    RESULT,
    UNCOVERED,
    Section,
    read_sections_for_extraction,
    write_extraction_report,
)
from rehearsal.procedure_replay import (
    Call,
    Steps,
    call_tool_with_retry,
    check_collected_results,
    close_procedure_todo,
    collect_rehearsed_results,
    write_and_close,
)
from rehearsal.rehearsal_plan import RehearsalPlan, RehearsalPlanPhase
from rehearsal.request_view import is_error_result
from rehearsal.tool_answers import read_file_from_tool_answers, read_page_from_tool_answer

BATCH = 24
"""Candidates of one todo: each is one call of a reply, and their lines fit into one result."""
BATCHES_PER_PHASE = 16

_BATCH_TODO = re.compile(
    r"^Formulate the candidates in lines (\d+)-(\d+) of `[^`]+` from `([^`]+)`"
)
_NAMED = re.compile(r"`([^`]+)`")
DOUBTFUL = 0.6
REFUSED = "By rule: what it says could not be cited"
NO_WORD = "by rule: no word or form of obligation"
BY_FORM = "by rule: it binds by its words or form"
HITS = "Cite the requirements found"
MAX_SAMPLES = 12
"""Most samples judged one after the other."""
WEAK = "weak wording, which mostly asks for nothing"
LINES = 60
"""Lines per read: a page of long candidates still fits into one tool result."""


def choose_formulation_procedure(text: str) -> Steps | None:
    """Return the procedure for a tactical todo; None if it is not about requirements."""
    named = _NAMED.findall(text)
    if batch := _BATCH_TODO.match(text):
        return formulate_candidates(
            batch[3], int(batch[1]), int(batch[2]), again=text.endswith(AGAIN)
        )
    if text.startswith("Extract the text of") and named:
        return extract_text_for_formulation(named[0])
    if text.startswith("Identify candidates in") and named:
        return identify_for_formulation(named[0])
    if text.startswith(f"Write `{RESULT}`"):
        return collect_rehearsed_results(COLLECT)
    if text.startswith(f"Check `{RESULT}`"):
        return set_aside_uncited_sentences()
    if text.startswith("Write the report `output/summary.md`"):
        return write_extraction_report()
    if text.startswith("Note in `notes/open_questions.md`"):
        return note_unformulated_candidates()
    return None


def extract_text_for_formulation(document: str) -> Steps:
    result, mentions = yield [
        ("extract_document_text", {"path": document}),
        ("extract_entity_mentions", {"path": document}),
    ]
    lines = [f"# {document}", "", *_formulation_quote_lines(result, 6)]
    if not is_error_result(mentions):
        lines += ["", "Terms:", "", *_formulation_quote_lines(mentions, 12)]
    path = f"notes/{re.sub(r'[^a-z0-9]+', '_', document.lower())}.md"
    note = f"Read {document}; its terms are in {path}."
    if is_error_result(result):
        note = f"{document} could not be read: {result[:200]}"
    return (yield from write_and_close(note, path, "\n".join(lines) + "\n"))


def identify_for_formulation(document: str) -> Steps:
    result = yield from call_tool_with_retry("identify_requirement_candidates", path=document)
    return result.partition("\n")[0]


def formulate_candidates(document: str, first: int, last: int, *, again: bool = False) -> Steps:
    """Turn a few candidates into requirements with citations, or leave them out with a reason."""
    page = yield from read_page_from_tool_answer(LIST, first, last - first + 1)
    candidates = parse_candidate_lines(line for _, line in page.lines)
    if not candidates:
        return f"Lines {first}-{last} of {LIST} hold no candidates."
    if again:
        candidates = yield from _candidates_to_formulate(document, candidates)
        if not candidates:
            return "All of these were decided before the phase was done again."
    left_out = yield from _add_quoted_requirements(document, candidates)
    added = len(candidates) - len(left_out)
    note = f"{count_noun(added, 'requirement')} from {count_noun(len(candidates), 'candidate')}."
    if not left_out:
        return note
    return (
        yield from close_procedure_todo(
            note, "append_file", path=LEFT_OUT, content="\n".join(left_out) + "\n"
        )
    )


def set_aside_uncited_sentences() -> Steps:
    """Cite numbers that nothing cites, set sentences aside with reasons, and judge the sample."""
    collected = yield from call_tool_with_retry(COLLECT)
    if not collected.startswith("Error") and "Not covered: " in collected:
        listed = yield from read_file_from_tool_answers(UNCOVERED, LINES)
        left_out = yield from read_file_from_tool_answers(LEFT_OUT, LINES)
        numbers = parse_number_lines(listed)
        calls = [_numbered_requirement_call(*each) for each in numbers]
        calls += _formulation_set_aside_calls(parse_candidate_lines(listed), left_out)
        if calls:
            answers = yield calls
            refused = [
                ("set_sentences_aside", {"path": path, "reason": REFUSED, "ids": [number]})
                for (path, number, _), answer in zip(numbers, answers, strict=False)
                if is_error_result(answer)
            ]
            if refused:
                yield refused
        collected = yield from call_tool_with_retry(COLLECT)
    for _ in range(MAX_SAMPLES):
        if samples := parse_sample_lines(collected.splitlines()):
            answers = yield [_sample_call(path, marks) for path, marks in samples.items()]
            collected = "\n".join(answers)
        if HITS not in collected:
            if not samples:
                break
            continue
        yield from call_tool_with_retry(COLLECT)
        shown = parse_candidate_lines((yield from read_file_from_tool_answers(UNCOVERED, LINES)))
        answers = yield [
            _formulated_requirement_call(item.document, item, []) for item in shown[:BATCH]
        ]
        if refused := [
            ("set_sentences_aside", {"path": item.document, "reason": REFUSED, "ids": [item.id]})
            for item, answer in zip(shown, answers, strict=False)
            if is_error_result(answer)
        ]:
            yield refused
        collected = yield from call_tool_with_retry(COLLECT)
    return (yield from check_collected_results(COLLECT))


def _sample_call(path: str, binding: dict[str, bool]) -> Call:
    """Return the call that judges by word and form alone."""
    marks = [
        {"id": id, "is_requirement": binds, "reason": BY_FORM if binds else NO_WORD}
        for id, binds in binding.items()
    ]
    return ("judge_sample", {"path": path, "marks": marks})


def _numbered_requirement_call(document: str, number: str, words: str) -> Call:
    return (
        "add_requirement",
        {
            "text": f"{number}: {words}"[:4000],
            "type": "functional",
            "candidate": number,
            "document": document,
            "reasoning": f"{document} numbers it as {number}.",
            "confidence": DOUBTFUL,
        },
    )


def _formulation_set_aside_calls(uncovered: list[CandidateLine], left_out: list[str]) -> list[Call]:
    """Return one call for each document and reason."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for item in uncovered:
        begin = f"{item.id} · {item.document} · "
        why = next((line.removeprefix(begin) for line in left_out if line.startswith(begin)), WEAK)
        reasons.setdefault((item.document, why), []).append(item.id)
    return [
        ("set_sentences_aside", {"path": path, "reason": f"By rule: {why}", "ids": ids})
        for (path, why), ids in reasons.items()
    ]


def note_unformulated_candidates() -> Steps:
    left_out = [f"- {line}" for line in (yield from read_file_from_tool_answers(LEFT_OUT, LINES))]
    lines = ["# Open questions", "", *(left_out or ["Every candidate found was formulated."]), ""]
    note, path = f"Left out: {count_noun(len(left_out), 'candidate')}.", "notes/open_questions.md"
    return (yield from write_and_close(note, path, "\n".join(lines)))


def _add_quoted_requirements(
    document: str, candidates: list[CandidateLine]
) -> Generator[list[Call], list[str], list[str]]:
    """Add requirements with their quotes; retry a refused one once with a shorter quote.

    Returns one line per omitted candidate.
    """
    results = yield [_formulated_requirement_call(document, item, []) for item in candidates]
    again = [
        item for item, answer in zip(candidates, results, strict=True) if is_error_result(answer)
    ]
    if not again:
        return []
    results = yield [
        _formulated_requirement_call(document, item, [(item.page, item.short_part)])
        for item in again
    ]
    return [
        f"{item.id} · {document} · {answer[:200].splitlines()[0]}"
        for item, answer in zip(again, results, strict=True)
        if is_error_result(answer)
    ]


def _formulated_requirement_call(
    document: str, item: CandidateLine, quotes: list[tuple[int, str]]
) -> Call:
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
            "document": document,
        },
    )


def _candidates_to_formulate(
    document: str, candidates: list[CandidateLine]
) -> Generator[list[Call], list[str], list[CandidateLine]]:
    """Return the candidates that are neither requirements nor left out."""
    left_out = yield from read_file_from_tool_answers(LEFT_OUT, LINES)
    rest = [item for item in candidates if not any(
        line.startswith(f"{item.id} · {document} · ") for line in left_out
    )]  # fmt: skip
    searches = yield [
        ("search_files", {"query": item.statement, "path": "requirements"}) for item in rest
    ]
    return [
        item for item, hits in zip(rest, searches, strict=True) if "requirements/req_" not in hits
    ]


def _formulation_quote_lines(result: str, count: int) -> list[str]:
    lines = [line.strip() for line in result.splitlines() if line.strip()]
    return [f"> {line[:200]}" for line in lines[:count]]


def divide_formulation(plan: RehearsalPlan) -> Generator[list[Call], list[str], bool]:
    """Divide the formulating phase into batches of the identified candidates."""
    sections = yield from read_sections_for_extraction()
    place = next(n for n, phase in enumerate(plan.phases) if phase.steps == [LATER])
    steps = formulation_todos(sections)
    count = -(-len(steps) // BATCHES_PER_PHASE)
    share = -(-len(steps) // count) if count else 0
    plan.phases[place : place + 1] = [
        RehearsalPlanPhase(
            f"Formulate requirements ({number + 1} of {count})" if count > 1 else
            "Formulate requirements",
            "Each candidate is cited and becomes a requirement, or is left out with a reason.",
            [
                *steps[number * share : (number + 1) * share],
                f"Note in `notes/formulation_{number + 1}.md` what was decided",
            ],
        )
        for number in range(count)
    ]  # fmt: skip
    return True


def formulation_todos(sections: list[Section]) -> list[str]:
    """Return one todo per `BATCH` candidates of a document, by their lines in the list."""
    return [
        f"Formulate the candidates in lines {start}-{min(start + BATCH - 1, last)} of `{LIST}` "
        f"from `{document}`"
        for document, first, last in sections
        for start in range(first, last + 1, BATCH)
    ]
