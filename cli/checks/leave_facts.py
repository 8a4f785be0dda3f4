"""What `doctor --leave` and `start --unattended` know of a job and of the place where it runs."""

import asyncio
import os
import re
import shutil
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError

from activities.checkpoints import Root
from activities.commands import sandbox
from activities.notifications.delivery import deliver_notification
from activities.notifications.recipients import resolve_recipients
from cli.checks.check_result import CHECK_TIMEOUT, CheckResult
from cli.checks.leave_hazards import Absence, list_hazards
from cli.checks.model_checks import check_model_endpoint
from cli.jobs.job_view import view_job
from cli.jobs.polling import list_current_workers, worker_roots
from cli.output import UserError
from cli.start.start_files import project_input_agents, read_project_file
from config.agent_files import agent_names, load_agent
from config.schema.agent import AgentConfig, ConfigError
from config.schema.notifications import Notify
from engine.connection import connect_client, task_queue
from engine.root_location import workspaces_root
from engine.setup_errors import SetupError
from protocol.notification_requests import Destination, Notification, Sending
from protocol.short_text import one_line
from protocol.status import JobStatus

MOST_JOBS = 50
"""Newest jobs whose size is measured."""
_HOURS = re.compile(r"(\d+(?:\.\d+)?)([hd])")


def parse_absence_hours(text: str) -> float:
    """Return the hours of `48h` or `2d`. Raises UserError."""
    match = _HOURS.fullmatch(text.strip())
    if match is None or float(match[1]) == 0:
        raise UserError(f"{text}: expected how long nobody is there, such as 48h or 2d")
    return float(match[1]) * (24 if match[2] == "d" else 1)


async def check_absence(name: str, hours: float) -> AsyncIterator[CheckResult]:
    """Yield what would stop or harm a job before somebody is back; nothing if all is well.

    Args:
        name: A job, an agent, or the file of a project.
        hours: How long nobody is there.
    """
    configs = await asyncio.to_thread(_named_configs, name)
    absences = [Absence(hours, config, time.time()) for config in configs]
    if not absences:
        absences = [await _running_job(await connect_client(), name, hours)]
    async for hazard in check_absences(absences):
        yield hazard


async def check_absences(absences: list[Absence]) -> AsyncIterator[CheckResult]:
    """Yield the hazards of the agents of one start or job, each once."""
    reported = set[CheckResult]()
    tested: dict[str, str] = {}
    place = await _add_server_facts(await asyncio.to_thread(_add_host_facts, absences[0]))
    for absence in absences:
        config = absence.config
        complete = replace(
            place,
            config=config,
            status=absence.status,
            elapsed_hours=absence.elapsed_hours,
            notify_problem=await _test_notifications(config, tested),
        )
        endpoint = await check_model_endpoint(config)
        for hazard in ([] if endpoint.ok else [endpoint]) + list_hazards(complete):
            if hazard not in reported:
                reported.add(hazard)
                yield hazard


def _named_configs(name: str) -> list[AgentConfig]:
    """Return the agent of this name, or the agents of a project's file, with the notifications that
    apply to them; nothing if it is neither.
    """
    if name in agent_names():
        return [load_agent(name)]
    if not Path(name).is_file():
        return []
    start = read_project_file(Path(name))[0]
    try:
        configs = project_input_agents(start)
    except ConfigError as error:
        raise UserError(str(error)) from None
    if start.notify is None:
        return configs
    notify = Notify.model_validate(start.notify)
    return [config.model_copy(update={"notify": notify}) for config in configs]


async def _running_job(client: Client, job: str, hours: float) -> Absence:
    """Return what is known of a job, with its pinned configuration if that is on this host."""
    from cli.job_files import checkpoint_reader  # noqa: PLC0415 - takes a second

    job_view = await view_job(client, job)
    status = job_view.status
    if job_view.closed:
        raise UserError(f"{job} has ended ({status.status}); name a job that is open, or an agent")
    if not isinstance(status, JobStatus):
        raise UserError(f"{job} is not a single job; name one of its jobs, or the project's file")
    config = load_agent(status.agent or "generalist")
    with suppress(UserError):
        places = checkpoint_reader.checkpoint_places_from_status(status)
        if places.newest:
            store = checkpoint_reader.open_checkpoints_for_reading(job, places)
            config = checkpoint_reader.config_at_checkpoint(store, places.newest)
    elapsed = (datetime.now(UTC) - job_view.started).total_seconds() / 3600
    return Absence(hours, config, time.time(), status=status, elapsed_hours=elapsed)


def _add_host_facts(absence: Absence) -> Absence:
    root = workspaces_root()
    there = next(folder for folder in (root, *root.parents) if folder.exists())
    return replace(
        absence,
        variables=dict(os.environ),
        free_bytes=shutil.disk_usage(there).free,
        largest_job_bytes=_largest_job_bytes(root),
        file_system=file_system_type(there, Path("/proc/mounts")),
        sandbox_problem=sandbox.sandbox_problem(sandbox.find_bwrap()) or "",
    )


def _largest_job_bytes(root: Path) -> int:
    """Return the bytes of the largest of the newest jobs' checkpoints."""
    repositories = list((root / ".longhaul" / "checkpoints").glob("*.git"))
    newest = sorted(repositories, key=lambda path: path.stat().st_mtime)[-MOST_JOBS:]
    sizes = (
        sum(path.stat().st_size for path in repository.rglob("*") if path.is_file())
        for repository in newest
    )
    return max(sizes, default=0)


def file_system_type(folder: Path, mounts: Path) -> str:
    """Return the type of the file system that a folder is on; empty if the machine does not say."""
    kinds: dict[str, str] = {}
    with suppress(OSError):
        for line in mounts.read_text(encoding="utf-8", errors="replace").splitlines():
            fields = line.split()
            kinds[fields[1]] = fields[2]
    above = (str(path) for path in (folder.resolve(), *folder.resolve().parents))
    return next((kinds[path] for path in above if path in kinds), "")


async def _add_server_facts(absence: Absence) -> Absence:
    """Add what the server knows."""
    try:
        client = await connect_client()
        workers = await list_current_workers(client, task_queue())
        described = await client.workflow_service.describe_namespace(
            DescribeNamespaceRequest(namespace=client.namespace), timeout=CHECK_TIMEOUT
        )
    except (SetupError, RPCError) as error:
        return replace(absence, server_problem=one_line(str(error), 200))
    retention = described.config.workflow_execution_retention_ttl.ToTimedelta()
    return replace(
        absence,
        workers=len(workers),
        roots=tuple(worker_roots(workers)),
        retention_hours=retention.total_seconds() / 3600 or None,
    )


async def _test_notifications(config: AgentConfig, tested: dict[str, str]) -> str:
    """Send a test to everybody whom the agent's jobs notify; return why one did not arrive.

    Args:
        config: The agent.
        tested: The outcomes so far, by recipients, each of whom gets one test.
    """
    try:
        notifying = resolve_recipients([config])
    except ConfigError as error:
        return str(error)
    if notifying is None:
        return ""
    recipients = notifying.model_dump_json()
    if recipients not in tested:
        tested[recipients] = await _send_test(notifying.to)
    return tested[recipients]


async def _send_test(recipients: list[Destination]) -> str:
    notification = Notification(
        key=f"test-{uuid.uuid4().hex}",
        event="waiting",
        job="test",
        status="test",
        text="This is a test: jobs on this address will say when they wait or have ended.",
    )
    with TemporaryDirectory() as folder:
        root = Root.open(Path(folder), create=True)
        for number, to in enumerate(recipients):
            try:
                sending = Sending(notification=notification, to=to, number=number)
                await deliver_notification(root, sending)
            except ApplicationError as error:
                return error.message
    return ""
