"""Keeping a phase's course: what a reply or a tool call adds to the window. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from protocol.course import Course, Deed, StuckFigures
from protocol.requests import MAX_CALLS, Call, ToolReply

WAIT = "wait"
READERS = ("read_file", "extract_document_text")
LONGEST_CYCLE = 5
MAX_SEEN = 200
MAX_POLLED = 20


@dataclass(frozen=True)
class Happened:
    """A tool call and what came of it."""

    call: Call
    reply: ToolReply
    polling: bool = False
    denied: bool = False
    """Whether no tool, nor a gate of its own, ever saw the call."""
    completed: bool = False
    """Whether it completed a todo."""


def after_reply(course: Course, calls: Sequence[Call]) -> Course:
    """The course after a reply of the model. One that only waits is no model call that counts."""
    only_waits = bool(calls) and all(call.tool == WAIT for call in calls)
    return course.model_copy(
        update={
            "silent": 0 if calls else course.silent + 1,
            "replies": course.replies + (not only_waits),
            "unread": [],
        }
    )


def after_call(course: Course, happened: Happened, figures: StuckFigures) -> Course:
    """The course after a tool call."""
    call, reply = happened.call, happened.reply
    if happened.completed:
        # What lies before a completed todo is no loop any more; what was seen is still not new.
        return course.in_new_phase.model_copy(
            update={"seen": _latest(course.seen, _news(call, reply))}
        )
    if call.tool == WAIT and reply.ok:
        return course.model_copy(update={"waited": True})
    key, mark = f"{call.tool} {call.mark}", _news(call, reply)
    result = reply.error_mark or reply.mark
    if happened.polling and reply.ok and (course.waited or course.polled.get(key) != result):
        return _polled(course, call, key, result)
    news = reply.changed or (reply.ok and mark not in course.seen)
    changes: dict[str, object] = {"waited": False, "stale": 0 if news else course.stale + 1}
    if reply.ok:
        changes["seen"] = _latest(course.seen, mark)
    if happened.polling:
        changes["polled"] = _with(course.polled, key, result)
    if call.tool == "job_complete" and not happened.denied:
        changes["completions"] = course.completions + 1
    elif call.tool == "todo_complete" and not happened.denied:
        same = reply.mark == course.refusal and not course.waited
        changes |= {"refusal": reply.mark, "refusals": course.refusals + 1 if same else 1}
    else:
        deed = Deed(
            tool=call.tool,
            arguments=call.mark,
            result=reply.mark,
            error=reply.error_mark,
            news=news,
        )
        # After a wait the same call looks again, whatever tool it is; `stale` goes on.
        kept = _others(course, call) if course.waited else course.deeds
        changes["deeds"] = [*kept, deed][-window(figures) :]
    return course.model_copy(update=changes)


def completion_tried(course: Course, deliverables: str) -> Course:
    """The course when `job_complete` is called: refusals before a change of what it delivers are
    no repetition."""
    if not deliverables or deliverables == course.deliverables:
        return course
    return course.model_copy(update={"completions": 0, "deliverables": deliverables})


def _news(call: Call, reply: ToolReply) -> str:
    """What makes a result new. Two files that hold the same are still two things read."""
    return f"{call.mark}{reply.mark}" if call.tool in READERS else reply.mark


def window(figures: StuckFigures) -> int:
    """How many calls the longest pattern needs, and a reply more: a count must be able to rise when
    the model has read that it was told.
    """
    longest = max(
        LONGEST_CYCLE * figures.cycle.then,
        figures.same_result.then,
        figures.same_call_error.then,
        2 * figures.same_error.then,
    )
    return longest + MAX_CALLS


def _polled(course: Course, call: Call, key: str, result: str) -> Course:
    """After a poll that is no repetition: its result changed, or the agent waited before it."""
    changed = course.polled.get(key) != result
    return course.model_copy(
        update={
            "waited": False,
            "polled": _with(course.polled, key, result),
            "seen": _latest(course.seen, result),
            "stale": 0 if changed else course.stale,
            "replies": 0 if changed else course.replies,
            # No run goes on over a change of the result; nor do polls, over a wait.
            "deeds": [] if changed else _others(course, call),
        }
    )


def _others(course: Course, call: Call) -> list[Deed]:
    return [d for d in course.deeds if (d.tool, d.arguments) != (call.tool, call.mark)]


def _latest(seen: list[str], mark: str) -> list[str]:
    return [*[other for other in seen if other != mark], mark][-MAX_SEEN:]


def _with(polled: dict[str, str], key: str, result: str) -> dict[str, str]:
    kept = {other: last for other, last in polled.items() if other != key}
    return dict([*kept.items(), (key, result)][-MAX_POLLED:])
