"""How the rehearsal model follows any instructions, using only files."""

import json
import re
from collections.abc import Sequence

from protocol.short_text import count_noun
from rehearsal.procedure_replay import (
    Steps,
    call_procedure_tool,
    call_tool_with_retry,
    close_procedure_todo,
    interleave_procedures,
    write_and_close,
)
from rehearsal.rehearsal_plan import RehearsalPlan, RehearsalPlanPhase, rehearsed_plan_slug
from rehearsal.request_view import RequestView, is_error_result
from rehearsal.tool_answers import list_paths_from_tool_answer, read_file_from_tool_answers

MAX_STEPS = 9
MAX_STEP = 220
_ITEM = re.compile(r"^\s*(?:[-*+•]|\d+[.)])\s+(?:\[[ xX]\]\s*)?(.*\S)")
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-ZÄÖÜ0-9`\"])")
_FILE = re.compile(r"\b((?:output|notes)/[\w./-]*\w\.\w+)")
_SOURCE = re.compile(r"`(documents/[^`]+)`")
_SAME = re.compile(r"(?:then )?(?:put|save|write|store|place) (?:it|this|them|that)\b", re.I)
"""Beginning of a sentence that only says where the previous sentence's result goes."""
_NAMED = re.compile(r"`([^`]+)`")
_ORDER = re.compile(r"^(?:Note in|Write) `[^`]+`:? *(?:what is known about: )?")
_COMMON_WORDS = {"write", "notes", "check", "should", "which", "about", "their", "there", "these"}


def steps_in_instructions(instructions: str, others: Sequence[str] = ()) -> list[str]:
    """Return the steps in the instructions: their list items if there are any, else their
    sentences.
    """
    lines = [line for line in instructions.splitlines() if not line.startswith("#")]
    items = [match.group(1) for line in lines if (match := _ITEM.match(line))]
    if not items:
        text = " ".join(line.strip() for line in lines if line.strip())
        items = []
        for part in _SENTENCE.split(text):
            if items and _SAME.match(part):
                items[-1] += f" {part}"
            elif re.search(r"\w{3}", part):
                items.append(part)
    items += others
    steps = [" ".join(item.replace("`", "").split())[:MAX_STEP] for item in items]
    while len(steps) > MAX_STEPS:
        # Adjacent steps are more likely to belong together than distant ones.
        shortest = min(range(len(steps) - 1), key=lambda n: len(steps[n]) + len(steps[n + 1]))
        steps[shortest : shortest + 2] = [
            f"{steps[shortest]} {steps[shortest + 1]}"[: 2 * MAX_STEP]
        ]
    return steps or ["Do what the instructions ask"]


def plan_general_job(
    instructions: str, documents: dict[str, str], items: dict[str, str]
) -> RehearsalPlan:
    """Plan to gather, produce and review, with one todo per step of the instructions in each phase.

    Scope items that the instructions do not mention are steps as well.
    """
    steps = steps_in_instructions(
        instructions, [text for text in items.values() if text not in instructions]
    )
    targets = [_generalist_target_path(number, step) for number, step in enumerate(steps, 1)]
    reads = [
        f"Read `{text}` and note in `notes/source_{n}.md` what it says about the task"
        for n, text in enumerate(list(documents.values())[:6], 1)
    ]
    gather = [
        f"Note in `notes/step_{n:02d}.md` what is known about: {step}"
        for n, step in enumerate(steps, 1)
    ]
    produce = [f"Write `{path}`: {step}" for path, step in zip(targets, steps, strict=True)]
    outputs = list(dict.fromkeys(targets))
    review = [f"Check `{path}` against instructions.md" for path in outputs]
    head = (
        "# Plan\n\nThe instructions come to these steps:\n\n"
        + "\n".join(f"{n}. {step}" for n, step in enumerate(steps, 1))
        + "\n\nTwo approaches were weighed: to write each result at once, and to gather first "
        "what is known.\nThe second is chosen: each result can be checked against its notes."
    )
    return RehearsalPlan(
        head,
        [
            RehearsalPlanPhase(
                "Gather", "What is known about each step is in notes/.", reads + gather
            ),
            RehearsalPlanPhase("Produce", "Each step has its result in output/.", produce),
            RehearsalPlanPhase("Review", "Each result was read against the instructions.", review),
        ],
    )


def work_on_general_todo(view: RequestView, todo_id: int, text: str) -> Steps:
    """Return the procedure for a tactical todo: check the file it names, or write its result."""
    lowered = text.lower()
    match = _FILE.search(text)
    named = match or _NAMED.search(text)
    if named and lowered.startswith(("check", "compare", "review", "verify")):
        return _check_generalist_file(named.group(1))
    path = match.group(1) if match else f"output/phase_{view.number}_{todo_id:02d}.md"
    return write_generalist_result(path, text)


def write_general_report() -> Steps:
    """Write `output/summary.md` of a general job."""
    paths, notes = yield from interleave_procedures(
        list_paths_from_tool_answer("output"), list_paths_from_tool_answer("notes")
    )
    outputs = [path for path in paths if "summary" not in path]
    lines = [
        "# Summary",
        "",
        "## What was done",
        "",
        f"The plan was carried out: {count_noun(len(outputs), 'result')} in output/, "
        f"{count_noun(len(notes), 'page')} of notes.",
        "",
        "## Results",
        "",
        *([f"- `{path}`" for path in outputs] or ["- none"]),
        "",
        "## Left open",
        "",
        "Nothing.",
        "",
    ]
    note = f"Wrote output/summary.md over {count_noun(len(outputs), 'result')}."
    return (yield from write_and_close(note, "output/summary.md", "\n".join(lines)))


def write_generalist_result(path: str, text: str) -> Steps:
    """Write a file with passages about the step's subject."""
    source = _SOURCE.search(text)
    facts: list[str] = []
    if source:
        lines = yield from read_file_from_tool_answers(source.group(1))
        facts = [f"- {line.strip()[:300]}" for line in lines if re.search(r"\w{3}", line)][:15]
    else:
        query = _generalist_search_keyword(text)
        result = yield from call_procedure_tool("search_files", query=query, path="")
        if not is_error_result(result) and not result.startswith("Nothing"):
            # Ignore hits in plans and reviews, which only repeat the step.
            sources = ("documents/", "instructions.md", "notes/step_", "notes/source_")
            hits = [hit for hit in result.splitlines() if hit.startswith(sources)]
            facts = [f"- {hit[:300]}" for hit in hits[:8]]
    note = f"Wrote {path} from {count_noun(len(facts), 'passage')} found."
    content = _generalist_file_content(path, text, facts)
    return (yield from write_and_close(note, path, content))


def _generalist_file_content(path: str, text: str, facts: list[str]) -> str:
    task = _generalist_task_text(text)
    if path.endswith(".json"):
        data = {"task": task, "findings": [fact[2:] for fact in facts]}
        return json.dumps(data, ensure_ascii=False, indent=2) + "\n"
    if path.endswith(".csv"):
        return "task,finding\n" + "".join(
            f"{json.dumps(task)},{json.dumps(fact[2:])}\n" for fact in facts or ["- none"]
        )
    if path.endswith(".py"):
        return f'"""{task.replace(chr(34), chr(39))}"""\n'
    findings = facts or ["Nothing beyond the instructions themselves."]
    result = (
        f"This page answers the step with {count_noun(len(facts), 'passage')} of the workspace."
        if facts
        else "This page rests on the instructions alone."
    )
    lines = [f"# {task[:90]}", "", "## Asked", "", task, "", "## Found", "", *findings]
    return "\n".join([*lines, "", "## Result", "", result, ""])


def _generalist_task_text(text: str) -> str:
    """Return a todo without the file name at its beginning."""
    task = _ORDER.sub("", text).strip() or text
    return task[0].upper() + task[1:]


def _check_generalist_file(path: str) -> Steps:
    lines = yield from read_file_from_tool_answers(path)
    verdict = f"has {len(lines)} lines and answers its step" if lines else "is missing or empty"
    if not lines and path.startswith(("output/", "notes/")):
        content = _generalist_file_content(path, f"Make up for what was missing: {path}", [])
        yield from call_tool_with_retry("write_file", path=path, content=content)
    line = f"- `{path}` {verdict}\n"
    note = f"{path} {verdict}."
    return (
        yield from close_procedure_todo(note, "append_file", path="notes/review.md", content=line)
    )


def _generalist_search_keyword(text: str) -> str:
    """Return the word to search for: the longest uncommon one of the step."""
    words = re.findall(r"[A-Za-zÄÖÜäöüß]{5,}", _FILE.sub(" ", _generalist_task_text(text)))
    return max((w for w in words if w.lower() not in _COMMON_WORDS), key=len, default="the")


def _generalist_target_path(number: int, step: str) -> str:
    match = _FILE.search(step)
    return match.group(1) if match else f"output/{number:02d}_{rehearsed_plan_slug(step)}.md"
