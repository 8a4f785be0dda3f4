"""Replies that call no tool: corrections, and when the next reply must call one.

Agents most often stop early by talking: they ask for permission, report, or claim to be done. None
of that has an effect; the correction says what to do instead.
"""

from __future__ import annotations

from protocol.job_record import JobRecord
from protocol.job_state import JobState
from protocol.requests import Call, ModelReply, ReplyVerdict
from protocol.short_text import count_noun, first_few, one_line

DEMAND_AFTER = 2
"""Number of replies in a row without a call after which the next must call a tool."""
MAX_REFUSING_REPLIES = 3
"""Number of refusals in a row after which a person has to decide."""
MAX_SQUEEZES = 4
"""Limit of consecutive compactions after the endpoint rejected a request as too long."""
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
COUNTED = ("todo_complete", "job_complete")
"""Calls that are held back if an earlier call of the same reply failed."""
HELD_BACK = "Not counted yet: {failed}. See to that, then call {tool} again."
NOT_OVER = (
    "The next list is handed over, and this phase is not over yet: {failed}. See to that, then "
    "call todo_complete."
)
BY_CALL = "The next list is handed over. Call todo_complete for what is still open here."
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
    # The gate accepts nothing else for the last todo of a job.
    is_last = state.phase.purpose == "final" and state.phase.open_count == 1
    ending = "job_complete" if is_last else "todo_complete"
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


def failed_call_in_reply(call: Call, why: str) -> str:
    """Return text such as `write_file notes/a.md before it failed (There is no folder notes.)`."""
    named = f"{call.tool[:60]} {call.path}" if call.path else call.tool[:60]
    return f"{named} before it failed ({one_line(why.rstrip('.'), LONGEST)})"


def skipped_calls_note(job: JobRecord, ended_by: int | None) -> str | None:
    """Return the note on calls that were skipped because the phase ended, or None.

    Args:
        job: The record before its new phase begins.
        ended_by: Index of the call that ended the phase, if one did.
    """
    if ended_by is None:
        return None
    skipped = [call for call in job.calls[ended_by + 1 :] if call.tool != "todo_complete"]
    if not skipped:
        return None
    named = [f"{call.tool[:60]} {call.path}" if call.path else call.tool[:60] for call in skipped]
    return (
        f"The phase ended with {job.calls[ended_by].tool}; what came after it in your reply was "
        f"not run: {first_few(named, MOST_NAMED)}. Make those calls that are still wanted."
    )


def must_reply_with_call(job: JobRecord) -> bool:
    """Whether the next request requires a tool call."""
    return job.can_require_call and job.text_only_replies >= DEMAND_AFTER


def count_compaction(job: JobRecord, *, shortened: bool) -> int:
    """Return the consecutive compactions after one more; all are used up by one in vain."""
    return job.hard_compactions + 1 if shortened else MAX_SQUEEZES


def is_compaction_exhausted(job: JobRecord) -> bool:
    """Whether the job has used up its consecutive compactions for an over-long request."""
    return job.hard_compactions >= MAX_SQUEEZES
