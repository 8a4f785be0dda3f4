"""How a worker runs workflow code.

Not in the SDK's sandbox, which imports all modules anew for each run and checks each call. What it
would find is held by tests: workflow modules import nothing that reads a clock, a file or the
network and keep no state, and the recorded histories are replayed in the strict sandbox.
"""

from collections.abc import Sequence
from typing import Any

from temporalio import worker
from temporalio.bridge.proto.workflow_activation import WorkflowActivation
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion
from temporalio.converter import StorageDriverStoreContext
from temporalio.workflow import Info

from engine.setup_errors import TOO_EARLY


class WrappedInstance(worker.WorkflowInstance):
    """A running workflow of the SDK, for subclasses that look at what goes in or comes out."""

    def __init__(self, inner: worker.WorkflowInstance) -> None:
        self._inner = inner

    def activate(self, act: WorkflowActivation) -> WorkflowActivationCompletion:
        return self._inner.activate(act)

    def get_serialization_context(self, command_info: Any) -> None:
        """Return none: our converter ignores it, and the SDK asks seven times per activation."""

    def get_external_store_context(self, command_info: Any) -> StorageDriverStoreContext:
        return StorageDriverStoreContext(target=None)

    def get_info(self) -> Info:
        return self._inner.get_info()

    def get_thread_id(self) -> int | None:
        return self._inner.get_thread_id()


class JobWorkflowRunner(worker.WorkflowRunner):
    """Runs workflows, and refuses activations that could not be replayed."""

    def __init__(self) -> None:
        self._runner = worker.UnsandboxedWorkflowRunner()

    def prepare_workflow(self, defn: Any) -> None:
        self._runner.prepare_workflow(defn)

    def create_instance(self, det: worker.WorkflowInstanceDetails) -> worker.WorkflowInstance:
        return _ReplayableInstance(self._runner.create_instance(det))

    def set_worker_level_failure_exception_types(
        self, types: Sequence[type[BaseException]]
    ) -> None:
        self._runner.set_worker_level_failure_exception_types(types)


class _ReplayableInstance(WrappedInstance):
    def __init__(self, inner: worker.WorkflowInstance) -> None:
        super().__init__(inner)
        self._task: tuple[int, int, int] | None = None
        """The newest workflow task: its start in s and ns, and the history's size in bytes. The
        size distinguishes tasks when a server's clock went back and workflow time stands still."""
        self._length = 0
        """Number of history events behind the newest activation."""

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
