"""Watches the runs of a trial: which of them wait, and what those that ended have used."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress
from datetime import timedelta
from typing import Any

from temporalio import activity
from temporalio.client import Client, WorkflowQueryFailedError
from temporalio.service import RPCError

from activities.job.activity_context import activity_job_id
from activities.runtime.failures import typed_failures
from activities.runtime.heartbeats import AttemptSuperseded, heartbeats
from protocol.trial_status import TrialRun, WatchTrialReply, WatchTrialRequest
from protocol.usage import Usage

LOOK_SECONDS = 0.5
"""Between two looks, at least."""
RUN_SECONDS = 0.05
"""More for each run at work, since a worker has to answer for each."""
ANSWER = timedelta(seconds=5)
MOST_QUERIES = 8
"""Queries at the same time."""
MOST_TRIES = 20
"""Looks after which an ended run that does not answer is given up."""


@activity.defn
async def watch_trial(request: WatchTrialRequest) -> WatchTrialReply:
    """Return once a run waits, goes on or has used what the trial does not know.

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
    watch = TrialWatch(activity.client(), activity_job_id(), request.lost)
    while True:
        if await watch.look():
            return watch.reply
        await asyncio.sleep(LOOK_SECONDS + RUN_SECONDS * watch.running)


class TrialWatch:
    """What the runs of a trial say of themselves; one that has ended is asked once."""

    def __init__(self, client: Client, trial: str, lost: list[str]) -> None:
        self._client = client
        self._trial = trial
        self._tries: Counter[str] = Counter()
        """Queries that an ended run has not answered, by job."""
        self._slots = asyncio.Semaphore(MOST_QUERIES)
        self.running = 0
        """Number of runs at work."""
        self._waiting: dict[str, str] = {}
        self._needs: dict[str, dict[str, float]] = {}
        self._idle: dict[str, dict[str, float]] = {}
        self._usages: dict[str, Usage] = {}
        self._lost = lost
        self._is_paused = False
        """Whether the trial is paused: its runs keep their shares meanwhile."""

    @property
    def reply(self) -> WatchTrialReply:
        """What the last look has shown."""
        return WatchTrialReply(
            waiting=self._waiting,
            needs=self._needs,
            idle=self._idle,
            usages=self._usages,
            lost=self._lost,
        )

    async def look(self) -> bool:
        """Ask the trial for its runs, and those for their status; return whether there is news."""
        status = await self._query_status(self._trial) or {}
        runs = [TrialRun.model_validate(run) for run in status.get("runs") or []]
        started = [run for run in runs if run.status not in ("pending", "unstarted")]
        self.running = sum(run.status == "running" for run in started)
        self._waiting, self._needs, self._idle = {}, {}, {}
        self._is_paused = bool(status.get("waiting"))
        news = await asyncio.gather(*(self._look_into(run) for run in started))
        return any(news)

    async def _look_into(self, run: TrialRun) -> bool:
        """Ask a run; return whether the trial does not know the answer."""
        if run.status != "running":
            return run.usage is None and await self._look_into_ended(run.job)
        status = await self._query_status(run.job)
        if status is None:
            # The trial's own knowledge stands.
            self._note_run(run.job, run.waiting, run.needs)
            return False
        waiting = status.get("waiting") or {}
        for_share = waiting.get("reason") == "share"
        for_person = bool(waiting) and not waiting.get("trying") and not for_share
        may_release = run.lowered or (for_person and not self._is_paused)
        used, share = None, run.share
        if may_release and (for_person or for_share):
            used = _used_of_share(status, run.lowered or run.share)
        if used is not None:
            self._idle[run.job] = used
            if run.lowered:
                share = {key: max(least, used[key]) for key, least in run.lowered.items()}
        reason = str(waiting.get("reason")) if for_person else ""
        needs = {}
        for key, needed in (waiting.get("needs") or {}).items():
            # Else the trial has sent it a larger share, which it has not taken yet.
            if for_share and needed > share.get(key, needed):
                needs[key] = float(needed)
        self._note_run(run.job, reason, needs)
        is_idle_news = used is not None and (bool(run.lowered) or not run.released)
        return is_idle_news or reason != run.waiting or needs != run.needs

    def _note_run(self, job: str, reason: str, needs: dict[str, float]) -> None:
        if reason:
            self._waiting[job] = reason
        if needs:
            self._needs[job] = needs

    async def _look_into_ended(self, job: str) -> bool:
        if job in self._usages or job in self._lost:
            return False
        status = await self._query_status(job)
        usage = (status or {}).get("usage")
        if usage:
            known = {key: usage[key] for key in Usage.model_fields if key in usage}
            self._usages[job] = Usage.model_validate(known)
            return True
        self._tries[job] += 1
        if self._tries[job] >= MOST_TRIES:
            self._lost.append(job)
        return job in self._lost

    async def _query_status(self, workflow_id: str) -> dict[str, Any] | None:
        """Return the answer of the query; None if there is none now, as right after a start."""
        async with self._slots:
            with suppress(RPCError, WorkflowQueryFailedError):
                answer = await self._client.get_workflow_handle(workflow_id).query(
                    "status", result_type=dict[str, Any], rpc_timeout=ANSWER
                )
                return answer if isinstance(answer, dict) else None
        return None


def _used_of_share(status: dict[str, Any], share: dict[str, float]) -> dict[str, float] | None:
    """Return what a run has used of each limit; None unless this is the share that it knows."""
    known = (status.get("limits") or {}).get("trial") or {}
    if {key: each["limit"] for key, each in known.items()} != share or not share:
        return None
    return {key: float(each["spent"]) for key, each in known.items()}
