"""Watches the runs of a trial: what they use together, and which of them wait for a person."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import timedelta
from typing import Any

from temporalio import activity
from temporalio.client import Client, WorkflowQueryFailedError
from temporalio.service import RPCError

from activities.job.activity_context import activity_job_id
from activities.runtime.failures import typed_failures
from activities.runtime.heartbeats import AttemptSuperseded, heartbeats
from protocol.requests import Usage
from protocol.trial import TrialLimits, TrialRun, WatchTrialReply, WatchTrialRequest

LOOK_SECONDS = 0.5
"""Between two looks, at least. What the runs use meanwhile can exceed a limit."""
RUN_SECONDS = 0.05
"""More for each run at work, since a worker has to answer for each."""
ANSWER = timedelta(seconds=5)
MOST_QUERIES = 8
"""Queries at the same time."""


@activity.defn
async def watch_trial(request: WatchTrialRequest) -> WatchTrialReply:
    """Return when a limit is reached, or when other runs wait for a person than the trial knows.

    It changes nothing, so that an attempt may be repeated at any moment.
    """
    with typed_failures():
        async with heartbeats():
            try:
                return await _watch_trial_news(request)
            except asyncio.CancelledError:
                details = activity.cancellation_details()
                if details and details.not_found:
                    # The trial is over: not worth a traceback in the worker's log.
                    raise AttemptSuperseded from None
                raise


async def _watch_trial_news(request: WatchTrialRequest) -> WatchTrialReply:
    watch = TrialWatch(activity.client(), activity_job_id())
    while True:
        await watch.look()
        reached = reached_trial_limit(request.limits, watch.total)
        if reached or watch.waiting != request.waiting:
            return WatchTrialReply(waiting=watch.waiting, reached=reached)
        await asyncio.sleep(LOOK_SECONDS + RUN_SECONDS * watch.running)


class TrialWatch:
    """What is known of a trial's runs; a run that has ended is asked once."""

    def __init__(self, client: Client, trial: str) -> None:
        self._client = client
        self._trial = trial
        self._usages: dict[str, Usage] = {}
        self._settled: set[str] = set()
        self._slots = asyncio.Semaphore(MOST_QUERIES)
        self.running = 0
        """Number of runs at work."""
        self.waiting: dict[str, str] = {}
        """Why runs at work wait for a person, by job."""

    @property
    def total(self) -> Usage:
        """What all runs have used."""
        total = Usage()
        for usage in self._usages.values():
            total.add(usage)
        return total

    async def look(self) -> None:
        """Ask the trial for its runs, and those for their status."""
        status = await self._query_status(self._trial) or {}
        runs = [TrialRun.model_validate(run) for run in status.get("runs") or []]
        begun = [run for run in runs if run.status not in ("pending", "unstarted")]
        await asyncio.gather(*(self._look_into(run) for run in begun))
        running = {run.job for run in begun if run.status == "running"}
        self.running = len(running)
        self.waiting = {job: why for job, why in self.waiting.items() if job in running}

    async def _look_into(self, run: TrialRun) -> None:
        if run.job in self._settled:
            return
        if run.usage is not None:
            self._usages[run.job] = run.usage
            self._settled.add(run.job)
            return
        status = await self._query_status(run.job)
        if status is None:
            return
        if usage := status.get("usage"):
            known = {key: usage[key] for key in Usage.model_fields if key in usage}
            self._usages[run.job] = Usage.model_validate(known)
        if run.status != "running":
            self._settled.add(run.job)
            return
        waiting = status.get("waiting") or {}
        self.waiting.pop(run.job, None)
        if waiting and not waiting.get("trying"):
            self.waiting[run.job] = str(waiting.get("reason"))

    async def _query_status(self, workflow_id: str) -> dict[str, Any] | None:
        """Return the answer of the query; None if there is none now, as right after a start."""
        async with self._slots:
            with suppress(RPCError, WorkflowQueryFailedError):
                answer = await self._client.get_workflow_handle(workflow_id).query(
                    "status", result_type=dict[str, Any], rpc_timeout=ANSWER
                )
                return answer if isinstance(answer, dict) else None
        return None


def reached_trial_limit(limits: TrialLimits, used: Usage) -> str:
    """Return which limit is reached, in a sentence; empty if none is."""
    amounts: dict[str, float] = {
        "model_calls": used.model_calls,
        "tool_calls": used.tool_calls,
        "tokens": used.prompt_tokens + used.completion_tokens,
        "cost": used.cost,
    }
    for key, amount in amounts.items():
        limit = getattr(limits, key)
        if limit is not None and amount >= limit:
            name = key.replace("_", " ")
            return f"the trial's limit of {limit:,.10g} {name} was reached"
    return ""
