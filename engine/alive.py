"""A beat for a dead man's switch: somebody else alarms when it stays away.

Workers that died cannot tell anybody. So each worker that is ready requests the address in
LONGHAUL_ALIVE at an interval, and the service there, which is made for this, tells people when no
request came for some time. A worker that cannot serve jobs sends none.
"""

import asyncio
import logging
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit

import httpx2
from temporalio.client import Client
from temporalio.service import RPCError

from activities.runtime.metrics import SPEND
from engine.connection import task_queue
from engine.health import Check
from engine.setup_errors import SetupError
from engine.waiting_jobs import count_waiting_jobs

ADDRESS, SECONDS = "LONGHAUL_ALIVE", "LONGHAUL_ALIVE_SECONDS"
DEFAULT_SECONDS = 60.0
LEAST_SECONDS = 1.0
FIRST_SECONDS = 1.0
"""Before the first beat: a worker polls shortly after it was begun."""
TIMEOUT_SECONDS = 10.0
RUNNING = "WorkflowType IN ('Job', 'Project') AND ExecutionStatus = 'Running'"

log = logging.getLogger("longhaul.alive")


@asynccontextmanager
async def send_beats(client: Client, ready: Check) -> AsyncIterator[None]:
    """Send beats during the context, if LONGHAUL_ALIVE is set.

    Args:
        client: Of the server that knows what runs and waits.
        ready: Returns why this worker cannot serve jobs.

    Raises:
        SetupError: a variable is invalid.
    """
    address = os.environ.get(ADDRESS, "").strip()
    if not address:
        yield
        return
    if not address.startswith(("http://", "https://")):
        raise SetupError(f"{ADDRESS} is no address that begins with http:// or https://")
    seconds = _beat_seconds()
    task = asyncio.create_task(_keep_sending(client, ready, address, seconds))
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def _beat_seconds() -> float:
    value = os.environ.get(SECONDS, "").strip()
    try:
        seconds = float(value or DEFAULT_SECONDS)
    except ValueError:
        seconds = 0.0
    if not LEAST_SECONDS <= seconds <= 86_400:
        raise SetupError(f"{SECONDS}={value[:40]}: expected seconds from 1 to 86400")
    return seconds


async def _keep_sending(client: Client, ready: Check, address: str, seconds: float) -> None:
    failing, told = "", SPEND.total
    await asyncio.sleep(FIRST_SECONDS)
    async with httpx2.AsyncClient(timeout=TIMEOUT_SECONDS) as http:
        while True:
            problem = await ready()
            if not problem:
                spent = SPEND.total
                try:
                    answer = await http.post(address, json=await _beat(client, spent - told))
                    problem = "" if answer.is_success else f"HTTP {answer.status_code}"
                    told = told if problem else spent
                except (httpx2.HTTPError, httpx2.InvalidURL, RPCError) as error:
                    problem = type(error).__name__
            if problem and not failing:
                # The path of such an address is a secret.
                host = urlsplit(address).hostname
                log.warning("no beat was sent to %s: %s", host, problem[:300])
            failing = problem
            await asyncio.sleep(seconds)


async def _beat(client: Client, spend: float) -> dict[str, object]:
    """Return what runs, what waits and what this worker spent, without any content.

    Raises RPCError.
    """
    running = (await client.count_workflows(RUNNING)).count
    try:
        waiting = (await count_waiting_jobs(client)).total()
    except RPCError:
        waiting = 0  # The server lacks the search attributes.
    counts = {"running": running, "waiting": waiting, "spend": round(spend, 6)}
    return {"task_queue": task_queue(), **counts}
