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

from engine.errors import TOO_EARLY

PASSTHROUGH = ("protocol",)
"""Modules that every workflow shares instead of importing them again for itself: data types only.

`workflows` is not among them: its code is what the sandbox checks.
"""


class _ImportedModules(NamedTuple):
    """Modules as the sandbox imported them, and which of them it has looked through."""

    modules: dict[str, ModuleType]
    checked: set[str]


_imported_modules: dict[str, _ImportedModules] = {}
"""By the workflow's module."""


class CachingSandboxRunner(SandboxedWorkflowRunner):
    """The sandbox of the SDK, at less cost in two places, and with one refusal more.

    The SDK imports a workflow's modules anew for each run, so that what runs change in them stays
    apart: 14 ms, in which nothing else of the worker moves, when a job begins, continues as new or
    comes back after a kill. Ours hold nothing that changes (a test looks), so they are imported
    once, and what the sandbox forbids stays forbidden in them.

    The SDK enters the sandbox also to ask for what each payload is to be converted, some seven
    times in an activation, and each time has a piece of source text compiled. Our converter makes
    no difference between payloads and stores none elsewhere, so the answer is known.
    """

    def create_instance(self, det: WorkflowInstanceDetails) -> WorkflowInstance:
        module = det.defn.cls.__module__
        if module not in _imported_modules:
            first = _SandboxInstance(det, self.runner_class, self.restrictions)
            # Restrictions ask whether the workflow runs in which the modules were imported. That
            # one never does: from here on it stands for all of them.
            first.importer.restriction_context.is_runtime = True
            _imported_modules[module] = _ImportedModules(
                dict(first.importer.new_modules),
                set(first.importer.modules_checked_for_restrictions),
            )
        return _SandboxInstance(det, self.runner_class, self.restrictions)


class _SandboxInstance(_Instance):
    _task: tuple[int, int, int] | None = None
    """The newest workflow task: when it began, in s and ns, and the history's size then, in bytes.
    The size distinguishes tasks where the clock of a server went back and time stands."""
    _length = 0
    """The events of the history that the newest activation was made from."""

    def _create_instance(self) -> None:
        if imported := _imported_modules.get(self._workflow_module_name()):
            self.importer.new_modules.update(imported.modules)
            self.importer.modules_checked_for_restrictions.update(imported.checked)
        super()._create_instance()

    def activate(self, act: WorkflowActivation) -> WorkflowActivationCompletion:
        """Refuse events that no workflow task has begun with: the query fails, the run is let go.

        A query that waited for a dead worker brings the next one the whole history, and the SDK
        runs the workflow on with its last events before there is a task for them, and keeps it. A
        signal that comes before the task is then seen after those events; in a replay, before
        them. The run would never be replayed again.
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
    """The sandbox, with the modules that need no second import."""
    return CachingSandboxRunner(
        restrictions=SandboxRestrictions.default.with_passthrough_modules(*PASSTHROUGH)
    )
