"""What Temporal says of the running activity: its job, its times, a key of its effects."""

from temporalio import activity


def activity_job_id() -> str:
    workflow_id = activity.info().workflow_id
    if workflow_id is None:
        raise RuntimeError("this activity was not started by a workflow")
    return workflow_id


def attempt_started_ms() -> int:
    """Return when the server handed this attempt to the worker, in milliseconds."""
    return int(activity.info().started_time.timestamp() * 1000)


def activity_schedule_seconds() -> int:
    """Return when the server scheduled this activity, in epoch seconds; equal for all attempts."""
    return int(activity.info().scheduled_time.timestamp())


def activity_schedule_ms() -> int:
    """Return when the server scheduled this activity, in epoch milliseconds, by which the regular
    activities of a job are ordered.
    """
    return int(activity.info().scheduled_time.timestamp() * 1000)


def activity_effect_key() -> str:
    """Return the key of this activity's outside effects: the same for retries only."""
    info = activity.info()
    return f"{info.workflow_run_id}.{info.activity_id}"
