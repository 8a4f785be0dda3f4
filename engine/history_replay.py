"""Replays the histories of a job offline, and keeps what its workflow commands.

The SDK's replay compares the kinds and the order of commands with a history. It does not compare
what is in them, and a history has no arguments of local activities: both are in what is kept here.
"""

from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, field

from temporalio.api.common.v1 import Payload
from temporalio.bridge.proto.workflow_activation import WorkflowActivation
from temporalio.bridge.proto.workflow_commands import WorkflowCommand
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion
from temporalio.client import WorkflowHistory
from temporalio.converter import DataConverter
from temporalio.worker import Replayer, WorkflowInstance, WorkflowInstanceDetails

from engine.connection import plain_connection_runtime
from engine.service import job_workflows
from engine.workflow_runner import JobWorkflowRunner, WrappedInstance
from protocol.short_text import one_line

MAX_REASON = 300


@dataclass(frozen=True)
class ReplayedCall:
    """An activity that the workflow calls."""

    activity_id: str
    name: str
    arguments: list[Payload]
    local: bool


@dataclass
class ReplayedRun:
    """What the workflow did in the replay of one run."""

    calls: dict[str, ReplayedCall] = field(default_factory=dict)
    """By activity id, in order."""
    end: str = ""
    """The command that ended the run, such as `complete_workflow_execution`; empty without one."""
    end_payloads: list[Payload] = field(default_factory=list)
    """Its result, or the arguments of the next run."""
    failure: str = ""
    """Why the history is none of this workflow; empty if it is."""


async def replay_runs(
    histories: Sequence[WorkflowHistory], converter: DataConverter
) -> list[ReplayedRun]:
    """Replay the runs of a workflow with the workflows of this version."""
    runner = _RecordingRunner()
    replayer = Replayer(
        workflows=job_workflows(),
        data_converter=converter,
        workflow_runner=runner,
        runtime=plain_connection_runtime(),
    )

    async def each_history() -> AsyncIterator[WorkflowHistory]:
        for history in histories:
            runner.run = ReplayedRun()
            yield history

    runs = []
    async with replayer.workflow_replay_iterator(each_history()) as results:
        async for result in results:
            if result.replay_failure:
                runner.run.failure = one_line(str(result.replay_failure), MAX_REASON)
            runs.append(runner.run)
    return runs


class _RecordingRunner(JobWorkflowRunner):
    """The runner of workers, with a record of what the run commands."""

    def __init__(self) -> None:
        super().__init__()
        self.run = ReplayedRun()

    def create_instance(self, det: WorkflowInstanceDetails) -> WorkflowInstance:
        return _RecordingInstance(super().create_instance(det), self.run)


class _RecordingInstance(WrappedInstance):
    def __init__(self, inner: WorkflowInstance, run: ReplayedRun) -> None:
        super().__init__(inner)
        self._run = run

    def activate(self, act: WorkflowActivation) -> WorkflowActivationCompletion:
        completion = super().activate(act)
        for command in completion.successful.commands:
            _record_command(self._run, command)
        return completion


def _record_command(run: ReplayedRun, command: WorkflowCommand) -> None:
    """Keep a command; its payloads are copied, because a codec changes them in place."""
    match command.WhichOneof("variant"):
        case "schedule_activity":
            called = command.schedule_activity
            arguments = _copies(called.arguments)
            run.calls[called.activity_id] = ReplayedCall(
                called.activity_id, called.activity_type, arguments, local=False
            )
        case "schedule_local_activity":
            local = command.schedule_local_activity
            run.calls[local.activity_id] = ReplayedCall(
                local.activity_id, local.activity_type, _copies(local.arguments), local=True
            )
        case "complete_workflow_execution":
            run.end = "complete_workflow_execution"
            run.end_payloads = _copies([command.complete_workflow_execution.result])
        case "continue_as_new_workflow_execution":
            run.end = "continue_as_new_workflow_execution"
            run.end_payloads = _copies(command.continue_as_new_workflow_execution.arguments)
        case "fail_workflow_execution" | "cancel_workflow_execution" as kind:
            run.end = str(kind)


def _copies(payloads: Iterable[Payload]) -> list[Payload]:
    copies = []
    for payload in payloads:
        copy = Payload()
        copy.CopyFrom(payload)
        copies.append(copy)
    return copies
