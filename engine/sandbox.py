"""The sandbox that workflow code runs in."""

from __future__ import annotations

from temporalio.converter import StorageDriverStoreContext
from temporalio.worker import WorkflowInstance, WorkflowInstanceDetails
from temporalio.worker._command_aware_visitor import CommandInfo
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions
from temporalio.worker.workflow_sandbox._runner import _Instance

PASSTHROUGH = ("protocol",)
"""Modules that every workflow shares instead of importing them again for itself: data types only.

`workflows` is not among them: its code is what the sandbox checks.
"""


class Runner(SandboxedWorkflowRunner):
    """The sandbox of the SDK, entered only to run workflow code.

    The SDK enters it also to ask for what each payload is to be converted, some seven times in an
    activation, and each time has a piece of source text compiled. Our converter makes no
    difference between payloads and stores none elsewhere, so the answer is known.
    """

    def create_instance(self, det: WorkflowInstanceDetails) -> WorkflowInstance:
        return _Entered(det, self.runner_class, self.restrictions)


class _Entered(_Instance):
    def get_serialization_context(self, command_info: CommandInfo | None) -> None:
        return None

    def get_external_store_context(
        self, command_info: CommandInfo | None
    ) -> StorageDriverStoreContext:
        return StorageDriverStoreContext(target=None)


def runner() -> SandboxedWorkflowRunner:
    """The sandbox, told which modules need no second import."""
    return Runner(restrictions=SandboxRestrictions.default.with_passthrough_modules(*PASSTHROUGH))
