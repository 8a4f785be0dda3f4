"""The `send_notification` activity: notifies people by HTTP or by a hook."""

from activities.checkpoints import Root
from activities.notifications.delivery import (
    deliver_notification,
    delivery_mark_path,
    leave_delivery_mark,
)
from activities.runtime.heartbeats import check_attempt_by_heartbeat
from activities.steps.root_activity import coroutine_activity
from protocol.notification_requests import Sending, Sent


@coroutine_activity
async def send_notification(root: Root, request: Sending) -> Sent:
    mark = delivery_mark_path(root, request)
    if mark and mark.exists():
        return Sent()
    await check_attempt_by_heartbeat()
    status = await deliver_notification(root, request)
    if mark:
        leave_delivery_mark(mark)
    return Sent(status=status)
