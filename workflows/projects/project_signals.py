"""What people's signals do to a project, and which are forwarded to its jobs."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from protocol.errors import SignalRefused
from protocol.job_state import Remark
from protocol.notices import PersonAct
from protocol.payloads import ReceivedSignal
from protocol.project_record import ProjectRecord
from protocol.project_units import Feature
from protocol.publishing import change_publish, publish_notice, split_publish_settings
from protocol.short_text import count_noun, first_few, one_line
from workflows.jobs import questions
from workflows.projects.project_steps import ProjectSteps
from workflows.rules import project_budget_shares
from workflows.runtime import acts, wait_states
from workflows.runtime.activity_calls import GONE
from workflows.runtime.cancellation import CancelRequested
from workflows.runtime.inbox import Inbox

REASON_BY_SIGNAL = {"answer": "clarification", "approve": "approval", "deny": "approval"}
"""The reason of waiting that each such signal is meant for."""

MOST_NAMED = 20
"""Most units that a refusal names."""
MAX_REMARKS = 20
"""Most remarks of people to a project, the newest: each new job gets them."""


class ProjectSignals:
    """Handles the signals of one project in order of arrival."""

    def __init__(self, project: ProjectRecord, steps: ProjectSteps, inbox: Inbox) -> None:
        self._project = project
        self._steps = steps
        self._inbox = inbox
        self._handlers: dict[str, Callable[[dict[str, Any], PersonAct], Awaitable[None]]] = {
            "limit": self._set_limits,
            "pause": self._pause,
            "tell": self._take_remark,
            "resume": self._resume,
        }

    async def handle(self, received: ReceivedSignal) -> None:
        """Apply a signal, and record who sent it and when."""
        act = acts.describe_act(received, what="project")
        try:
            await self._dispatch(received, act)
        except SignalRefused as refusal:
            act.refused = str(refusal)
        self._record_act(received, act)

    def _record_act(self, received: ReceivedSignal, act: PersonAct) -> None:
        received.act = act
        self._inbox.refused += bool(act.refused)
        if "job" not in received.payload or act.refused:
            self._inbox.notice(act.notice)

    async def _dispatch(self, received: ReceivedSignal, act: PersonAct) -> None:
        """Handle a signal, or forward it to the job that it is for."""
        signal, job = received.signal, received.payload.get("job")
        payload = {key: value for key, value in received.payload.items() if key != "job"}
        if job is not None:
            if job not in self._project.running:
                raise SignalRefused(f"{job!r} is no job at work in this project")
            await self._forward_to_job(job, signal, payload, act)
        elif signal == "cancel":
            self._record_act(received, act)
            raise CancelRequested(payload.get("reason") or "cancelled by a person")
        elif handler := self._handlers.get(signal):
            await handler(payload, act)
        elif signal in ("approve", "deny") and self._asks_to_publish:
            self._decide_on_publishing(signal, payload, act)
        else:
            await self._forward_to_waiting_job(signal, payload, act)

    async def distribute_shares(self) -> None:
        """Give freed budget to children that wait for it."""
        project = self._project
        for job, part in project_budget_shares.additional_shares(project).items():
            run = project.running[job]
            last_report = run.last_report
            if await self._steps.send_signal(job, "limit", part) is None:
                run.share = {**run.share, **part}
                if run.last_report is last_report:
                    # Otherwise the job has reported its status meanwhile, which is newer.
                    run.last_report = last_report.model_copy(
                        update={"waiting": None, "status": "running"}
                    )

    async def _set_limits(self, payload: dict[str, Any], act: PersonAct) -> None:
        project = self._project
        limits = {key: value for key, value in payload.items() if key != "by"}
        project.limits = project.limits.model_copy(update=limits)
        if project.waiting and project.waiting.reason == "budget":
            project.waiting = None
        if fewer := project_budget_shares.lowered_project_shares(project, limits):
            await self._lower_shares(fewer)
        await self.distribute_shares()

    async def _pause(self, payload: dict[str, Any], act: PersonAct) -> None:
        self._project.waiting = wait_states.paused_wait(str(payload.get("by") or ""))
        await self._forward_signal(self._jobs_at_work, "pause", payload)

    async def _take_remark(self, payload: dict[str, Any], act: PersonAct) -> None:
        """Pass a person's remark to the running jobs, and to those that begin later.

        One about a unit goes to its jobs alone; a blocked feature is tried once more with it.
        """
        project, name = self._project, payload.get("unit", "")
        unit = project.find_unit(name)
        if name and unit is None:
            known = first_few([each.id for each in project.units], MOST_NAMED) or "none yet"
            raise SignalRefused(f"unit: there is no {name!r}; there are {known}")
        remark = Remark(text=payload["text"], by=payload.get("by", ""), unit=name)
        project.remarks = [*project.remarks, remark][-MAX_REMARKS:]
        at_work = [run.job for run in project.unended_runs if name in ("", run.unit)]
        plain = {key: value for key, value in payload.items() if key != "unit"}
        await self._forward_signal(at_work, "tell", plain)
        about = f" of {name}" if name else ""
        act.did = f"told {count_noun(len(at_work), 'job')}{about} at work, and those to come,"
        if isinstance(unit, Feature) and unit.status == "blocked":
            unit.status, unit.attempts = "pending", project.start.attempts - 1
            act.did += f" and has {name} tried once more"

    async def _resume(self, payload: dict[str, Any], act: PersonAct) -> None:
        project = self._project
        paused = project.waiting is not None and project.waiting.reason == "paused"
        stuck = [
            run.job
            for run in project.unended_runs
            if paused or run.last_report.waiting not in (None, "clarification", "approval")
        ]
        settings, push = split_publish_settings(payload.get("set") or {})
        if settings and not stuck:
            raise SignalRefused("set is for a job, and none of the project's waits")
        if project.waiting is None and not stuck:
            raise SignalRefused("neither the project nor a job of it is waiting")
        if push:
            self._change_publish(push)
            payload = {**payload, "set": settings}
        if project.waiting and project.waiting.reason == "review":
            project.planning_attempts = 0
        project.waiting = None
        await self._forward_signal(stuck, "resume", payload)

    def _change_publish(self, settings: dict[str, Any]) -> None:
        """Change where the branch is pushed."""
        start = self._project.start
        if start.publish is None:
            raise SignalRefused("the project pushes no branch")
        try:
            start.publish = change_publish(start.publish, settings)
        except ValueError as error:
            raise SignalRefused(one_line(str(error), 300)) from None
        self._inbox.notice(publish_notice(start.publish))

    @property
    def _asks_to_publish(self) -> bool:
        waiting = self._project.waiting
        return waiting is not None and waiting.reason == "approval"

    def _decide_on_publishing(self, signal: str, payload: dict[str, Any], act: PersonAct) -> None:
        """Record a person's decision on pushing the project's branch."""
        project, request = self._project, payload.get("id")
        kind = "request for approval"
        if why := questions.answer_id_mismatch_reason(kind, request, project.head[:8]):
            raise SignalRefused(why)
        project.publish_decision = "approved" if signal == "approve" else "denied"
        project.waiting = None
        act.did = f"{project.publish_decision} pushing the branch"

    @property
    def _jobs_at_work(self) -> list[str]:
        return [run.job for run in self._project.unended_runs]

    async def _lower_shares(self, parts: dict[str, dict[str, float]]) -> None:
        """Reduce running children's shares to what a person's limit leaves."""
        for run in self._project.unended_runs:
            part = parts.get(run.job)
            if part and not await self._forward_signal([run.job], "limit", part):
                run.share = {**run.share, **part}

    async def _forward_to_waiting_job(
        self, signal: str, payload: dict[str, Any], act: PersonAct
    ) -> None:
        """Forward a signal to the only child it can be meant for; else a person has to name one."""
        running = self._project.running.values()
        reason = REASON_BY_SIGNAL.get(signal)
        meant = [run.job for run in running if reason is None or run.last_report.asks == reason]
        if len(meant) != 1:
            named = ", ".join(meant) or "none"
            raise SignalRefused(f"it could be meant for these jobs: {named}. Name one under `job`.")
        await self._forward_to_job(meant[0], signal, payload, act)

    async def _forward_to_job(
        self, job: str, signal: str, payload: dict[str, Any], act: PersonAct
    ) -> None:
        if why := await self._steps.send_signal(job, signal, payload):
            raise SignalRefused(f"it did not reach job {job}: {why}")
        act.to = job

    async def _forward_signal(
        self, jobs: Sequence[str], signal: str, payload: dict[str, Any]
    ) -> bool:
        """Forward a signal to jobs at work; return whether one of them is out of reach."""
        failed = False
        for job in jobs:
            why = await self._steps.send_signal(job, signal, payload)
            failed = failed or bool(why)
            # A job that has just ended is at work no more.
            if why and why != GONE:
                self._inbox.refuse(signal, f"it did not reach job {job}: {why}")
        return failed
