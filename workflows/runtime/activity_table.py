"""The activities that workflows call, as a table: reply, time limit and attempts.

A row without a time limit gets it from the caller, because it depends on the job.
"""

from dataclasses import dataclass
from typing import Generic, TypeVar

from protocol import endings, requests
from protocol.data_model import Data
from protocol.helpers import HelperReply
from protocol.job_record import JobRecord
from protocol.notification_requests import Sent
from protocol.prepare_requests import CancelStartRequest, PrepareReply, SetModelReply
from protocol.project_requests import ChildWork, MergeReply, ProjectPrepareReply
from protocol.publishing import BranchResult
from protocol.trace_requests import StoreTracesReply
from protocol.trial_status import WatchTrialReply

R = TypeVar("R", bound=Data)

MINUTE = 60
TEN_MINUTES = 10 * MINUTE
FETCH_SECONDS = 120 * MINUTE
"""Time limit for fetching a repository at the start, and for pushing one at the end."""
WITHOUT_END = 0
"""Attempts of a model call: the endpoint comes back, or a person ends the job."""
UNTIL_SUMMARY = 10
"""Attempts of a summary: minutes, or as long as the endpoint says."""
FOR_A_DAY = 150
"""Attempts over a day, at most ten minutes apart."""


@dataclass(frozen=True)
class Activity(Generic[R]):
    """A row of the table."""

    name: str
    """The name in Temporal's history and of the module in `activities.steps`."""
    reply: type[R]
    attempts: int
    seconds: int = 0
    is_tool: bool = False
    """Whether it may act outside: its time limit then counts as a failure, not as a lost worker."""

    @property
    def outlasts_endpoint(self) -> bool:
        """Whether it is retried for minutes while the endpoint of a model fails."""
        return self.attempts in (WITHOUT_END, UNTIL_SUMMARY)


# Starts
PREPARE = Activity("prepare", PrepareReply, 4, TEN_MINUTES)
CANCEL_START = Activity("cancel_start", CancelStartRequest, 4, MINUTE)

# Steps
MODEL_CALL = Activity("model_call", requests.ModelReply, WITHOUT_END)
COMPACT = Activity("compact", requests.CompactReply, UNTIL_SUMMARY)
ASK_HELPER = Activity("ask_helper", HelperReply, WITHOUT_END)
SHOW_CALL = Activity("show_call", requests.ShowCallReply, 4, MINUTE)
CHECK_APPROVAL = Activity("check_approval", requests.CheckApprovalReply, 4, MINUTE)
STORE_TRACES = Activity("store_traces", StoreTracesReply, 2, MINUTE)
WATCH_RETRIES = Activity("watch_retries", requests.RetriedCall, 4, FETCH_SECONDS)
WRITE_ERROR = Activity("write_error", requests.EmptyReply, 1, 20)

# Ends of phases and jobs
GATE_FACTS = Activity("gate_facts", endings.GateFactsReply, 4)
JUDGE_ENDING = Activity("judge_ending", endings.EndingVerdict, 2)
JUDGE_PHASE = Activity("judge_phase", endings.JudgeReply, WITHOUT_END)
REVIEW_JOB = Activity("review_job", endings.ReviewReply, WITHOUT_END)
REFLECT = Activity("reflect", endings.ReflectReply, 2)
TRANSITION = Activity("transition", endings.TransitionReply, UNTIL_SUMMARY, TEN_MINUTES)
PUBLISH_BRANCH = Activity("publish_branch", BranchResult, 4, FETCH_SECONDS)
CLOSE_JOB = Activity("close_job", endings.CloseReply, 4, TEN_MINUTES)

# What people do
SHOW_FOLDER = Activity("show_folder", requests.FolderReply, 2, MINUTE)
TAKE_FOLDER = Activity("take_folder", requests.ImportReply, 4, TEN_MINUTES)
SET_MODEL = Activity("set_model", SetModelReply, 4, MINUTE)
KEEP_REMARKS = Activity("tell", requests.RemarksReply, 4, MINUTE)
FIND_CHECKPOINT = Activity("find_checkpoint", requests.RecoverReply, 2, TEN_MINUTES)
SEND_NOTIFICATION = Activity("send_notification", Sent, FOR_A_DAY)

# Projects
PREPARE_PROJECT = Activity("prepare_project", ProjectPrepareReply, 4, TEN_MINUTES)
TAKE_WORK = Activity("take_work", ChildWork, 4)
MERGE_WORK = Activity("merge_work", MergeReply, 4, 5 * MINUTE)
WRITE_PROJECT_STATE = Activity("write_project_state", requests.CheckpointReply, 4, 2 * MINUTE)
PUBLISH_PROJECT = Activity("publish_project", BranchResult, 4, FETCH_SECONDS)
CLOSE_PROJECT = Activity("close_project", requests.CheckpointReply, 4, 2 * MINUTE)

# Trials
WATCH_TRIAL = Activity("watch_trial", WatchTrialReply, WITHOUT_END, FETCH_SECONDS)


def model_activity_seconds(job: JobRecord, calls: int = 1) -> int:
    """Return the time limit of an activity with this many model calls."""
    return job.limits.model_seconds * calls + 30 * calls
