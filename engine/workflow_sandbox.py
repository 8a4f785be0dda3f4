"""The sandbox that workflow code runs in."""

from __future__ import annotations

from types import ModuleType
from typing import NamedTuple

from temporalio.bridge.proto.workflow_activation import WorkflowActivation
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion
from temporalio.converter import StorageDriverStoreContext
from temporalio.worker import WorkflowInstance, WorkflowInstanceDetails
from temporalio.worker._command_aware_visitor import CommandInfo
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions
from temporalio.worker.workflow_sandbox._runner import _Instance

from engine.setup_errors import TOO_EARLY

PASSTHROUGH = ("protocol",)
"""Modules that all workflows share instead of importing them anew: data types only.

`workflows` is not included, because the sandbox must check its code.
"""


class _ImportedModules(NamedTuple):
    """Modules imported by the sandbox, and those among them that it has checked."""

    modules: dict[str, ModuleType]
    checked: set[str]


_imported_modules: dict[str, _ImportedModules] = {}
"""Imported modules by the workflow's module."""


class CachingSandboxRunner(SandboxedWorkflowRunner):
    """The SDK's sandbox with two optimizations and one more refusal.

    The SDK imports a workflow's modules anew for each run, to isolate changes of module state. That
    blocks the worker for 14 ms whenever a job begins, continues as new or returns after a kill. Our
    modules have no mutable state (a test checks that), so they are imported once. The sandbox's
    restrictions still apply to them.

    The SDK also enters the sandbox to get each payload's serialization context, about seven times
    per activation, and compiles a piece of source text each time. Our converter ignores the context
    and stores no payload elsewhere, so the answer is known.
    """

    def create_instance(self, det: WorkflowInstanceDetails) -> WorkflowInstance:
        module = det.defn.cls.__module__
        if module not in _imported_modules:
            first = _SandboxInstance(det, self.runner_class, self.restrictions)
            # Restrictions check whether the workflow that imported the modules is running. This
            # first one never runs itself, so it is marked as running for all of them.
            first.importer.restriction_context.is_runtime = True
            _imported_modules[module] = _ImportedModules(
                dict(first.importer.new_modules),
                set(first.importer.modules_checked_for_restrictions),
            )
        return _SandboxInstance(det, self.runner_class, self.restrictions)


class _SandboxInstance(_Instance):
    _task: tuple[int, int, int] | None = None
    """The newest workflow task: its start in s and ns, and the history's size in bytes. The size
    distinguishes tasks when a server's clock went back and workflow time stands still."""
    _length = 0
    """Number of history events behind the newest activation."""

    def _create_instance(self) -> None:
        if imported := _imported_modules.get(self._workflow_module_name()):
            self.importer.new_modules.update(imported.modules)
            self.importer.modules_checked_for_restrictions.update(imported.checked)
        super()._create_instance()

    def activate(self, act: WorkflowActivation) -> WorkflowActivationCompletion:
        """Refuse events without a started workflow task: the query fails and the run is evicted.

        A query that waited for a dead worker brings the next worker the whole history. The SDK then
        runs the workflow with the last events before they have a task, and caches the run. A signal
        that arrives before the task comes after those events in this run, but before them in a
        replay, so that the run could never be replayed.
        """
        task = (act.timestamp.seconds, act.timestamp.nanos, act.history_size_bytes)
        early = task == self._task and not act.is_replaying and act.history_length > self._length
        if early:
            refusal = WorkflowActivationCompletion()
            refusal.failed.failure.message = TOO_EARLY
            return refusal
        self._task, self._length = task, act.history_length
        return super().activate(act)

    def get_serialization_context(self, command_info: CommandInfo | None) -> None:
        return None

    def get_external_store_context(
        self, command_info: CommandInfo | None
    ) -> StorageDriverStoreContext:
        return StorageDriverStoreContext(target=None)


def sandbox_runner() -> SandboxedWorkflowRunner:
    """The sandbox runner with the shared modules."""
    return CachingSandboxRunner(
        restrictions=SandboxRestrictions.default.with_passthrough_modules(*PASSTHROUGH)
    )
