"""How the rehearsal model plans an extraction of requirements and reports on it."""

import re
from collections.abc import Generator

from protocol.short_text import count_noun
from rehearsal import tool_answers
from rehearsal.procedure_replay import (
    Call,
    Steps,
    call_procedure_tool,
    call_tool_with_retry,
    interleave_procedures,
    write_and_close,
)
from rehearsal.rehearsal_plan import RehearsalPlan, RehearsalPlanPhase
from rehearsal.request_view import RequestView
from rehearsal.requirement_validation import is_validation_job

LIST = "candidates/candidates.md"
LEFT_OUT = "notes/left_out.md"
"""One line per candidate that became no requirement: id, document, reason."""
UNCOVERED = "candidates/uncovered.md"
RESULT = "output/requirements.json"
COLLECT = "collect_requirements"
"""The tool that writes the result."""
PLACES = [
    f"- `{LIST}`: what may be a requirement, by document",
    f"- `requirements/`: the requirements; `{LEFT_OUT}`: candidates that became none, and why",
]
AGAIN = " (again: what was decided stays)"
"""Suffix of the todos of a repeated phase."""
NOT_RELEVANT = "not relevant"
LATER = "The batches of candidates follow when they have been counted"
_TYPE = re.compile(r"([a-z]+) (\d[\d,]*\b)")
_COVERED = re.compile(r"(?:Not c|C)overed: ")
_HEADING = re.compile(rf"^{re.escape(LIST)}:(\d+): (###? .*)$", re.MULTILINE)
Section = tuple[str, int, int]
"""A document, with the first and last line of its candidates in the list."""
DOCUMENTS_PER_PHASE = 8


def plan_extraction_job(documents: list[str]) -> RehearsalPlan:
    """Plan to identify, formulate and output; formulating is divided when candidates are known."""
    groups = [
        documents[start : start + DOCUMENTS_PER_PHASE]
        for start in range(0, len(documents), DOCUMENTS_PER_PHASE)
    ] or [[]]
    phases = []
    for number, group in enumerate(groups, 1):
        steps = [
            f"{verb} `{path}`"
            for path in group
            for verb in ("Extract the text of", "Identify candidates in")
        ]
        if number == len(groups):
            steps += [
                f"Check `{LIST}` for gaps and doubles",
                "Note in `notes/identification.md` how the candidates were found",
            ]
        name = "Identify candidates" + (f" ({number})" if len(groups) > 1 else "")
        phases.append(
            RehearsalPlanPhase(name, "Every passage that may bind somebody is listed.", steps)
        )
    phases.append(
        RehearsalPlanPhase(
            "Formulate requirements", "Each candidate is cited and decided.", [LATER]
        )
    )
    phases.append(
        RehearsalPlanPhase(
            "Output",
            "The requirements are in one file, with a summary.",
            [
                f"Write `{RESULT}` with `{COLLECT}`",
                f"Check `{RESULT}` for what is broken or missing",
                "Note in `notes/open_questions.md` which candidates were left out and why",
                "Note in `notes/method.md` how the requirements were found",
                "Write the report `output/summary.md`",
            ],
        )
    )
    head = (
        "# Plan\n\n"
        f"Find every requirement in {count_noun(len(documents), 'document')} "
        "and tie each to the page it comes from.\n\n"
        "Two approaches were weighed: document by document to the end, and stage by stage over all "
        "documents.\nThe second is chosen: what is found twice shows before it is formulated twice."
    )
    return RehearsalPlan(head, phases)


def may_extraction_grow(plan: RehearsalPlan) -> bool:
    """Return whether the formulating phase is next and not divided yet."""
    return plan.open_phase is not None and plan.open_phase.steps == [LATER]


def write_extraction_report() -> Steps:
    """Write `output/summary.md` of an extraction."""
    collected, dropped, paths = yield from interleave_procedures(
        call_tool_with_retry(COLLECT),
        tool_answers.read_file_from_tool_answers(LEFT_OUT, limit=60),
        tool_answers.list_paths_from_tool_answer("documents"),
    )
    left_out = [f"- {line[:300]}" for line in dropped]
    documents = list(tool_answers.documents_in_tool_answer(paths))
    types = _TYPE.findall(collected.partition("\nBy type: ")[2].partition("\n")[0])
    total = sum(int(count.replace(",", "")) for _, count in types)
    sources = count_noun(len(documents), "document")
    decided = [line for line in left_out if line.endswith(NOT_RELEVANT)]
    open_ = [line for line in left_out if line not in decided]
    decided += [f"- {line}" for line in collected.splitlines() if line.startswith("Set aside ")]
    open_ += [
        f"- {line}" for line in collected.splitlines() if line.startswith("Nothing is complete of ")
    ]
    covered = next((line for line in collected.splitlines() if _COVERED.match(line)), "")
    finished = (
        f"{total} {'requirement was' if total == 1 else 'requirements were'} found in {sources}, "
        f"each with a citation. {covered}"
        if total
        else f"No requirements were found in {sources}. {covered}"
    )
    counts = [f"- {name}: {count}" for name, count in types]
    lines = ["# Summary", "", "## What was done", "", finished, "", "## Sources", ""]
    lines += [*(f"- `{path}`" for path in documents), "", "## Requirements by type", ""]
    lines += [*(counts or ["- none"]), "", "## Left out", "", *(decided or ["Nothing."])]
    lines += ["", "## Left open", "", *(open_ or ["Nothing."]), ""]
    return (yield from write_and_close(finished, "output/summary.md", "\n".join(lines)))


def read_sections_for_extraction() -> Generator[list[Call], list[str], list[Section]]:
    """Return a section of the list for each document's candidates, without weak ones."""
    page, search_result = yield from interleave_procedures(
        tool_answers.read_page_from_tool_answer(LIST, 1, 1),
        call_procedure_tool("search_files", query="^###? ", path=LIST, mode="regex"),
    )
    headings = [(int(number), line) for number, line in _HEADING.findall(search_result)]
    ends = [number - 1 for number, _ in headings[1:]] + [page.total]
    sections = []
    for (number, line), end in zip(headings, ends, strict=True):
        # A blank line follows the heading, and another precedes the next heading.
        first, last = number + 2, end if end == page.total else end - 1
        if line.startswith("## ") and last >= first:
            sections.append((line.removeprefix("## ").strip(), first, last))
    return sections


def is_extraction_job(view: RequestView) -> bool:
    """Return whether the job is to find requirements."""
    if is_validation_job(view):
        return False
    return view.agent == "creator" or "identify_requirement_candidates" in view.opening
