"""The `learn` activity: a pass of learning for whoever scheduled it."""

from __future__ import annotations

from collections.abc import Callable

from temporalio import activity

from activities.checkpoints import Root
from activities.learning.learning_pass import Lessons
from activities.runtime.failures import failure, typed
from activities.runtime.heartbeats import heartbeats_from_thread, now_and_then
from activities.stores.errors import StoreAway
from protocol.learning import LearningResult

MOST_LINES = 100


def learn_activity(root: Root) -> Callable[[], LearningResult]:
    """The `learn` activity."""

    @activity.defn(name="learn")
    def learn() -> LearningResult:
        """Make proposals, and move guards."""
        with typed(), heartbeats_from_thread():
            try:
                done = Lessons(root).learn(now_and_then())
            except StoreAway as away:
                raise failure("Dependency", str(away), retry=True) from away
            return LearningResult(lines=done[:MOST_LINES])

    return learn
