"""A phase's course: the window of recent replies and calls that stuck detection reads. Pure
functions.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from protocol.course_window import CallRecord, Course
from protocol.requests import MAX_CALLS, Call, ToolReply
from protocol.stuck_thresholds import StuckThresholds

WAIT = "wait"
READERS = ("read_file", "extract_document_text", "view_image")
INWARD = (
    *("append_file", "delete_file", "edit_file", "get_trace", "list_files", "move_file"),
    *("query_traces", "run_command", "search_files", "search_history", "search_tools"),
    *("store_trace", "use_skill", "write_file"),
)
"""Tools whose result says nothing that the job has not written or listed itself. Whether these
change the work shows in its files."""
OWN_PATHS = ("archive/", "errors/", "notes/", "output/", "tools/")
OWN_FILES = (
    *("experiences.md", "instructions.md", "plan.md", "todos.yaml", "workspace.md"),
    "workspace_summary.md",
)
LONGEST_CYCLE = 5
MAX_SEEN = 200
MAX_POLLED = 20
MAX_PHASE_MARKS = 100
MAX_SOURCES = 400


@dataclass(frozen=True)
class CallOutcome:
    """A tool call and its outcome."""

    call: Call
    reply: ToolReply
    polling: bool = False
    denied: bool = False
    """Whether neither a tool nor the call's own gate saw the call."""
    completed: bool = False
    """Whether it completed a todo."""


def course_after_reply(course: Course, calls: Sequence[Call]) -> Course:
    """Return the course after a reply of the model. A reply that only waits does not count as a
    call.
    """
    only_waits = bool(calls) and all(call.tool == WAIT for call in calls)
    return course.model_copy(
        update={
            "text_only_replies": 0 if calls else course.text_only_replies + 1,
            "replies_since_todo": course.replies_since_todo + (not only_waits),
            "unread_nudges": [],
        }
    )


def course_after_call(course: Course, outcome: CallOutcome, figures: StuckThresholds) -> Course:
    """Return the course after a tool call."""
    call, reply = outcome.call, outcome.reply
    if outcome.completed:
        # Calls before a completed todo no longer count as a loop; seen results are still not new.
        return course.in_new_phase.model_copy(
            update={
                "seen_results": course.seen_results,
                "has_new_source": course.has_new_source,
            }
        )
    if call.tool == WAIT and reply.ok:
        return course.model_copy(update={"after_wait": True})
    course = _course_with_source(course, call, reply)
    key, mark = f"{call.tool} {call.fingerprint}", _course_novelty_key(call, reply)
    result = reply.error_fingerprint or reply.fingerprint
    if (
        outcome.polling
        and reply.ok
        and (course.after_wait or course.polled_results.get(key) != result)
    ):
        return _course_after_poll(course, call, key, result)
    news = reply.changed or (reply.ok and mark not in course.seen_results)
    changes: dict[str, object] = {
        "after_wait": False,
        "calls_without_news": 0 if news else course.calls_without_news + 1,
    }
    if reply.ok:
        changes["seen_results"] = _add_to_result_window(course.seen_results, mark)
    if outcome.polling:
        changes["polled_results"] = _add_poll_result(course.polled_results, key, result)
    if call.tool == "job_complete" and not outcome.denied:
        changes["completion_refusals"] = course.completion_refusals + 1
    elif call.tool == "todo_complete" and not outcome.denied:
        same = reply.fingerprint == course.todo_refusal and not course.after_wait
        changes |= {
            "todo_refusal": reply.fingerprint,
            "todo_refusals": course.todo_refusals + 1 if same else 1,
        }
    else:
        record = CallRecord(
            tool=call.tool,
            arguments=call.fingerprint,
            result=reply.fingerprint,
            error=reply.error_fingerprint,
            news=news,
        )
        # After a wait the same call is a fresh look, whatever tool it is; `stale` continues.
        earlier = _recent_calls_except(course, call) if course.after_wait else course.recent_calls
        changes["recent_calls"] = [*earlier, record][-course_window_size(figures) :]
    return course.model_copy(update=changes)


def course_after_completion_attempt(course: Course, deliverables: str, open_items: int) -> Course:
    """Return the course after `job_complete`.

    Refusals before a change of its deliverables or of what is open are no repetition.
    """
    same = (deliverables, open_items) == (course.deliverables, course.open_items)
    if not deliverables or same:
        return course
    changes = {"completion_refusals": 0, "deliverables": deliverables, "open_items": open_items}
    return course.model_copy(update=changes)


def course_after_phase(course: Course, mark: str, *, idle: bool, work: str = "") -> Course:
    """Return the course of a phase of work at its end.

    Args:
        mark: Fingerprint of its list, and of scope and plan at its end.
        idle: Whether nothing came of it but, perhaps, changed files of the work.
        work: Fingerprint of the work at its end; empty if the phase did not touch it. Work as some
            earlier phase left it does not count, nor does what such a phase has read.
    """
    has_worked = bool(work) and work not in course.phase_marks
    nothing_came = idle and not has_worked and not course.has_new_source
    again = nothing_came or mark in course.phase_marks
    marks = [*(other for other in course.phase_marks if other not in (mark, work)), mark]
    marks = [*marks, *([work] if work else [])][-MAX_PHASE_MARKS:]
    idle_phases = course.idle_phases + 1 if again else 0
    return course.model_copy(update={"phase_marks": marks, "idle_phases": idle_phases})


def _course_with_source(course: Course, call: Call, reply: ToolReply) -> Course:
    """Return the course with what the call read of a source, or did outside."""
    path = (call.path or "").removeprefix("./")
    is_own = path in OWN_FILES or path.startswith(OWN_PATHS)
    source = f"{call.fingerprint}{reply.fingerprint}"
    if not reply.ok or call.tool in (*INWARD, WAIT) or (call.tool in READERS and is_own):
        return course
    is_new = source not in course.earlier_results
    sources = [*(each for each in course.earlier_results if each != source), source][-MAX_SOURCES:]
    return course.model_copy(
        update={"earlier_results": sources, "has_new_source": course.has_new_source or is_new}
    )


def _course_novelty_key(call: Call, reply: ToolReply) -> str:
    """Return the key by which a result counts as new; for tools that read, it includes the
    arguments.
    """
    return f"{call.fingerprint}{reply.fingerprint}" if call.tool in READERS else reply.fingerprint


def course_window_size(figures: StuckThresholds) -> int:
    """Return the size of the window: as long as the longest pattern plus one reply, so that a count
    can still rise after the model has read the advice.
    """
    longest = max(
        LONGEST_CYCLE * figures.cycle.then,
        figures.same_result.then,
        figures.same_call_error.then,
        2 * figures.same_error.then,
    )
    return longest + MAX_CALLS


def _course_after_poll(course: Course, call: Call, key: str, result: str) -> Course:
    """Return the course after a poll that is no repetition: its result changed, or the agent
    waited.
    """
    changed = course.polled_results.get(key) != result
    return course.model_copy(
        update={
            "after_wait": False,
            "polled_results": _add_poll_result(course.polled_results, key, result),
            "seen_results": _add_to_result_window(course.seen_results, result),
            "calls_without_news": 0 if changed else course.calls_without_news,
            "replies_since_todo": 0 if changed else course.replies_since_todo,
            # No run of equal results continues across a change, and no run of polls across a wait.
            "recent_calls": [] if changed else _recent_calls_except(course, call),
        }
    )


def _recent_calls_except(course: Course, call: Call) -> list[CallRecord]:
    return [
        call_record
        for call_record in course.recent_calls
        if (call_record.tool, call_record.arguments) != (call.tool, call.fingerprint)
    ]


def _add_to_result_window(results: list[str], mark: str) -> list[str]:
    return [*[other for other in results if other != mark], mark][-MAX_SEEN:]


def _add_poll_result(polled: dict[str, str], key: str, result: str) -> dict[str, str]:
    others = {other: last for other, last in polled.items() if other != key}
    return dict([*others.items(), (key, result)][-MAX_POLLED:])
