"""The list of all activities, for the worker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from activities.checkpoints import Root
from activities.model.endpoint import Connect, connect_endpoint
from activities.steps.ask_helper import AskHelperActivity
from activities.steps.cancel_start import cancel_start
from activities.steps.close_job import CloseJobActivity
from activities.steps.close_project import close_project_activity
from activities.steps.compact import CompactActivity
from activities.steps.find_checkpoint import FindCheckpointActivity
from activities.steps.forget import ForgetActivity
from activities.steps.gate_facts import gate_facts_activity
from activities.steps.judge_ending import judge_ending_activity
from activities.steps.judge_phase import JudgePhaseActivity
from activities.steps.learn import learn_activity
from activities.steps.merge_work import merge_work_activity
from activities.steps.model_call import ModelCallActivity
from activities.steps.prepare import PrepareActivity
from activities.steps.prepare_project import prepare_project_activity
from activities.steps.publish_branch import publish_branch_activity
from activities.steps.publish_project import publish_project_activity
from activities.steps.reflect import ReflectActivity
from activities.steps.review_job import ReviewJobActivity
from activities.steps.send_notification import send_notification_activity
from activities.steps.set_model import SetModelActivity
from activities.steps.show_call import show_call_activity
from activities.steps.show_folder import ShowFolderActivity
from activities.steps.store_traces import store_traces_activity
from activities.steps.take_folder import TakeFolderActivity
from activities.steps.take_work import TakeWorkActivity
from activities.steps.tell import tell_activity
from activities.steps.tool_call import remote_tool_call_activity, tool_activities
from activities.steps.transition import TransitionActivity
from activities.steps.watch_retries import watch_retries
from activities.steps.watch_trial import watch_trial
from activities.steps.write_error import WriteErrorActivity
from activities.steps.write_project_state import write_project_state_activity


def all_activities(root: Root, connect: Connect = connect_endpoint) -> list[Callable[..., Any]]:
    """Every activity, bound to a workspaces root.

    Args:
        root: The root this worker serves.
        connect: How a model's endpoint is reached; the seam for tests and benchmarks.
    """
    return [
        PrepareActivity(root).prepare,
        SetModelActivity(root).set_model,
        tell_activity(root),
        ModelCallActivity(root, connect).model_call,
        CompactActivity(root, connect).compact,
        *tool_activities(root),
        remote_tool_call_activity(root),
        gate_facts_activity(root),
        show_call_activity(root),
        judge_ending_activity(root),
        TransitionActivity(root, connect).transition,
        ReflectActivity(root, connect).reflect,
        JudgePhaseActivity(root, connect).judge_phase,
        ReviewJobActivity(root, connect).review_job,
        publish_branch_activity(root),
        AskHelperActivity(root, connect).ask_helper,
        CloseJobActivity(root).close_job,
        cancel_start,
        watch_retries,
        watch_trial,
        store_traces_activity(root),
        send_notification_activity(root),
        learn_activity(root),
        ForgetActivity(root).forget,
        FindCheckpointActivity(root).find_checkpoint,
        TakeFolderActivity(root).take_folder,
        ShowFolderActivity(root).show_folder,
        WriteErrorActivity(root).write_error,
        prepare_project_activity(root),
        TakeWorkActivity(root, connect).take_work,
        merge_work_activity(root),
        write_project_state_activity(root),
        publish_project_activity(root),
        close_project_activity(root),
    ]
