"""What people did to a job, in terms of its signals; pure functions."""

from protocol.job_record import JobRecord
from protocol.notices import PersonAct
from protocol.payloads import ReceivedSignal
from protocol.short_text import first_few, one_line

MOST_ACTS = 100
MOST_DETAIL = 300
"""Longest detail, in characters."""
IN_WORK = ("answer", "approve", "deny", "bypass", "cancel")
"""Signals whose effect shows in the work itself."""
MOST_CALLS = 5
"""Most calls that a pause's notice names."""


def describe_act(
    received: ReceivedSignal, phase: int = 0, detail: str = "", what: str = "job"
) -> PersonAct:
    """Describe a signal's effect, with sender and time.

    Args:
        phase: Number of the phase that was running when it arrived.
        detail: What the job knows beyond the payload; it replaces the payload.
        what: What it was sent to.
    """
    payload = received.read
    return PersonAct(
        at=received.at,
        by=received.by,
        phase=phase,
        signal=received.signal,
        did=payload.did(what),
        detail=one_line(detail or payload.words, MOST_DETAIL),
    )


def keep_act(job: JobRecord, act: PersonAct) -> None:
    """Remember an act; only the newest are kept."""
    job.acts = [*job.acts, act][-MOST_ACTS:]


def acts_in_phase(job: JobRecord) -> list[str]:
    """Return lines on the acts of people in the running phase that affect its work.

    They are written into a checkpoint, and so reach the model. Times are left out, and so are acts
    that leave the work unchanged, such as a pause or a limit. Remarks and reasons of rewinds are
    already on the phase's page.
    """
    number = job.state.phase.number
    return [
        act.without_time
        for act in job.acts
        if act.phase == number and not act.refused and _is_act_shown_in_work(act)
    ]


def _is_act_shown_in_work(act: PersonAct) -> bool:
    return act.signal in IN_WORK or (act.signal == "resume" and act.edited)


def describe_calls_left(job: JobRecord) -> str:
    """Return `2 calls of the last reply are still to be carried out: write_file a.md,
    job_complete`.
    """
    remaining = [call.line for call in job.calls[job.next_call :]]
    if not remaining:
        return ""
    which = "1 call" if len(remaining) == 1 else f"{len(remaining)} calls"
    verb = "is" if len(remaining) == 1 else "are"
    shown = first_few(remaining, MOST_CALLS)
    return f"{which} of the last reply {verb} still to be carried out: {shown}"


def describe_pause_moment(job: JobRecord) -> str:
    """Return after which calls a pause takes effect.

    The notice remains when these calls have run, so its words have to stay true.
    """
    remaining = [call.line for call in job.calls[job.next_call :]]
    return f"it takes effect after {first_few(remaining, MOST_CALLS)}"


def is_pause_due(job: JobRecord) -> bool:
    """Whether a pause takes effect here.

    It does once the calls of the current reply are done, so that these calls do not overwrite a
    person's edits. It does not wait for a call that ends the job, that waits, or that a server is
    working on.
    """
    if job.waiting or job.timer or job.pending or job.next_call >= len(job.calls):
        return True
    return job.calls[job.next_call].tool == "job_complete"
