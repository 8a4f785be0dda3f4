"""Delivers a notification to one destination, and remembers that it did.

A delivered notification leaves a mark, so no attempt sends it again. If the process dies between
delivery and mark, the next attempt sends it again with the same Idempotency-Key.
"""

import asyncio
import json
import re
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
from temporalio import activity
from temporalio.exceptions import ApplicationError

from activities.checkpoints import Root
from activities.guards.hooks.answers import HookFailed
from activities.guards.hooks.processes import run_hook
from activities.notifications.recipients import destination_address, destination_headers
from activities.projects.project_repository import project_repository_path
from activities.redaction.credentials import hide_credentials, register_credential_variables
from activities.redaction.secrets import redact
from activities.runtime.failures import typed_failure
from protocol.notification_requests import NOTIFY, Destination, Notification, Sending
from protocol.short_text import one_line

SECONDS = 30
CHAT_MARKUP = re.compile(r"<(?=[!@#]|\w+:)|@(?=(?:everyone|here|channel|all)\b)|\](?=\()")
"""How a mention or a link under other words begins in chats. A job's name, or what an agent says,
must not make one."""
LONGEST_DELAY = 600.0


async def deliver_notification(root: Root, request: Sending) -> int:
    """Send it and return the status. Raises a retryable ApplicationError."""
    to = request.to
    register_credential_variables(to.named_variables)
    try:
        if to.command:
            return await asyncio.to_thread(_run_notification_hook, root, request)
        return await _post_notification(to, request.notification)
    except (OSError, ValueError, HookFailed, httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise _delivery_failure(str(error) or type(error).__name__) from None


def _delivery_failure(why: str, delay: float | None = None) -> ApplicationError:
    text = f"The notification is not sent: {hide_credentials(one_line(redact(why), 300))}"
    return typed_failure("NotSent", text, retry=True, delay=delay, longest=LONGEST_DELAY)


async def _post_notification(to: Destination, notification: Notification) -> int:
    address = destination_address(to)
    headers = {**destination_headers(to), "Idempotency-Key": notification.key}
    # Redirects could lead the notification somewhere nobody intended.
    async with (
        httpx2.AsyncClient(timeout=SECONDS, follow_redirects=False) as client,
        client.stream(
            "POST", address, json=_notification_body(notification), headers=headers
        ) as answer,
    ):
        # Do not read the body: the address may return anything.
        status = answer.status_code
        if answer.is_success:
            return status
        delay = answer.headers.get("Retry-After", "")
    host = urlsplit(address).hostname
    moved = (
        "; redirects are not followed, give the address it leads to" if 300 <= status < 400 else ""
    )
    named = min(float(delay), LONGEST_DELAY) if delay.isdecimal() and int(delay) else None
    raise _delivery_failure(f"{host} answered {status}{moved}", named)


def _run_notification_hook(root: Root, request: Sending) -> int:
    """Run the hook and return 0. Raises HookFailed."""
    to, notification = request.to, request.notification
    workspace = root.workspace(notification.job)
    folder = workspace if workspace.is_dir() else root.path
    event = {
        "session_id": notification.job,
        "transcript_path": "",
        "cwd": str(folder),
        "hook_event_name": "Notification",
        "message": notification.text,
        "notification_type": notification.event,
        "notification": _notification_body(notification),
    }
    ran = run_hook(
        to.command,
        json.dumps(event).encode(),
        folder=str(folder),
        seconds=to.timeout,
        variables=to.environment,
    )
    if ran.trouble or ran.code != 0:
        reason = ran.trouble or f"exit code {ran.code}: {ran.err.strip()[:200]}"
        raise HookFailed(f"the hook {to.name} failed, {reason}")
    return 0


def _notification_body(notification: Notification) -> dict[str, str]:
    """Return the JSON body; chats show its `text`."""
    body = {name: value for name, value in notification.model_dump().items() if value}
    if content := body.pop("content", ""):
        body["content"] = redact(content)
        body["text"] = f"{body['text']}\n{body['content']}"
    body["text"] = CHAT_MARKUP.sub("\\g<0>\N{WORD JOINER}", body["text"])
    return body


def delivery_mark_path(root: Root, request: Sending) -> Path | None:
    """Return the path of the delivery mark; None if the job is on another host."""
    parent = (activity.info().workflow_id or "").rpartition(NOTIFY)[0]
    key = f"{request.notification.key}.{request.number}"
    for repository in (root.repository(parent), project_repository_path(root, parent)):
        if repository.is_dir():
            return repository / "notified" / key
    return None


def leave_delivery_mark(mark: Path) -> None:
    # A failure is harmless unless this worker dies now.
    with suppress(OSError):
        mark.parent.mkdir(exist_ok=True)
        mark.touch()
