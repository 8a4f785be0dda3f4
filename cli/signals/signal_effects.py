"""Whether a signal had its effect, from the job's state before and after."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from cli.jobs.job_view import TRIAL, JobView

REFUSED = "refused: "
"""Start of a job's notice that it refused a signal."""

LACKS = "the folder may lack the last steps"
"""Start of a job's notice that its folder could not be updated."""

Effect = Callable[[JobView, JobView], bool]
"""Returns whether the signal had its effect, from the job's state before and after."""


def notices_after_signal(before: JobView, after: JobView) -> list[str]:
    """Return the new notices. The job keeps only the newest ones, so an index would not help."""
    return list((Counter(after.notices) - Counter(before.notices)).elements())


def pause_took_effect(before: JobView, after: JobView) -> bool:
    return (after.waiting or {}).get("reason") == "paused"


def resume_took_effect(before: JobView, after: JobView) -> bool:
    # A job that is not waiting refuses with a notice; another person's rewind may have resumed it.
    refused = any(
        text.startswith(f"{REFUSED}signal resume: ") for text in notices_after_signal(before, after)
    )
    if after.kind == TRIAL:
        return not refused and not after.waiting and not after.stopped_runs
    if after.live and before.status.get("pausing") and not after.status.get("pausing"):
        # The pause was withdrawn before it took effect.
        return not refused and not pause_took_effect(after, after)
    # A paused job that now waits for something else, such as an approval, has continued.
    going = (
        pause_took_effect(before, before) and not pause_took_effect(after, after)
    ) or not after.waiting
    was_waiting = after.live and bool(before.waiting)
    if after.live and before.pending and not before.waiting:
        # A call that was only retried has been given up, and begins anew.
        return not refused and _resumptions(after) > _resumptions(before)
    return was_waiting and going and not refused and not rewind_took_effect(before, after)


def _resumptions(job_view: JobView) -> int:
    acts = job_view.status.get("people") or []
    return sum(act["signal"] == "resume" and not act["refused"] for act in acts)


def cancel_took_effect(before: JobView, after: JobView) -> bool:
    return after.closed


def limit_effect(payload: dict[str, Any]) -> Effect:
    """Return an effect: the job's limits equal the requested ones."""

    def has_limits(before: JobView, after: JobView) -> bool:
        if after.kind == TRIAL:
            new = (after.status.get("start") or {}).get("limits") or {}
            return after.live and all(new.get(key) == value for key, value in payload.items())
        scope_name = "project" if after.status.get("project") else "job"
        expected = [(scope_name, key, value) for key, value in payload.items() if key != "phase"]
        expected += [("phase", key, value) for key, value in payload.get("phase", {}).items()]
        limits = after.status.get("limits") or {}
        actual = [limits.get(scope, {}).get(key, {}).get("limit") for scope, key, _ in expected]
        return after.live and actual == [value for _, _, value in expected]

    return has_limits


def bypass_effect(guard: str) -> Effect:
    """Return an effect: the job confirmed the bypass, which may already be used up."""

    def is_answered(before: JobView, after: JobView) -> bool:
        phrase = f" let through once what {guard} refused at "
        return after.live and any(phrase in text for text in notices_after_signal(before, after))

    return is_answered


def tell_took_effect(before: JobView, after: JobView) -> bool:
    if after.status.get("project"):
        return any(text.startswith("told ") for text in notices_after_signal(before, after))

    def job_remarks(job_view: JobView) -> list[str]:
        return list(job_view.status.get("remarks") or [])

    return after.live and job_remarks(after) != job_remarks(before)


def rewind_took_effect(before: JobView, after: JobView) -> bool:
    def rewind_count(job_view: JobView) -> int:
        return int(job_view.status.get("rewinds") or 0)

    return after.live and rewind_count(after) > rewind_count(before)


def answer_took_effect(before: JobView, after: JobView) -> bool:
    return after.live and before.question_ids != after.question_ids
