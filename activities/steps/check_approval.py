"""Checks the signature of an approval against the keys that the job pinned when it began."""

from activities.checkpoints import Root
from activities.guards.signed_approvals import check_signed_approval
from activities.job.activity_context import open_activity_snapshot
from activities.steps.root_activity import thread_activity
from protocol.requests import CheckApprovalReply, CheckApprovalRequest


@thread_activity
def check_approval(root: Root, request: CheckApprovalRequest) -> CheckApprovalReply:
    snapshot = open_activity_snapshot(root, request)
    return check_signed_approval(
        snapshot.config,
        request.tool,
        request.statement,
        request.signature,
        request.starter,
    )
