"""How a project stands: what people send to it, what it shows, when it goes on as new."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from temporalio import workflow

from protocol.payloads import read_project_signal
from protocol.project import ProjectRecord, Running
from protocol.record import Letter, Waiting
from protocol.state import Remark
from protocol.traces import MOST_AT_A_TIME
from workflows import notifications, parking, project_status, shares
from workflows.activity_calls import GONE
from workflows.lifecycle import CancelAsked, Lifecycle, is_cancelled
from workflows.parking import StepFailed
from workflows.project_status import at_work
from workflows.project_steps import Child, ProjectSteps

BY_REASON = {"answer": "clarification", "approve": "approval", "deny": "approval"}
"""Signals that find the child they are for by what it asks."""

MOST_REMARKS = 20
"""Of people to a project, the newest: each job that begins is told them."""


class ProjectLifecycle(Lifecycle):
    """A project between its moves."""

    _project: ProjectRecord

    def __init__(self) -> None:
        super().__init__(read_project_signal)
        self._steps = ProjectSteps()
        self._news = False

    async def _attend(self) -> None:
        """Open the letters; stand still while the project waits for a person."""
        project = self._project
        while True:
            while self._inbox.letters:
                letter = self._inbox.letters[0]
                await self._obey(letter)
                self._inbox.letters.remove(letter)
            if is_cancelled():
                raise asyncio.CancelledError
            if project.waiting is None:
                if project.notifying:
                    # The same reason from here on is another wait.
                    project.notifying.waits.pop(project.id, None)
                return
            self._count_time()
            await self._let_see()
            self._continue_as_new_if_due()
            begun = workflow.time()
            await workflow.wait_condition(
                lambda: bool(self._inbox.letters or self._inbox.refused) or self._news
            )
            self._news = False
            project.clock = workflow.now().timestamp()
            if self._is_paused:
                for run in project.running.values():
                    run.since += workflow.time() - begun

    def _count_time(self) -> None:
        """Count the time until now; before what the project waits for is another thing."""
        still = project_status.waiting(self._project) is not None
        self._project.count_time(workflow.now().timestamp(), still=still)

    def _park(self, waiting: Waiting) -> None:
        """Have the project wait; what it did until now took of its time."""
        self._count_time()
        self._project.waiting = waiting

    @property
    def _is_paused(self) -> bool:
        waiting = self._project.waiting
        return waiting is not None and waiting.reason == "paused"

    async def _is_late(self, run: Running, child: Child) -> bool:
        """Wait for a child until its deadline, if it has one; whether that passed.

        Its time stands still while a person has paused the project.
        """
        if (seconds := run.handoff.deadline) is None:
            return False
        while not child.done():
            left = run.since + seconds - workflow.time()
            with suppress(TimeoutError):
                await workflow.wait_condition(child.done, timeout=max(0.001, left))
            if child.done():
                break
            await workflow.wait_condition(lambda: child.done() or not self._is_paused)
            if run.since + seconds <= workflow.time():
                break
        return not child.done()

    async def _obey(self, letter: Letter) -> None:
        project, signal = self._project, letter.signal
        payload = {key: value for key, value in letter.payload.items() if key != "job"}
        job = letter.payload.get("job")
        if job is not None:
            if job in project.running:
                await self._forward([job], signal, payload, named=True)
            else:
                self._inbox.refuse(f"signal {signal}: {job!r} is no job at work in this project")
        elif signal == "cancel":
            raise CancelAsked(payload.get("reason") or "cancelled by a person")
        elif signal == "limit":
            payload.pop("by", None)
            project.limits = project.limits.model_copy(update=payload)
            if project.waiting and project.waiting.reason == "budget":
                project.waiting = None
            if fewer := shares.lowered(project, payload):
                await self._lower(fewer)
            await self._share_out()
        elif signal == "pause":
            project.waiting = parking.PAUSED
            await self._forward([run.job for run in at_work(project)], signal, payload)
        elif signal == "tell":
            # Who is at work hears it, and whoever begins after them.
            remark = Remark(text=payload["text"], by=payload.get("by", ""))
            project.remarks = [*project.remarks, remark][-MOST_REMARKS:]
            at_once = [run.job for run in at_work(project)]
            await self._forward(at_once, signal, payload)
            self._inbox.notice(f"told {len(at_once)} jobs at work, and those to come")
        elif signal == "resume":
            await self._resume(payload)
        else:
            await self._forward_to_who_waits(signal, payload)

    async def _resume(self, payload: dict[str, Any]) -> None:
        project = self._project
        paused = project.waiting is not None and project.waiting.reason == "paused"
        stuck = [
            run.job
            for run in at_work(project)
            if paused or run.seen.waiting not in (None, "clarification", "approval")
        ]
        if payload.get("set") and not stuck:
            self._inbox.refuse("signal resume: set is for a job, and none of the project's waits")
            return
        if project.waiting is None and not stuck:
            self._inbox.refuse("signal resume: neither the project nor a job of it is waiting")
            return
        if project.waiting and project.waiting.reason == "review":
            project.planning = 0
        project.waiting = None
        await self._forward(stuck, "resume", payload)

    async def _forward_to_who_waits(self, signal: str, payload: dict[str, Any]) -> None:
        """To the one child that it can be meant for; else a person has to name it."""
        running = self._project.running.values()
        reason = BY_REASON.get(signal)
        meant = [run.job for run in running if reason is None or run.seen.asks == reason]
        if len(meant) == 1:
            if await self._forward(meant, signal, payload, named=True):
                self._inbox.notice(f"signal {signal}: handed on to job {meant[0]}")
            return
        named = ", ".join(meant) or "none"
        self._inbox.refuse(
            f"signal {signal}: it could be meant for these jobs: {named}. Name one under `job`."
        )

    async def _forward(
        self, jobs: Sequence[str], signal: str, payload: dict[str, Any], *, named: bool = False
    ) -> bool:
        """Whether it reached them all."""
        reached = True
        for job in jobs:
            if why := await self._steps.tell(job, signal, payload):
                reached = False
                # What is for whoever is at work is not for one that has just ended.
                if named or why != GONE:
                    self._inbox.refuse(f"signal {signal}: it did not reach job {job}: {why}")
        return reached

    async def _lower(self, parts: dict[str, dict[str, float]]) -> None:
        """Take from children at work what a person's limit leaves no longer."""
        for run in at_work(self._project):
            if (part := parts.get(run.job)) and await self._forward([run.job], "limit", part):
                run.share = {**run.share, **part}

    async def _share_out(self) -> None:
        """Give children that wait for money what has become free."""
        project = self._project
        for job, part in shares.extra(project).items():
            run = project.running[job]
            seen = run.seen
            if await self._steps.tell(job, "limit", part) is None:
                run.share = {**run.share, **part}
                if run.seen is seen:
                    # Else the job has told meanwhile how it stands, which is newer.
                    run.seen = seen.model_copy(update={"waiting": None, "status": "running"})

    async def _keep_traces(self) -> bool:
        """Hand over what was noted; whether the store took it. If not it goes with the next."""
        project = self._project
        while handed := project.traces[:MOST_AT_A_TIME]:
            try:
                await self._steps.store_handoffs(project, handed)
            except StepFailed as failed:
                self._inbox.notice(f"traces are kept for later: {failed.message}")
                return False
            project.traces = project.traces[len(handed) :]
        return True

    async def _stored(self) -> bool:
        """Whether the store has all that was noted; if not, the project waits for it."""
        stored = await self._keep_traces()
        if not stored:
            self._park(parking.STORE)
        return stored

    @property
    def _too_long(self) -> bool:
        return self._is_long(self._project, self._project.start.history_events)

    def _continue_as_new_if_due(self) -> None:
        """Begin a new run once the history is long and no child is at work.

        A child reports its end to the run that began it. So nothing new is begun from then on,
        and the project goes on as new when those at work are through.
        """
        project = self._project
        if self._too_long and not project.running and project.result is None:
            self._hand_over(project)

    async def _let_see(self) -> None:
        project = self._project
        self._show(project)
        due = notifications.due_of_project(project, workflow.info().first_execution_run_id)
        await self._call_people(due, project.notifying)

    def _show(self, project: ProjectRecord) -> None:
        project.refusals += self._inbox.refused
        self._inbox.refused = 0
        details = project_status.details(project, self._inbox.notices)
        memo = project_status.memo(project)
        self._display(details, memo, project_status.attributes(project, memo))
