"""Replies that call no tool: what the model is told, and when it is made to call one.

The most common way for an agent to stop early is to talk: it asks whether to go on, reports, or
says that it is done. None of that counts; the answer says what to do instead.
"""

from __future__ import annotations

from protocol.record import JobRecord
from protocol.requests import ModelReply, Verdict
from protocol.state import Todo
from protocol.text import one_line

DEMAND_AFTER = 2
"""Replies without a call in a row after which the next must call a tool."""
MAX_SQUEEZES = 4
"""Compactions in a row on the endpoint's word that the request is too long."""
CUT_SHORT = (
    "Your last reply was cut at the output limit. Say less and act, in smaller pieces: {do}."
)
SAID: dict[Verdict, str] = {
    "asks": "Nobody answers a question in a reply: you need no permission. Decide and {do}.",
    "claims": "Saying that work is complete completes nothing; only calls count. If todo {id} is "
    "done, call todo_complete; else {do}. Only job_complete ends the job.",
    "reports": "Your last reply called no tool. Now {do}, or call todo_complete when it is done.",
}
TOO_MANY = (
    "Your last reply had {all} calls; those after the first {most}, which is the most, were left "
    "out. Make those that are still needed."
)
LONGEST = 120


def correction(reply: ModelReply, todo: Todo | None) -> str | None:
    """What the model is told of a reply without a call, or with too many; else None."""
    if reply.calls:
        most = len(reply.calls)
        return TOO_MANY.format(all=most + reply.dropped, most=most) if reply.dropped else None
    if todo is None:
        return "Your last reply called no tool. Do the next step of your list with a tool."
    text = CUT_SHORT if reply.finish == "length" else SAID[reply.verdict or "reports"]
    do = f"do todo {todo.id} ({one_line(todo.content.rstrip(' .'), LONGEST)}) with a tool"
    return text.format(id=todo.id, do=do)


def must_call(job: JobRecord) -> bool:
    """Whether the next request requires a tool call."""
    return job.may_demand and job.wordy >= DEMAND_AFTER


def is_squeezed(job: JobRecord) -> bool:
    """Whether the job was compacted as often as it is on the endpoint's word."""
    return job.squeezed >= MAX_SQUEEZES
