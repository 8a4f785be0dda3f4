"""The list of all activities, for the worker."""

from collections.abc import Callable
from typing import Any

from activities.checkpoints import Root
from activities.model.endpoint import Connect, connect_endpoint
from activities.steps.ask_helper import AskHelperActivity
from activities.steps.cancel_start import cancel_start
from activities.steps.check_approval import check_approval
from activities.steps.close_job import close_job
from activities.steps.compact import CompactActivity
from activities.steps.find_checkpoint import find_checkpoint
from activities.steps.forget import ForgetActivity
from activities.steps.gate_facts import gate_facts
from activities.steps.judge_ending import judge_ending
from activities.steps.judge_phase import JudgePhaseActivity
from activities.steps.learn import learn_activity
from activities.steps.model_call import ModelCallActivity
from activities.steps.prepare_job import prepare
from activities.steps.project_activities import (
    close_project,
    merge_work,
    prepare_project,
    publish_project,
    write_project_state,
)
from activities.steps.publish_branch import publish_branch
from activities.steps.reflect import ReflectActivity
from activities.steps.review_job import ReviewJobActivity
from activities.steps.send_notification import send_notification
from activities.steps.set_model import set_model
from activities.steps.show_call import show_call
from activities.steps.show_folder import show_folder
from activities.steps.store_traces import store_traces
from activities.steps.take_folder import take_folder
from activities.steps.take_work import TakeWorkActivity
from activities.steps.tell import tell
from activities.steps.tool_call import remote_tool_call_activity, tool_activities
from activities.steps.transition import TransitionActivity
from activities.steps.watch_retries import watch_retries
from activities.steps.watch_trial import watch_trial
from activities.steps.write_digests import digest
from activities.steps.write_error import write_error


def all_activities(root: Root, connect: Connect = connect_endpoint) -> list[Callable[..., Any]]:
    """Every activity, bound to a workspaces root.

    Args:
        root: The root this worker serves.
        connect: How a model's endpoint is reached; the seam for tests and benchmarks.
    """
    return [
        prepare(root),
        set_model(root),
        tell(root),
        ModelCallActivity(root, connect).model_call,
        CompactActivity(root, connect).compact,
        *tool_activities(root),
        remote_tool_call_activity(root),
        gate_facts(root),
        show_call(root),
        check_approval(root),
        judge_ending(root),
        TransitionActivity(root, connect).transition,
        ReflectActivity(root, connect).reflect,
        JudgePhaseActivity(root, connect).judge_phase,
        ReviewJobActivity(root, connect).review_job,
        publish_branch(root),
        AskHelperActivity(root, connect).ask_helper,
        close_job(root),
        cancel_start,
        watch_retries,
        watch_trial,
        store_traces(root),
        send_notification(root),
        digest(root),
        learn_activity(root),
        ForgetActivity(root).forget,
        find_checkpoint(root),
        take_folder(root),
        show_folder(root),
        write_error(root),
        prepare_project(root),
        TakeWorkActivity(root, connect).take_work,
        merge_work(root),
        write_project_state(root),
        publish_project(root),
        close_project(root),
    ]
