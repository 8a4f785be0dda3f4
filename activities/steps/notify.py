"""The `send_notification` activity: notifies people by HTTP or by a hook.

A delivered notification leaves a mark, so no attempt sends it again. If the process dies between
delivery and mark, the next attempt sends it again with the same Idempotency-Key.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
from pydantic import ValidationError
from temporalio import activity
from temporalio.exceptions import ApplicationError

from activities.checkpoints import Root
from activities.guards.hooks.answers import HookFailed
from activities.guards.hooks.processes import run_hook
from activities.projects.project_repository import project_repository_path
from activities.redaction.credentials import hide_credentials, register_credential_variables
from activities.redaction.secrets import redact
from activities.runtime.failures import typed_failure, typed_failures
from activities.runtime.heartbeats import check_attempt_by_heartbeat, heartbeats
from config.schema.agent import AgentConfig, ConfigError
from config.schema.notifications import Notify, notification_address_fault
from protocol.notification_requests import Destination, Notification, Notifying, Sending, Sent
from protocol.short_text import one_line
from protocol.validation_errors import first_validation_errors

SECONDS = 30
LONGEST_DELAY = 600.0
SendNotification = Callable[[Sending], Coroutine[Any, Any, Sent]]


def resolve_notify_recipients(
    configs: list[AgentConfig], given: dict[str, Any] | None = None
) -> Notifying | None:
    """Return whom a job or project notifies; None if nobody.

    Args:
        configs: The agents; each distinct hook is used, but only the first address.
        given: The project's `notify` setting, which replaces those of the agents.

    Raises:
        ConfigError: The setting is invalid, or the worker lacks a variable.
    """
    try:
        configured = Notify.model_validate(given) if given is not None else None
    except ValidationError as error:
        raise ConfigError(f"notify: {first_validation_errors(error)}") from None
    notify = configured or next((config.notify for config in configs if config.notify), None)
    to: list[Destination] = []
    if notify and (address := _resolve_notify_destination(notify)):
        to.append(address)
    hooks = [hook for config in configs for hook in config.hooks.get("Notification", [])]
    to += [
        Destination(
            on=hook.occasions,
            command=hook.command,
            name=hook.title,
            timeout=hook.timeout,
            environment=hook.environment,
        )
        for hook in {hook.command: hook for hook in hooks}.values()
    ]
    return Notifying(to=to, content=bool(notify and notify.content)) if to else None


def _resolve_notify_destination(notify: Notify) -> Destination | None:
    """Return the HTTP destination, if any. Raises ConfigError if this worker cannot use it."""
    if notify.url is None and notify.url_variable is None:
        return None
    destination = Destination(
        on=notify.on,
        url=notify.url or "",
        url_variable=notify.url_variable or "",
        headers=dict(notify.headers),
    )
    try:
        _notify_address(destination)
        _destination_headers(destination)
    except ValueError as error:
        raise ConfigError(f"notify: {error}") from None
    return destination


def notify_activity(root: Root) -> SendNotification:
    """Return the `send_notification` activity."""

    @activity.defn(name="send_notification")
    async def send_notification(request: Sending) -> Sent:
        """Send a notification to one destination; safe to retry."""
        with typed_failures():
            async with heartbeats():
                mark = _notify_delivery_mark(root, request)
                if mark and mark.exists():
                    return Sent()
                await check_attempt_by_heartbeat()
                status = await _send_notification(root, request)
                if mark:
                    _leave_delivery_mark(mark)
                return Sent(status=status)

    return send_notification


async def _send_notification(root: Root, request: Sending) -> int:
    """Send it and return the status. Raises a retryable ApplicationError."""
    to = request.to
    register_credential_variables(
        [name for name in (to.url_variable, *to.headers.values()) if name]
    )
    try:
        if to.command:
            return await asyncio.to_thread(_run_notify_hook, root, request)
        return await _post_notification(to, request.notification)
    except (OSError, ValueError, HookFailed, httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise _delivery_failure(str(error) or type(error).__name__) from None


def _delivery_failure(why: str, delay: float | None = None) -> ApplicationError:
    text = f"The notification is not sent: {hide_credentials(one_line(redact(why), 300))}"
    return typed_failure("NotSent", text, retry=True, delay=delay, longest=LONGEST_DELAY)


async def _post_notification(to: Destination, notification: Notification) -> int:
    address = _notify_address(to)
    headers = {**_destination_headers(to), "Idempotency-Key": notification.key}
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


def _run_notify_hook(root: Root, request: Sending) -> int:
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
    return body


def _notify_address(to: Destination) -> str:
    """Return the address. Raises ValueError, whose message hides the address."""
    if not to.url_variable:
        return to.url
    address = os.environ.get(to.url_variable, "").strip()
    if not address:
        raise ValueError(f"url_variable: this worker has no variable {to.url_variable}; set it")
    if why := notification_address_fault(address):
        raise ValueError(f"url_variable: {to.url_variable}: {why}")
    return address


def _destination_headers(to: Destination) -> dict[str, str]:
    """Return the headers. Raises ValueError, whose message hides the values."""
    headers = {}
    for name, variable in to.headers.items():
        value = os.environ.get(variable, "").strip()
        if not value:
            raise ValueError(f"headers.{name}: this worker has no variable {variable}; set it")
        if not (value.isascii() and value.isprintable()):
            raise ValueError(f"headers.{name}: {variable} has characters that no header has")
        headers[name] = value
    return headers


def _notify_delivery_mark(root: Root, request: Sending) -> Path | None:
    """Return the path of the delivery mark; None if the job is on another host."""
    parent = (activity.info().workflow_id or "").rpartition("/notify/")[0]
    key = f"{request.notification.key}.{request.number}"
    for repository in (root.repository(parent), project_repository_path(root, parent)):
        if repository.is_dir():
            return repository / "notified" / key
    return None


def _leave_delivery_mark(mark: Path) -> None:
    # A failure is harmless unless this worker dies now.
    with suppress(OSError):
        mark.parent.mkdir(exist_ok=True)
        mark.touch()
