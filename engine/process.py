"""A worker as a process: until told to stop, then draining; and how our processes end."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from importlib import import_module
from typing import NoReturn

from engine.connection import (
    Unreachable,
    connect,
    describe_endpoint,
    task_queue,
    workspaces_root,
)
from engine.root import RootUnusable, check_writable, open_root
from engine.service import build_worker

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)
FAILED = 1
CANNOT_START = 2
INTERRUPTED = 130


def leave(code: int) -> NoReturn:
    """End the process at once with this code, output flushed.

    The SDK's native part can abort the interpreter while it exits (temporalio/sdk-python#300)
    and so turn success into a failure code; `os._exit` runs none of that.
    """
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):  # the reader of a pipe has gone
            continue
    os._exit(code)


def main() -> NoReturn:
    """Run a worker until SIGINT or SIGTERM. Never returns: leaves with the exit code."""
    handler = logging.StreamHandler()
    # By name and late, like all activities (`engine.service`).
    redacting = import_module("activities.guards.secrets").Redacting
    handler.setFormatter(redacting("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    level = os.environ.get("LONGHAUL_LOG", "WARNING").upper()
    logging.basicConfig(level=level, handlers=[handler])
    try:
        asyncio.run(serve())
    except (Unreachable, RootUnusable) as error:
        print(f"error: {error}", file=sys.stderr)
        leave(CANNOT_START)
    except KeyboardInterrupt:  # before there was anything to drain
        leave(INTERRUPTED)
    except Exception:
        logging.exception("the worker failed")
        leave(FAILED)
    leave(0)


async def serve() -> None:
    """Serve jobs until told to stop, then let running steps end and the rest go elsewhere.

    Raises:
        Unreachable: no Temporal server.
        RootUnusable: the workspaces root cannot be written.
    """
    check_writable(workspaces_root())
    client = await connect()
    # Late: it loads all activities, which takes seconds that a missing server need not cost.
    root = open_root(workspaces_root())
    worker = build_worker(client, root=root)
    stop = asyncio.Event()
    _listen(stop)
    async with worker:
        print(
            f"worker ready: task queue {task_queue()}, workspaces {workspaces_root()}, "
            f"model endpoint {describe_endpoint()}",
            flush=True,
        )
        await stop.wait()
        print("worker draining: running steps end, then it stops", flush=True)


def _listen(stop: asyncio.Event) -> None:
    """The first signal asks to drain, a second one leaves at once."""

    def on_signal() -> None:
        if stop.is_set():
            print("worker left without draining", file=sys.stderr)
            leave(INTERRUPTED)
        stop.set()

    loop = asyncio.get_running_loop()
    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, on_signal)
