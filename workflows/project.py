"""The project: several jobs on one piece of work, decided from its state without asking a person.

    prepare → { what the form says is next → child jobs → look into their work → merge } → result

It plans nothing and writes no product. Which job is begun next, and whether a job's work counts,
is said by the pure functions of its form (`workflows.forms`) from the record; the loop below
carries that out. What people send is attended to between moves, and reaches the children.
"""

from __future__ import annotations

import asyncio
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ApplicationError

from protocol.payloads import Refused, read, read_input
from protocol.project import (
    BRIEF,
    MOST_TOLD,
    MOST_WAITS,
    Asked,
    ChildReport,
    Ended,
    ProjectOutcome,
    ProjectRecord,
    Running,
    Told,
)
from protocol.project_requests import ProjectPrepareRequest, Work
from protocol.project_start import ProjectStart
from protocol.record import Waiting
from protocol.text import one_line, start_of
from workflows import parking, pipeline, project_status, shares, traces
from workflows.forms import FORMS, OF_FORM
from workflows.lifecycle import to_its_end
from workflows.moves import (
    Assign,
    End,
    Park,
    Wait,
    begin,
    keep_open,
    merge_message,
    note_attempt,
    problems,
    shortened,
)
from workflows.parking import StepFailed
from workflows.project_lifecycle import ProjectLifecycle
from workflows.project_steps import Child, outcome
from workflows.start import Start


@workflow.defn(name="Project")
class Project(ProjectLifecycle):
    """Runs several agents on one piece of work. Input: {"form": "…", "instructions": "…"}."""

    def __init__(self) -> None:
        super().__init__()
        self._children: dict[str, Child] = {}
        self._watchers: dict[str, asyncio.Task[None]] = {}
        self._start = Start(self._steps, self._inbox)

    @workflow.run
    async def run(self, *start: Any) -> dict[str, Any]:
        """From start to result; see the module."""
        self._project = await self._begin(start)
        self._form = FORMS[self._project.start.form]
        return await self._until_result(self._project)

    @workflow.query(description="What `starter.py show --json` prints.")
    def status(self) -> dict[str, Any]:
        """Where the project stands."""
        project = getattr(self, "_project", None)
        if project is None:
            return project_status.preparing(self._inbox, self._start.waiting)
        return project_status.status(project, self._inbox)

    @workflow.signal(description="Sent by the jobs of the project.")
    def report(self, *payload: Any) -> None:
        """Take in how a child stands."""
        try:
            told = read(ChildReport, payload[0] if payload else None, "signal report")
        except Refused as refusal:
            self._inbox.refuse(str(refusal))
            return
        project = getattr(self, "_project", None)
        run = project.running.get(told.job) if project else None
        if run is None:
            self._inbox.refuse(f"signal report: {told.job[:100]} is no job at work here")
            return
        self._count_time()
        self._note_wait(run, told)
        run.seen = told
        self._news = True

    def _note_wait(self, run: Running, told: ChildReport | None) -> None:
        """Keep for what and how long a job has waited, once it goes on or is over."""
        reason = told.waiting if told else None
        if run.waits and run.waits.reason != reason:
            run.waits.seconds = round(workflow.time() - run.waits.since)
            self._project.waits = [*self._project.waits, run.waits][-MOST_WAITS:]
            run.waits = None
        if told and reason and not run.waits:
            message = one_line(told.message, 300)
            run.waits = Asked(
                job=run.job, reason=reason, message=message, since=round(workflow.time())
            )

    async def _begin(self, start: tuple[Any, ...]) -> ProjectRecord:
        if (taken_over := self._taken_over(ProjectRecord, start)) is not None:
            return taken_over
        try:
            asked = read_input(ProjectStart, start, "project", '{"form": "…", "instructions": "…"}')
            chain = workflow.info().first_execution_run_id
            made = await self._start.prepared(
                lambda: self._steps.begin(ProjectPrepareRequest(start=asked, chain=chain)),
                title=asked.title,
                agent=f"project ({asked.form})",
            )
        except Refused as refusal:
            raise ApplicationError(str(refusal), type="BadStart", non_retryable=True) from None
        except StepFailed as failed:
            raise ApplicationError(failed.message, type="BadStart", non_retryable=True) from None
        project = ProjectRecord(
            # From here on these are in the scope and in a file: all would not fit into one payload.
            start=asked.model_copy(update={"items": [], "instructions": BRIEF}),
            id=workflow.info().workflow_id,
            title=made.title,
            root=made.root,
            repository=made.repository,
            head=made.commit,
            state=made.state,
            stages=pipeline.stages(asked),
            scope=made.scope,
            limits=asked.limits,
            clock=workflow.now().timestamp(),
            search_attributes=made.search_attributes,
            notifying=made.notifying,
        )
        self._show(project)
        return project

    async def _advance(self) -> None:
        project = self._project
        await self._attend()
        try:
            if project.ended:
                self._show(project)
                await self._settle(project.ended[0])
            elif not await self._move():
                await self._wait()
        except StepFailed as failed:
            self._park(parking.waiting_for(failed))
        self._count_time()
        await self._let_see()
        self._continue_as_new_if_due()

    # Moves

    async def _move(self) -> bool:
        """Carry out what the state asks for; whether there was anything."""
        project = self._project
        if self._too_long:
            return not project.running
        if traces.is_full(project):
            # The store is away. Nothing new is begun, and once no job is at work the project waits.
            if not project.running:
                await self._stored()
            return not project.running
        moves = self._form.next_moves(project)
        if begins := [move for move in moves if isinstance(move, Assign)]:
            part = shares.share(project, len(begins))
            if isinstance(part, Waiting):
                if not project.running:
                    project.waiting = part
                return not project.running
            for move in begins:
                await self._begin_child(move, part)
            return True
        only = moves[0]
        if isinstance(only, Park):
            project.waiting = Waiting(
                reason="review",
                message=only.message,
                remedy="Look at its jobs; resume lets it try again, or cancel the project.",
            )
        elif isinstance(only, End) and await self._stored():
            await self._close(only.status)
        return not isinstance(only, Wait)

    async def _begin_child(self, move: Assign, part: dict[str, float]) -> None:
        project = self._project
        begin(project, move)
        self._form.begun(project, move)
        run = Running(
            unit=move.unit,
            role=move.role,
            job=move.job,
            handoff=move.handoff,
            since=workflow.time(),
            after=project.seconds,
            share=part,
            seen=ChildReport(job=move.job),
        )
        project.running[move.job] = run
        child = await self._steps.start_child(project, move, shares.as_settings(part))
        if isinstance(child, str):
            project.ended.append(Ended(job=move.job, status="failed", reason=child))
            return
        self._children[move.job] = child
        self._watchers[move.job] = asyncio.create_task(self._watch(run, child))
        self._show(project)

    async def _watch(self, run: Running, child: Child) -> None:
        """Wait for a child, but not beyond its deadline."""
        if late := await self._is_late(run, child):
            await self._steps.cancel_child(run.job)
        ended = await outcome(run, child)
        if late and ended.status != "completed":
            ended.status, ended.reason = "late", "the deadline passed"
            # The item goes back to what it was before.
            ended.checkpoint, ended.phases = "", 0
        self._count_time()
        self._project.ended.append(ended)
        self._news = True

    async def _wait(self) -> None:
        """Wait until a child has something to say, or a person."""
        await workflow.wait_condition(
            lambda: (
                bool(self._inbox.letters or self._inbox.refused or self._project.ended)
                or self._news
            )
        )
        # Only now: what was told while something else was under way is news as well.
        self._news = False
        await self._share_out()

    async def _settle(self, ended: Ended) -> None:
        """Look into a child's work, merge what is accepted, and go on from there."""
        project = self._project
        run = project.running[ended.job]
        work = await self._steps.take(project, run, ended) if ended.checkpoint else None
        if work:
            # Now: begun anew, it finds its summary kept, and takes it for one that was paid for.
            project.usage.add(work.usage)
        # On copies, since the steps below can fail and are then begun anew.
        after = project.model_copy(deep=True)
        before = {unit.id: unit.model_dump() for unit in project.units}
        why = problems(ended, work)
        if commit := self._form.settle(after, run, ended, work):
            assert work
            message = merge_message(after, run, work)
            made = await self._steps.merge(after, run, commit, message)
            if made.conflicts:
                why = [f"it collides with accepted work in {', '.join(made.conflicts[:20])}"]
            else:
                after.head = made.commit
            self._form.merged(after, run, made.conflicts, made.commit)
        note_attempt(after, run, ended, work, why)
        shortened(after.units)
        changed = [unit.id for unit in after.units if unit.model_dump() != before.get(unit.id)]
        if changed:
            story = project_status.story(after, run, ended)
            after.state = await self._steps.write_state(after, changed, story)
        for name in (*OF_FORM, "head", "state"):
            setattr(project, name, getattr(after, name))
        self._close_account(run, ended, work, why)
        await self._keep_traces()

    def _close_account(self, run: Running, ended: Ended, work: Work | None, why: list[str]) -> None:
        """Settle what a job used, and tell people what came of it."""
        project = self._project
        project.usage.add(ended.usage)
        self._note_wait(run, None)
        del project.running[run.job]
        project.ended = [other for other in project.ended if other.job != ended.job]
        self._children.pop(run.job, None)
        self._watchers.pop(run.job, None)
        status = "accepted"
        if why:
            status = "sent back" if ended.status == "completed" else ended.status
            self._inbox.notice(f"{run.job} {status}: {one_line('; '.join(why), 400)}")
        elif work:
            project.results = [*project.results, f"{run.handoff.id}: {work.summary}"][-3:]
            keep_open(project, run, ended, work)
        self._tell_of(run, status, ended.reason or (work.summary if work else ""))
        traces.of_handoff(project, run, ended, why, workflow.info().run_id)

    def _tell_of(self, run: Running, status: str, summary: str) -> None:
        """Tell people what became of a job that is over."""
        told = Told(
            job=run.job,
            agent=run.handoff.to_agent,
            unit=run.unit,
            status=status,
            summary=start_of(summary, 300),
        )
        self._project.told = [*self._project.told, told][-MOST_TOLD:]

    # Ends

    async def _close(
        self, status: ProjectOutcome, reason: str = "", *, cancel: bool = False
    ) -> None:
        project = self._project
        result = project_status.result(project, status, reason)
        made = await to_its_end(self._steps.finish(project, result, cancel=cancel))
        result.commit, project.state = project.head, made.commit
        project.result = result

    async def _end_children(self) -> None:
        """Cancel those at work, and see them end."""
        for job, child in self._children.items():
            if not child.done():
                await self._steps.cancel_child(job)
        if self._watchers:
            await workflow.wait(self._watchers.values())

    async def _cancelled(self, reason: str, *, by_signal: bool) -> None:
        """Cancel the children, write the result down; only the server can then close it so."""
        project = self._project
        await to_its_end(self._end_children())
        over = {ended.job: ended for ended in project.ended}
        for run in project.running.values():
            # One that is not among them was cancelled before it had begun.
            ended = over.get(run.job) or Ended(job=run.job, status="cancelled")
            project.usage.add(ended.usage)
            self._note_wait(run, None)
            self._tell_of(run, ended.status, ended.reason)
        project.running, project.ended, project.waiting = {}, [], None

        async def close() -> None:
            await self._close("cancelled", reason, cancel=by_signal)

        await self._write_down(project, close, by_signal=by_signal)
