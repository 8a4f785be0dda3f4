"""The activities of a job: their requests, and the lines that Temporal Web shows for them."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from temporalio import workflow

from protocol import endings, requests
from protocol.data_model import Data
from protocol.helpers import DELEGATE, Helper, HelperReply, HelperRequest
from protocol.job_record import JobRecord
from protocol.job_state import Remark
from protocol.prepare_requests import PrepareReply, PrepareRequest, SetModelReply, SetModelRequest
from protocol.publishing import BranchResult, PublishRequest
from protocol.short_text import count_noun
from protocol.tools import ToolRoute
from protocol.trace_requests import StoreTracesReply, StoreTracesRequest, Trace
from protocol.waiting import WaitState, WaitTimer
from workflows.rules import budget, compaction, text_replies
from workflows.runtime import activity_table as table
from workflows.runtime import acts
from workflows.runtime.activity_calls import (
    ActivityCalls,
    activity_summary,
    checkpoint_request_fields,
    position_request_fields,
)
from workflows.runtime.activity_failures import StepFailed
from workflows.runtime.activity_table import R


class JobSteps(ActivityCalls):
    """The activities of one job, as coroutines from checkpoint to checkpoint."""

    async def prepare_job(self, request: PrepareRequest) -> PrepareReply:
        what = f"start {request.agent}"
        if fork := request.fork:
            what = f"fork {fork.job[:100]} from {fork.place}"
        seconds = table.FETCH_SECONDS if request.repository else 0
        return await self.run_activity(table.PREPARE, request, what, seconds=seconds)

    async def model_call(self, job: JobRecord) -> requests.ModelReply:
        request = requests.ModelRequest(**{**position_request_fields(job), "step": job.step + 1})
        parts = (job.person_edits, job.next_correction, budget.limits_running_low(job))
        if text := "\n".join(filter(None, parts)):
            request.correction = text
        if job.course.narrowed_issue:
            request.only = job.course.narrowed_to
        if text_replies.must_reply_with_call(job):
            request.must_call = True
        if compaction.is_compaction_exhausted(job):
            request.compaction_exhausted = True
        seconds = table.model_activity_seconds(job)
        return await self._run_step(job, table.MODEL_CALL, request, "model call", seconds)

    async def ask_helper(self, job: JobRecord, helper: Helper, *, last: bool) -> HelperReply:
        """Request one reply of a helper."""
        request = HelperRequest(
            **position_request_fields(job), call=helper.call, number=helper.replies
        )
        request.tree = helper.tree
        if last:
            request.last = True
        what = f"helper {helper.call - job.next_call + 1}, call {helper.replies + 1}"
        seconds = job.limits.model_seconds + table.TEN_MINUTES
        return await self._run_step(job, table.ASK_HELPER, request, what, seconds)

    async def compact_context(self, job: JobRecord, *, hard: bool = False) -> requests.CompactReply:
        """Compact the context; `hard` if the endpoint said that it is too long."""
        limit = job.context_limit
        request = requests.CompactRequest(**position_request_fields(job), limit=limit)
        if hard:
            request.hard, request.limit = True, min(limit, job.context)
        what, seconds = f"compact {job.context:,} tokens", table.model_activity_seconds(job, 2)
        return await self._run_step(job, table.COMPACT, request, what, seconds)

    async def call_tool(
        self,
        job: JobRecord,
        call: requests.Call,
        route: ToolRoute,
        refusal: str | None = None,
        answer: str | None = None,
        *,
        refused_by: requests.RefusedBy = "",
        approved: bool = False,
    ) -> requests.ToolReply:
        """Run one tool call, or record its refusal or answer."""
        request = self._tool_request(job, refusal, refused_by)
        if approved:
            request.approved = True
        if answer is not None:
            request.answer = answer
        if refusal and job.reopening:
            request.reopen = job.reopening
        start = job.start_call()
        if (start.run_id, start.commit) != (job.run_id, job.commit):
            # A person's remark or edits moved the checkpoint in between.
            request.effect_key = start.effect_key
        if start.has_run:
            request.has_run = True
        if call.tool == DELEGATE and (helper := job.helper):
            request.helper, request.guards_passed = helper.tree, route.guarded
        elif job.pending:
            # Its guards have let it pass, or it would not be running.
            request.pending, request.guards_passed = job.pending, True
        elif job.timer:
            request.waited_seconds = job.timer.seconds
            if route.guarded:
                request.guards_passed = True
        summary = activity_summary(job, f"{call.line} refused" if refusal else call.line)
        attempts = job.limits.tool_attempts
        tool = table.Activity(call.tool, requests.ToolReply, attempts, route.seconds, is_tool=True)
        run = self.run_local_activity if route.local or refusal else self.run_activity
        return await run(tool, request, summary)

    async def give_up_task(self, job: JobRecord) -> None:
        """Tell a server that its task is no longer needed; failure does not matter."""
        route = job.route(job.calls[job.next_call].tool) if job.pending else None
        if route is None or job.pending is None or not job.pending.task:
            return
        request = self._tool_request(job, None)
        request.pending, request.gives_up, request.guards_passed = job.pending, True, True
        with suppress(StepFailed):
            tool = table.Activity(route.name, requests.ToolReply, 1, route.seconds)
            await self._run_step(job, tool, request, f"{route.name} is given up")

    def begin_timer(self, call: requests.Call) -> WaitTimer:
        """Return when a call of `wait` that begins now ends."""
        now = workflow.time()
        ends = now + (call.seconds or 0)
        if call.until is not None:
            ends = max(now, min(ends, call.until))
        return WaitTimer(started=now, ends=ends)

    async def sleep_until(
        self, job: JobRecord, timer: WaitTimer, most: float, woken: Callable[[], bool]
    ) -> bool:
        """Wait for at most so long; return whether the timer is over, and not only interrupted."""
        remaining = timer.ends - workflow.time()
        if remaining <= 0:
            return True
        if woken():
            return False
        summary = activity_summary(job, f"wait {timer.seconds:,} s")
        try:
            await workflow.wait_condition(
                woken, timeout=min(remaining, most), timeout_summary=summary
            )
            over = False
        except TimeoutError:
            over = remaining <= most
        self.may_continue_as_new = True
        return over

    async def deny_call(
        self, job: JobRecord, call: requests.Call, refusal: str, refused_by: requests.RefusedBy
    ) -> requests.ToolReply:
        """Answer a call that no activity may run."""
        request = self._tool_request(job, refusal, refused_by)
        summary = activity_summary(job, f"{call.line} denied")
        denial = table.Activity("deny_call", requests.ToolReply, job.limits.tool_attempts, 10)
        return await self.run_local_activity(denial, request, summary)

    async def show_call(self, job: JobRecord) -> requests.ShowCallReply:
        request = requests.ShowCallRequest(**position_request_fields(job), call=job.next_call)
        return await self._run_step(job, table.SHOW_CALL, request, "ask a person")

    async def check_approval(
        self, job: JobRecord, tool: str, statement: str, signature: str
    ) -> requests.CheckApprovalReply:
        """Return who signed an approval, or why the signature approves nothing."""
        request = requests.CheckApprovalRequest(
            **position_request_fields(job),
            tool=tool,
            statement=statement,
            signature=signature,
            starter=job.starter,
        )
        return await self._run_step(job, table.CHECK_APPROVAL, request, "check a signature")

    async def store_traces(self, job: JobRecord, handed: list[Trace]) -> StoreTracesReply:
        """Store the job's traces; the store takes each once."""
        request = StoreTracesRequest(
            **checkpoint_request_fields(job),
            agent=job.agent,
            task=job.title,
            project=job.project,
            traces=handed,
        )
        what = count_noun(len(handed), "trace")
        return await self._run_step(job, table.STORE_TRACES, request, what)

    async def keep_remarks(
        self, job: JobRecord, remarks: list[Remark], items: list[str]
    ) -> requests.RemarksReply:
        """Write people's remarks into the job's instructions."""
        request = requests.RemarksRequest(
            **position_request_fields(job), remarks=remarks, items=items
        )
        return await self._run_step(job, table.KEEP_REMARKS, request, "a person speaks")

    async def find_checkpoint(self, job: JobRecord) -> requests.RecoverReply:
        candidates = [*job.recent_checkpoints[::-1], *list(job.phases.values())[::-1]]
        request = requests.RecoverRequest(**checkpoint_request_fields(job), candidates=candidates)
        return await self.run_activity(table.FIND_CHECKPOINT, request, "look for a checkpoint")

    async def show_folder(self, job: JobRecord) -> requests.FolderReply:
        request = requests.JobPosition(**position_request_fields(job))
        return await self.run_activity(table.SHOW_FOLDER, request, "show the folder")

    async def take_folder(self, job: JobRecord, by: str) -> requests.ImportReply:
        request = requests.TakeFolderRequest(**position_request_fields(job), by=by)
        return await self.run_activity(table.TAKE_FOLDER, request, "take the folder")

    async def set_model(self, job: JobRecord, settings: dict[str, Any]) -> SetModelReply:
        request = SetModelRequest(**position_request_fields(job), set=settings)
        return await self._run_step(job, table.SET_MODEL, request, "settings of the model")

    async def write_error(
        self, job: JobRecord, waiting: WaitState, failed: StepFailed | None = None
    ) -> None:
        """Leave details in `errors/` for people; failure does not matter."""
        waiting = waiting.of_job(job.id)
        request = requests.WriteErrorRequest(
            **position_request_fields(job), text=f"{waiting.message}\n\n{waiting.remedy}\n"
        )
        if job.next_call < len(job.calls):
            request.call = job.next_call
        if failed:
            request.cause = "\n".join(failed.causes)
        with suppress(StepFailed):
            await self._run_step(job, table.WRITE_ERROR, request, "note the error")

    async def _run_step(
        self, job: JobRecord, row: table.Activity[R], request: Data, what: str, seconds: int = 0
    ) -> R:
        return await self.run_activity(row, request, activity_summary(job, what), seconds=seconds)

    def _tool_request(
        self, job: JobRecord, refusal: str | None, refused_by: requests.RefusedBy = ""
    ) -> requests.ToolRequest:
        request = requests.ToolRequest(**position_request_fields(job), call=job.next_call)
        if refusal:
            request.refusal, request.refused_by = refusal[:2000], refused_by or "gate"
        elif job.bypasses:
            request.bypass = list(job.bypasses)
        return request

    # Ends of phases and jobs

    async def read_gate_facts(self, job: JobRecord) -> endings.GateFactsReply:
        request = endings.FactsRequest(**position_request_fields(job))
        ends_job = False
        if job.next_call < len(job.calls):
            request.call = job.next_call
            ends_job = job.calls[job.next_call].tool == "job_complete"
        route = job.route("todo_complete")
        bounded = route is not None and route.bounded_checks and not ends_job
        run = self.run_local_activity if bounded else self.run_activity
        # The last todo's `done_when` may be a command, for which its own route has the time.
        seconds = max(60, route.seconds) if route else 60
        return await run(table.GATE_FACTS, request, activity_summary(job, "gate"), seconds=seconds)

    async def judge_ending(
        self,
        job: JobRecord,
        route: ToolRoute,
        points: list[endings.GuardPoint],
        *,
        approved: bool = False,
        push_approved: bool = False,
    ) -> endings.EndingVerdict:
        """Ask the guards of the current call, which the workflow acts on."""
        request = endings.EndingRequest(
            **position_request_fields(job),
            points=points,
            approved=approved,
            push_approved=push_approved,
            publish=job.publish,
            bypass=list(job.bypasses),
            stop_hook_active=job.stop_hook_active,
        )
        if job.next_call < len(job.calls):
            request.call = job.next_call
        run = self.run_local_activity if route.bounded_checks else self.run_activity
        return await run(
            table.JUDGE_ENDING,
            request,
            activity_summary(job, f"guards of {route.name}"),
            seconds=route.seconds + 30,
            attempts=job.limits.tool_attempts,
        )

    async def run_transition(
        self, job: JobRecord, request: endings.TransitionRequest
    ) -> endings.TransitionReply:
        what = f"{request.outcome}; phase {request.number} ({request.purpose}) begins"
        return await self._run_step(job, table.TRANSITION, request, what)

    async def close_job(
        self, job: JobRecord, outcome: endings.Outcome, **details: Any
    ) -> endings.CloseReply:
        if job.has_repository:
            details["starts"] = job_phase_starts(job)
        used = job.usage.model_copy()
        if "call" in details:
            # The call that ends the job is part of the result, which is written before it counts.
            used.tool_calls += 1
        request = endings.CloseRequest(
            **position_request_fields(job),
            status=outcome,
            acts=acts.acts_in_phase(job),
            phases=job.last_phase,
            rewinds=job.rewinds,
            usage=used,
            **details,
        )
        return await self._run_step(job, table.CLOSE_JOB, request, f"job {outcome}")

    async def publish_branch(self, job: JobRecord, call: int) -> BranchResult:
        """Push the job's work as a branch, once."""
        request = PublishRequest(
            **position_request_fields(job),
            call=call,
            publish=job.publish,
            starts=job_phase_starts(job),
        )
        return await self._run_step(job, table.PUBLISH_BRANCH, request, "publish")

    async def reflect_on_failure(
        self, job: JobRecord, issue: str, call: int | None, *, has_findings: bool
    ) -> endings.ReflectReply:
        """Reflect on a failed attempt; failure does not hold up the job."""
        request = endings.ReflectRequest(**position_request_fields(job), issue=issue[:2000])
        if has_findings:
            request.has_findings = True
        if call is not None:
            request.call = call
        seconds = table.model_activity_seconds(job, 2)
        return await self._run_step(job, table.REFLECT, request, "reflection", seconds)

    async def review_job(self, job: JobRecord, number: int, *, last: bool) -> endings.ReviewReply:
        """Request one reply of the reviewer."""
        request = endings.ReviewRequest(
            **position_request_fields(job),
            call=job.next_call,
            number=number,
            since=job.phases[min(job.phases)],
        )
        if last:
            request.last = True
        what, seconds = f"review call {number + 1}", table.model_activity_seconds(job)
        return await self._run_step(job, table.REVIEW_JOB, request, what, seconds)

    async def judge_phase(self, job: JobRecord) -> endings.JudgeReply:
        """Ask the judge about the phase that the current call would end."""
        since = job.phases[job.state.phase.number]
        request = endings.JudgeRequest(
            **position_request_fields(job), call=job.next_call, since=since
        )
        seconds = table.model_activity_seconds(job) + 30
        return await self._run_step(job, table.JUDGE_PHASE, request, "judge", seconds)


def job_phase_starts(job: JobRecord) -> list[str]:
    """Return the start checkpoints of the job's phases, in order."""
    return [commit for _, commit in sorted(job.phases.items())]
