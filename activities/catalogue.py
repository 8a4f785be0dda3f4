"""The list of all activities, for the worker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from activities.checkpoints import Root
from activities.model.endpoint import Connect, connect
from activities.steps.cancel_start import cancel_start
from activities.steps.close_job import Closing
from activities.steps.compact import Compacting
from activities.steps.forget import Forgetting
from activities.steps.gate_facts import facts_activity
from activities.steps.judge_ending import endings_activity
from activities.steps.judge_phase import Judging
from activities.steps.learn import learn_activity
from activities.steps.model_call import ModelCalls
from activities.steps.notify import notify_activity
from activities.steps.prepare import Preparation
from activities.steps.project import project_activities
from activities.steps.recovery import Recovery
from activities.steps.reflect import Reflecting
from activities.steps.review_job import Reviewing
from activities.steps.set_model import ModelSettings
from activities.steps.show_call import show_call_activity
from activities.steps.store_traces import traces_activity
from activities.steps.tell import tell_activity
from activities.steps.tool_call import remote_activity, tool_activities
from activities.steps.transition import Phases


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
