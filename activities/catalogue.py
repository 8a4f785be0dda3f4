"""The list of all activities, for the worker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from activities.checkpoints import Root
from activities.context.compaction import Compacting
from activities.ending.cancelling import cancel_start
from activities.ending.closing import Closing
from activities.ending.facts import facts_activity
from activities.ending.review import Reviewing
from activities.forgetting.activity import Forgetting
from activities.guards.endings import endings_activity
from activities.job.recovery import Recovery
from activities.job.remarks import tell_activity
from activities.learning.activity import learn_activity
from activities.model.call import ModelCalls
from activities.model.endpoint import Connect, connect
from activities.notifying import notify_activity
from activities.phases.judge import Judging
from activities.phases.reflection import Reflecting
from activities.phases.transition import Phases
from activities.projects.activities import project_activities
from activities.starting.model_settings import ModelSettings
from activities.starting.prepare import Preparation
from activities.tool_calls.running import remote_activity, tool_activities
from activities.tool_calls.shown import show_call_activity
from activities.traces.storing import traces_activity


def all_activities(root: Root, connect: Connect = connect) -> list[Callable[..., Any]]:
    """Every activity, bound to a workspaces root.

    Args:
        root: The root this worker serves.
        connect: How a model's endpoint is reached; the seam for tests and benchmarks.
    """
    return [
        Preparation(root).prepare,
        ModelSettings(root).set_model,
        tell_activity(root),
        ModelCalls(root, connect).model_call,
        Compacting(root, connect).compact,
        *tool_activities(root),
        remote_activity(root),
        facts_activity(root),
        show_call_activity(root),
        endings_activity(root),
        Phases(root, connect).transition,
        Reflecting(root, connect).reflect,
        Judging(root, connect).judge_phase,
        Reviewing(root, connect).review_job,
        Closing(root).close_job,
        cancel_start,
        traces_activity(root),
        notify_activity(root),
        learn_activity(root),
        Forgetting(root).forget,
        *Recovery(root).activities,
        *project_activities(root, connect),
    ]
