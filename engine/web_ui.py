"""Temporal's Web UI: its address and the link to a job."""

import asyncio
import os
import socket
from urllib.parse import quote, urlsplit

from engine.connection import client_options, is_local_temporal_address
from engine.setup_errors import SetupError

DEFAULT_UI = "http://localhost:8233"
UI_SECONDS = 1.0
"""Seconds that a Web UI has to answer before its link is printed."""


def web_ui_address() -> str | None:
    """Return the base address of Temporal's Web UI; None if unknown."""
    if configured := os.environ.get("TEMPORAL_UI_ADDRESS"):
        return configured.rstrip("/")
    try:
        address = str(client_options()["target_host"])
    except SetupError:
        return None
    return DEFAULT_UI if is_local_temporal_address(address) else None


def job_web_ui_link(
    job_id: str, namespace: str = "default", *, base: str | None = None
) -> str | None:
    """Return the job's page in the Web UI; None if the UI's address is unknown."""
    base = base or web_ui_address()
    return f"{base}/namespaces/{namespace}/workflows/{quote(job_id, safe='')}" if base else None


def _web_ui_answers(address: str) -> bool:
    """Return whether something listens at the address."""
    try:
        parts = urlsplit(address)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        with socket.create_connection((parts.hostname or "", port), timeout=UI_SECONDS):
            return True
    except (OSError, ValueError):
        return False


async def answering_web_ui_link(job_id: str, namespace: str = "default") -> str | None:
    """Return the job's page in the Web UI; None if no UI is configured and none answers.

    A configured address is that of people's browsers: a container may not reach it.
    """
    base = web_ui_address()
    is_configured = bool(os.environ.get("TEMPORAL_UI_ADDRESS"))
    if base is None or not (is_configured or await asyncio.to_thread(_web_ui_answers, base)):
        return None
    return job_web_ui_link(job_id, namespace, base=base)
