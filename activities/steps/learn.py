"""The `learn` activity: one pass of learning."""

from collections.abc import Callable

from temporalio import activity

from activities.checkpoints import Root
from activities.learning.learning_pass import LearningPass
from activities.runtime.failures import typed_failure, typed_failures
from activities.runtime.heartbeats import heartbeats_from_thread
from activities.stores.store_errors import StoreUnavailableError
from protocol.trace_requests import LearningResult

MAX_LINES = 100


def learn_activity(root: Root) -> Callable[[], LearningResult]:
    @activity.defn(name="learn")
    def learn() -> LearningResult:
        with typed_failures(), heartbeats_from_thread():
            try:
                lines = LearningPass(root).learn()
            except StoreUnavailableError as error:
                raise typed_failure("Dependency", str(error), retry=True) from error
            return LearningResult(lines=lines[:MAX_LINES])

    return learn
