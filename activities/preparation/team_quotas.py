"""Holds a start back while its team is over its quota, before it does anything that costs.

The jobs that are open are counted from Temporal's visibility: those that have begun, and of the
others those that were started before. A start begins once these are fewer than the quota. So of
starts that come together the oldest begin, none overtakes another, and there is no count that a
killed worker could leave wrong.
"""

import asyncio
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from temporalio import activity
from temporalio.client import WorkflowExecution, WorkflowExecutionStatus
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from activities.runtime.activity_info import activity_job_id, activity_schedule_seconds
from config.team_files import TeamQuota, team_quota
from protocol.short_text import count_noun, first_few
from protocol.teams import TEAM, noted_spend, own_memo
from protocol.usage import Spend

LISTED_SECONDS = 5
"""How long a start waits until the server lists it, and the team of what was started before."""
SETTLING_SECONDS = 1
"""How long the server may take to list starts of the same moment, in any order."""
UNKNOWN_TIME = timedelta(minutes=1)
"""How long a job counts for every team that has not noted its own: the worker may be busy."""


@dataclass(frozen=True)
class _TeamJob:
    id: str
    is_waiting: bool
    """Whether it has not begun."""
    since: str
    """When it began, or was started."""
    is_open: bool
    is_known: bool
    """Whether its first task has noted what its team is."""
    today: Spend


async def check_team_quota(team: str) -> str:
    """Return the team as metrics have it: empty unless the configuration lists it.

    Raises:
        ConfigError: The configuration lists teams, and not this one.
        ApplicationError: The team is over its quota.
    """
    quota = await asyncio.to_thread(team_quota, team)
    if quota is None:
        return ""
    if quota == TeamQuota():
        return team
    now = datetime.fromtimestamp(activity_schedule_seconds(), UTC)
    jobs = await _listed_team_jobs(team, quota, now)
    if why := _quota_reason(team, quota, jobs, now):
        # An expected answer, which the log of the worker does not need.
        benign = ApplicationErrorCategory.BENIGN
        raise ApplicationError(why, type="Quota", non_retryable=True, category=benign)
    return team


async def _listed_team_jobs(team: str, quota: TeamQuota, now: datetime) -> list[_TeamJob]:
    own = activity_job_id()
    if quota.jobs is not None:
        await asyncio.sleep(max(0.0, now.timestamp() + SETTLING_SECONDS - time.time()))
    for _ in range(LISTED_SECONDS):
        jobs = await _team_jobs(team, quota, now)
        names = [job.id for job in jobs]
        if own in names and all(job.is_known for job in jobs[: names.index(own) + 1]):
            break
        await asyncio.sleep(1)
    recent = (now - UNKNOWN_TIME).isoformat()
    return [job for job in jobs if job.is_known or job.since > recent]


async def _team_jobs(team: str, quota: TeamQuota, now: datetime) -> list[_TeamJob]:
    """Return the team's jobs that are open or have ended today, in the order in which they begin.

    Open jobs that have not noted yet which team is theirs are among them. Those that have ended
    are left out where the quota has nothing on a day's spend.
    """
    wanted = "ExecutionStatus = 'Running'"
    if quota.cost or quota.tokens:
        ended = f"CloseTime >= '{now:%Y-%m-%d}T00:00:00Z' AND ExecutionStatus != 'ContinuedAsNew'"
        wanted = f"({wanted} OR ({ended}))"
    query = f"TaskQueue = '{activity.info().task_queue}' AND WorkflowType = 'Job' AND {wanted}"
    jobs = []
    async for execution in activity.client().list_workflows(query):
        noted = await execution.memo()
        memo = own_memo(noted, execution.run_id)
        is_open = execution.status == WorkflowExecutionStatus.RUNNING
        if memo.get(TEAM) == team or (is_open and not memo and not _is_delayed(execution, now)):
            today = noted_spend(memo, f"{now:%Y-%m-%d}")
            began = str(memo.get("began") or "")
            since = began or execution.start_time.astimezone(UTC).isoformat()
            # A run that has just continued another has its memo, and has not noted itself yet.
            is_waiting = not noted.get("began")
            jobs.append(_TeamJob(execution.id, is_waiting, since, is_open, bool(memo), today))
    return sorted(jobs, key=lambda job: (job.is_waiting, job.since, job.id))


def _is_delayed(execution: WorkflowExecution, now: datetime) -> bool:
    """Return whether the server does not let it begin yet."""
    return execution.execution_time is not None and execution.execution_time > now


def _quota_reason(team: str, quota: TeamQuota, jobs: list[_TeamJob], now: datetime) -> str:
    """Return why this start does not begin yet, and until when; empty if it may."""
    spent = sum((job.today for job in jobs), Spend())
    over = quota.cost is not None and spent.cost >= quota.cost
    if over or (quota.tokens is not None and spent.tokens >= quota.tokens):
        limit = f"{quota.cost:,.2f}" if over else f"{quota.tokens:,} tokens"
        until = now + timedelta(days=1)
        return (
            f"Team {team} has spent {spent.words} of {limit} a day; it begins at "
            f"{until:%Y-%m-%d} 00:00 UTC."
        )
    names = [job.id for job in jobs if job.is_open]
    own = names.index(activity_job_id()) if activity_job_id() in names else len(names)
    if quota.jobs is None or own < quota.jobs:
        return ""
    ends = own - quota.jobs + 1
    ending = "one of them has" if ends == 1 else f"{ends} of them have"
    return (
        f"Team {team} may have {count_noun(quota.jobs, 'job')} at once, and started before this "
        f"one are {first_few(names[:own], 5)}. It begins once {ending} ended."
    )
