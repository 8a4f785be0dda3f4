"""Calls of a reply that are not run: after one that failed, or after the end of the phase."""

from protocol.job_record import JobRecord
from protocol.requests import Call
from protocol.short_text import first_few, one_line

COUNTED = ("todo_complete", "job_complete")
"""Calls that are held back if an earlier call of the same reply failed."""
HELD_BACK = "Not counted yet: {failed}. See to that, then call {tool} again."
ENDED_LATER = "Not needed: a later call of the same reply completes this todo."
MAX_WHY = 120
"""Most characters of why a call failed."""
MAX_NAMED = 8


def failed_call_in_reply(call: Call, why: str) -> str:
    """Return text such as `write_file notes/a.md before it failed (There is no folder notes.)`."""
    return f"{call.line} before it failed ({one_line(why.rstrip('.'), MAX_WHY)})"


def is_list_ended_later(job: JobRecord) -> bool:
    """Whether a later call of the reply, which may be made here, hands over a list or ends the
    job.
    """
    kind = job.state.phase.kind
    return any(
        call.tool in ("job_complete", "todo_write") and route and kind in route.phases
        for call in job.calls[job.next_call :]
        for route in [job.route(call.tool)]
    )


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
    named = [call.line for call in skipped]
    return (
        f"The phase ended with {job.calls[ended_by].tool}; what came after it in your reply was "
        f"not run: {first_few(named, MAX_NAMED)}. Make those calls that are still wanted."
    )
