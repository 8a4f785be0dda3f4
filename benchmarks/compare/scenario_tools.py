"""The tools of the scenarios: a call takes its time, and logs when it begins and when it ends."""

import asyncio
import json
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from temporalio import activity
from temporalio.workflow import ActivityConfig

from benchmarks.compare.adapter_task import AdapterTask, current_adapter_task

SHORT = timedelta(seconds=60)
"""Time limit of a call that only writes a file."""
LONG = timedelta(minutes=30)
"""Time limit of a call in a scenario, longer than any."""
HEARTBEAT = timedelta(seconds=20)
"""Heartbeat time-out of all runners on Temporal; Longhaul has no other."""


def log_scenario_event(kind: str, number: int = 0, version: str = "") -> None:
    event = {"at": time.time(), "kind": kind, "number": number, "version": version}
    with current_adapter_task().events.open("a", encoding="utf-8") as log:
        log.write(json.dumps(event) + "\n")


@activity.defn
async def work(number: int, seconds: float, version: str) -> str:
    """Work for some seconds."""
    log_scenario_event("began", number, version)
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        if activity.in_activity():
            activity.heartbeat()
        await asyncio.sleep(min(1.0, left))
    log_scenario_event("ended", number, version)
    return f"Call {number} is done."


@activity.defn
async def tool_of_b(text: str) -> str:
    """Do what only version B can do."""
    return text


def adapter_tools(task: AdapterTask, *usual: Callable[..., Any]) -> list[Callable[..., Any]]:
    """Return the tools of a scenario, or the usual ones."""
    if not task.scenario:
        return [*usual]
    return [work, tool_of_b] if task.changed == "prompt" else [work]


def tool_time_limits(task: AdapterTask) -> ActivityConfig:
    """Return the limits for runners whose user has to name one."""
    if not task.scenario:
        return ActivityConfig(start_to_close_timeout=SHORT)
    if task.default_limits:
        return ActivityConfig(start_to_close_timeout=LONG)
    return ActivityConfig(start_to_close_timeout=LONG, heartbeat_timeout=HEARTBEAT)
