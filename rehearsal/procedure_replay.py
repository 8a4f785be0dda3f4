"""Runs rules that are written as procedures, without memory between requests.

A procedure is a generator: it yields tool calls and receives their results. Each request runs it
from the beginning. Calls that the conversation already contains get their results from there; the
first calls without results are the reply.
"""

import json
from collections import Counter
from collections.abc import Generator
from typing import Any

from protocol.requests import MAX_CALLS
from rehearsal.request_view import RequestView, canonical_arguments, is_error_result
from rehearsal.wire import Reply

Call = tuple[str, dict[str, Any]]
Steps = Generator[list[Call], list[str], str]
"""A procedure for one todo; it returns the note for the todo's completion."""

MAX_REPLIES = 100
"""Maximum number of replies per todo; it is then completed anyway, so that no job gets stuck."""
MAX_AGAIN = 3
CLEARED = "[result "
READING = ("read_file", "list_files", "search_files", "extract_document_text")


def replay_next_reply(view: RequestView, steps: Steps) -> Reply:
    """Return the reply that advances the procedure by one step."""
    if view.replies >= MAX_REPLIES:
        return complete_procedure_todo(view, "Completed as far as it went; the rest was left out.")
    answers = _ReplayedResults(view)
    try:
        batch = next(steps)
        while True:
            if deferred_tools := [name for name, _ in batch if name in view.deferred]:
                return Reply(
                    calls=[("search_tools", {"query": " ".join(dict.fromkeys(deferred_tools))})]
                )
            results = [answers.find_result(call) for call in batch]
            missing: list[tuple[str, dict[str, Any] | str]] = [
                call for call, result in zip(batch, results, strict=True) if result is None
            ]
            if missing:
                return Reply(content=_announce_current_todo(view), calls=missing[:MAX_CALLS])
            batch = steps.send([result or "" for result in results])
    except StopIteration as error:
        return complete_procedure_todo(view, error.value)


def complete_procedure_todo(view: RequestView, note: str) -> Reply:
    """Complete the todo; reply with the note as text if todo_complete is not offered."""
    if "todo_complete" not in view.tools:
        return Reply(content=note)
    return Reply(calls=[_todo_completion_call(note)])


def _todo_completion_call(note: str) -> Call:
    return ("todo_complete", {"notes": note[:1000]})


def _announce_current_todo(view: RequestView) -> str | None:
    if view.calls or view.current_todo is None:
        return None
    return f"Todo {view.current_todo.id}: {view.current_todo.text[:120]}"


class _ReplayedResults:
    """Results by call; the n-th identical call of a procedure gets the n-th result."""

    def __init__(self, view: RequestView) -> None:
        self._tools = view.tools
        self._results: dict[tuple[str, str], list[str]] = {}
        for call in view.calls:
            self._results.setdefault((call.tool, call.arguments), []).append(call.result)
        self._used: Counter[tuple[str, str]] = Counter()

    def find_result(self, call: Call) -> str | None:
        name, arguments = call
        if name not in self._tools:
            return f"Error: {name} is not offered here."
        # Convert to JSON and back, as on the wire, so that both sides compare equal.
        key = (name, canonical_arguments(json.loads(json.dumps(arguments))))
        results = self._results.get(key, [])
        place = self._used[key]
        self._used[key] += 1
        if place >= len(results):
            return None
        if CLEARED in results[place][:200] and name in READING:
            fresh = [result for result in results[place:] if CLEARED not in result[:200]]
            return fresh[-1] if fresh else (None if len(results) < MAX_AGAIN else "")
        return results[place]


def call_procedure_tool(tool: str, **arguments: Any) -> Generator[list[Call], list[str], str]:
    """Make one call and return its result."""
    results = yield [(tool, arguments)]
    return results[0]


def close_procedure_todo(note: str, tool: str, /, *before: Call, **arguments: Any) -> Steps:
    """Make the last calls of a todo and complete it in the same reply.

    No result of these calls is needed. If the completion is refused, the procedure runs again.
    """
    yield [*before, (tool, arguments), _todo_completion_call(note)]
    return note


def write_and_close(note: str, path: str, content: str) -> Steps:
    """Write a file, and complete the todo in the same reply."""
    return (yield from close_procedure_todo(note, "write_file", path=path, content=content))


def interleave_procedures(
    *procedures: Generator[list[Call], list[str], Any],
) -> Generator[list[Call], list[str], list[Any]]:
    """Run procedures side by side, with the calls of all in one reply; return their values."""
    values: list[Any] = [None] * len(procedures)
    results: list[list[str] | None] = [None] * len(procedures)
    going = list(range(len(procedures)))
    while True:
        batches: dict[int, list[Call]] = {}
        for n in going:
            try:
                batches[n] = procedures[n].send(results[n])  # type: ignore[arg-type]
            except StopIteration as error:
                values[n] = error.value
        if not batches:
            return values
        answers = iter((yield [call for batch in batches.values() for call in batch]))
        for n, batch in batches.items():
            results[n] = [next(answers) for _ in batch]
        going = list(batches)


def call_tool_with_retry(tool: str, **arguments: Any) -> Generator[list[Call], list[str], str]:
    """Make one call that later steps depend on; repeat it once if it fails."""
    result = yield from call_procedure_tool(tool, **arguments)
    if is_error_result(result):
        result = yield from call_procedure_tool(tool, **arguments)
    return result


REVIEW = "notes/review.md"


def collect_rehearsed_results(tool: str) -> Steps:
    """Let the tool write the result file."""
    report = yield from call_tool_with_retry(tool)
    return " ".join(report.splitlines()[:2])


def check_collected_results(tool: str) -> Steps:
    """Let the tool check the result, and store its report for people."""
    report = yield from call_tool_with_retry(tool)
    note = f"What is cited and what is missing is in {REVIEW}."
    return (
        yield from close_procedure_todo(note, "append_file", path=REVIEW, content=f"{report}\n\n")
    )
