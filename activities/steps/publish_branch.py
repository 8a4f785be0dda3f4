"""Pushes the branch of a job once."""

from activities.checkpoints import Root
from activities.job.activity_context import open_activity_snapshot
from activities.runtime.activity_info import activity_job_id
from activities.source_repository.branch_push import check_push_place, push_branch
from activities.source_repository.job_branch import (
    commit_job_branch,
    completed_branch_story,
    finished_work_proof,
    open_branch_repository,
)
from activities.steps.root_activity import async_activity
from config.agent_files import start_rights
from config.schema.agent import ConfigError
from protocol.publishing import BranchResult, PublishRequest


@async_activity
def publish_branch(root: Root, request: PublishRequest) -> BranchResult:
    snapshot = open_activity_snapshot(root, request)
    link = snapshot.repository
    if link is None or request.publish is None:
        raise ConfigError("publish: the job has no branch to push")
    publish = request.publish.completed(link.origin.start)
    shown = finished_work_proof(root, snapshot, request.call)
    result = commit_job_branch(
        root,
        snapshot,
        activity_job_id(),
        request.starts,
        completed_branch_story(snapshot, request.call),
        shown.line,
    )
    result.proof = shown.line
    if not result.commit:
        return result
    check_push_place(root, start_rights(snapshot.config), publish)
    address = push_branch(
        open_branch_repository(root, snapshot, link),
        publish,
        result.commit,
        snapshot.config.start.folders or (),
    )
    return result.model_copy(update={"published": address})
