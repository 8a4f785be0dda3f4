"""`/healthz` and `/readyz` of a worker, for process supervisors."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

from temporalio.client import Client
from temporalio.service import RPCError
from temporalio.worker import Worker

from config.agent_files import agent_names, load_agent
from config.schema.agent import ConfigError
from engine.minimal_http import SECONDS, serve_http
from engine.root_location import check_open_root
from engine.setup_errors import SetupError

if TYPE_CHECKING:
    from activities.checkpoints import Root

VARIABLE = "LONGHAUL_HEALTH"
Check = Callable[[], Awaitable[str]]
"""Returns a problem, or an empty text."""


async def readiness_problem(worker: Worker, client: Client, root: Root, stop: asyncio.Event) -> str:
    """Return why the worker cannot serve jobs; empty if it can."""
    if stop.is_set():
        return "draining"
    if not worker.is_running:
        return "not polling"
    try:
        await asyncio.to_thread(check_open_root, root)
        await asyncio.to_thread(check_agents)
        await client.service_client.check_health(timeout=timedelta(seconds=SECONDS))
    except (SetupError, ConfigError) as error:
        return str(error)
    except RPCError as error:
        return f"Temporal does not answer: {error.message}"
    return ""


def check_agents() -> None:
    """Raise ConfigError if no agent can be loaded, so that every start would be refused."""
    errors: list[ConfigError] = []
    for name in agent_names():
        try:
            load_agent(name)
        except ConfigError as error:
            errors.append(error)
        else:
            return
    raise ConfigError(f"no agent can be loaded: {errors[0] if errors else 'there is none'}")


@asynccontextmanager
async def serve_health(ready: Check, alive: Check | None = None) -> AsyncIterator[str | None]:
    """Serve at LONGHAUL_HEALTH (`host:port`) during the context, and yield the address.

    Without the variable nothing is served, and None is yielded. `/healthz` is 200 while the process
    is alive; `/readyz` is 200. Either is 503 with the reason if its check finds a problem.

    Raises:
        SetupError: the variable is not an address, or the address is in use.
    """
    address = os.environ.get(VARIABLE, "").strip()
    if not address:
        yield None
        return
    alive = alive or _no_health_problem

    async def respond(path: str) -> tuple[str, str, str]:
        check = {"/healthz": alive, "/readyz": ready}.get(path)
        problem = await check() if check else ""
        status = "200 OK" if check else "404 Not Found"
        if problem:
            status = "503 Service Unavailable"
        return status, "application/json", json.dumps({"status": problem or status[4:].lower()})

    async with serve_http(VARIABLE, address, respond) as where:
        yield where


async def _no_health_problem() -> str:
    return ""
