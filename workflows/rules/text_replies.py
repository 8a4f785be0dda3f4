"""Replies that call no tool: corrections, and when the next reply must call one.

Agents most often stop early by talking: they ask for permission, report, or claim to be done. None
of that has an effect; the correction says what to do instead.
"""

from protocol.job_record import JobRecord
from protocol.job_state import JobState
from protocol.requests import ModelReply, ReplyVerdict
from protocol.short_text import count_noun, first_few, one_line

DEMAND_AFTER = 2
"""Number of replies in a row without a call after which the next must call a tool."""
MAX_REFUSING_REPLIES = 3
"""Number of refusals in a row after which a person has to decide."""
CUT_SHORT = (
    "Your last reply was cut at the output limit. Say less and act, in smaller pieces: go on with "
    "todo {id} ({todo})."
)
NEXT_CALL = "If todo {id} ({todo}) is done, call {ending}; else go on with it with a tool."
"""Puts the ending first: the list above it may say that the todo is seen to be done."""
CORRECTIONS: dict[ReplyVerdict, str] = {
    "asks": "Nobody answers a question in a reply: you need no permission. {open} Decide. {next}",
    "claims": "Saying that work is complete completes nothing; only calls count. {open} {next} "
    "Only job_complete ends the job.",
    "reports": "Your last reply called no tool. {next}",
    "refuses": "Your last reply was a refusal and called no tool. Leave out no more than what you "
    "must not do, name that in your notes, and do the rest. {next}",
}
TOO_MANY = (
    "Your last reply had {all} calls; those after the first {most}, which is the most, were left "
    "out. Make those that are still needed."
)
LONGEST = 120
MOST_NAMED = 8


def reply_correction(reply: ModelReply, state: JobState) -> str | None:
    """Return the correction for a reply without calls or with too many; None for others."""
    todo = state.phase.current
    if reply.calls:
        most = len(reply.calls)
        return TOO_MANY.format(all=most + reply.dropped, most=most) if reply.dropped else None
    if todo is None:
        return "Your last reply called no tool. Do the next step of your list with a tool."
    named = {"id": todo.id, "todo": one_line(todo.content.rstrip(" ."), LONGEST)}
    if reply.finish == "length":
        return CUT_SHORT.format(**named)
    ending = "job_complete" if state.phase.is_ending else "todo_complete"
    return CORRECTIONS[reply.verdict or "reports"].format(
        open=_open_work_after_text_reply(state), next=NEXT_CALL.format(**named, ending=ending)
    )


def _open_work_after_text_reply(state: JobState) -> str:
    """Return a sentence such as `Open are 3 todos and the scope items S2, S3.`"""
    count = state.phase.open_count
    named = first_few([item.id for item in state.open_items], MOST_NAMED)
    items = f" and the scope item{'s' if len(state.open_items) > 1 else ''} {named}"
    todos = count_noun(count, "todo")
    return f"Open {'is' if count == 1 and not named else 'are'} {todos}{items if named else ''}."


def must_reply_with_call(job: JobRecord) -> bool:
    """Whether the next request requires a tool call."""
    talks = job.text_only_replies >= DEMAND_AFTER
    return job.can_require_call and (talks or bool(job.course.narrowed_issue))
