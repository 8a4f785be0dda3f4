"""The `send_notification` activity: notifies people by HTTP or by a hook."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from temporalio import activity

from activities.checkpoints import Root
from activities.notifications.delivery import (
    deliver_notification,
    delivery_mark_path,
    leave_delivery_mark,
)
from activities.runtime.failures import typed_failures
from activities.runtime.heartbeats import check_attempt_by_heartbeat, heartbeats
from protocol.notification_requests import Sending, Sent

SendNotification = Callable[[Sending], Coroutine[Any, Any, Sent]]


def send_notification_activity(root: Root) -> SendNotification:
    """Return the `send_notification` activity."""

    @activity.defn(name="send_notification")
    async def send_notification(request: Sending) -> Sent:
        """Send a notification to one destination; safe to retry."""
        with typed_failures():
            async with heartbeats():
                mark = delivery_mark_path(root, request)
                if mark and mark.exists():
                    return Sent()
                await check_attempt_by_heartbeat()
                status = await deliver_notification(root, request)
                if mark:
                    leave_delivery_mark(mark)
                return Sent(status=status)

    return send_notification
