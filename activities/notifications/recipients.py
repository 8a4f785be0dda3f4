"""Whom a job or project notifies, and the addresses and headers on this worker."""

import os
from typing import Any

from pydantic import ValidationError

from config.schema.agent import AgentConfig, ConfigError
from config.schema.notifications import Notify, notification_address_fault
from config.start_settings import check_start_notify
from protocol.notification_requests import DIGEST, Destination, Notifying
from protocol.validation_errors import first_validation_errors


def resolve_recipients(
    configs: list[AgentConfig], start_settings: dict[str, Any] | None = None
) -> Notifying | None:
    """Return whom a job or project notifies; None if nobody.

    Args:
        configs: The agents; each distinct hook is used, but only the first address.
        given: The project's `notify` setting, which replaces those of the agents.

    Raises:
        ConfigError: The setting is invalid, or the worker lacks a variable.
    """
    try:
        configured = Notify.model_validate(start_settings) if start_settings is not None else None
    except ValidationError as error:
        raise ConfigError(f"notify: {first_validation_errors(error)}") from None
    if configured:
        for config in configs:
            check_start_notify(config, configured)
    notify = configured or next((config.notify for config in configs if config.notify), None)
    to: list[Destination] = []
    if notify and (address := _resolve_destination(notify)):
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


def _resolve_destination(notify: Notify) -> Destination | None:
    """Return the HTTP destination, if any. Raises ConfigError if this worker cannot use it."""
    if notify.url is None and notify.url_variable is None:
        return None
    destination = Destination(
        on=[*notify.on, *([DIGEST] if notify.digest else [])],
        url=notify.url or "",
        url_variable=notify.url_variable or "",
        headers=dict(notify.headers),
    )
    try:
        destination_address(destination)
        destination_headers(destination)
    except ValueError as error:
        raise ConfigError(f"notify: {error}") from None
    return destination


def destination_address(to: Destination) -> str:
    """Return the address. Raises ValueError, whose message hides the address."""
    if not to.url_variable:
        return to.url
    address = os.environ.get(to.url_variable, "").strip()
    if not address:
        raise ValueError(f"url_variable: this worker has no variable {to.url_variable}; set it")
    if why := notification_address_fault(address):
        raise ValueError(f"url_variable: {to.url_variable}: {why}")
    return address


def destination_headers(to: Destination) -> dict[str, str]:
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
