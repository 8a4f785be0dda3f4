"""What a piece of work leaves behind for comparison and checks."""

import asyncio
import re
import time
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from temporalio.api.enums.v1 import EventType, WorkflowTaskFailedCause
from temporalio.client import Client, WorkflowExecution

from activities.checkpoints import Root
from activities.projects.project_repository import ProjectRepository, project_repository_path
from activities.requirements.graph import open_graph
from activities.requirements.graph.embedded import embedded_graph_folder
from activities.requirements.graph.interface import GraphQuery
from activities.stores.relational_store import RelationalStore
from activities.stores.stored_traces import read_job_traces
from config.agent_files import load_agent
from tests.activities.stores.filling import list_job_requirements
from tests.chaos.model import TOOK
from tests.chaos.place import JOB, Place
from tests.crash.processes import Worker
from tests.crash.trial import in_tree
from tests.crash.trial import lagging as lagging_paths

HARMLESS = {
    # A signal arrived while the task ran, so the server repeats it.
    WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_COMMAND,
    # Its worker came back and said so.
    WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_RESET_STICKY_TASK_QUEUE,
}
DRAIN_SECONDS = 20


@dataclass
class Run:
    """The history of one run of one workflow."""

    workflow: str
    events: int
    size: int
    """Bytes."""
    failed: list[str]
    """Workflow tasks that failed, by cause."""


@dataclass
class Evidence:
    """See the module."""

    result: dict[str, Any]
    tree: str
    """The final tree of a job; empty for a project, whose jobs know its dated commits."""
    files: dict[str, bytes | None]
    """Files of all jobs, by job and path, without the durations that commands print."""
    accepted: dict[str, bytes]
    """What a project has accepted, by path; without the system's own files."""
    effects: Counter[str]
    """Rows of the store and the graph, each of which must exist once."""
    answered: Counter[str]
    """Model calls, by request."""
    told_of_interruption: bool
    runs: list[Run]
    lagging: list[str]
    """Paths where the visible folder differs from the last checkpoint."""
    left: list[str] = field(default_factory=list)
    """Processes and locks that remain."""


async def gather(place: Place) -> Evidence:
    """Collect the evidence after the end of the work, and end its workers."""
    runs, jobs = [], []
    async for execution in place.client.list_workflows():
        runs.append(await _run(place.client, execution))
        if execution.workflow_type == "Job" and execution.id not in jobs:
            jobs.append(execution.id)
    files: dict[str, bytes | None] = {}
    lagging: list[str] = []
    for job in jobs:
        ended: dict[str, Any] = await place.client.get_workflow_handle(job).result()
        location = (place.root, job, ended["checkpoint"])
        files |= {f"{job}/{path}": timeless(data) for path, data in in_tree(*location).items()}
        lagging += [f"{job}/{path}" for path in lagging_paths(*location)]
    left = await _leave(place)
    return Evidence(
        result=place.result.result(),
        tree=place.result.result().get("tree", ""),
        files=files,
        lagging=lagging,
        accepted=_accepted(place.root),
        effects=_effects(place.root, [JOB, *jobs]),
        answered=place.moody.answered,
        told_of_interruption=place.moody.told_of_interruption,
        runs=runs,
        left=left,
    )


def timeless(data: bytes | None) -> bytes | None:
    """Return a file without the durations of its tests."""
    return data and re.sub(TOOK.pattern.encode(), b"in some time", data)


async def _run(client: Client, execution: WorkflowExecution) -> Run:
    history = await client.get_workflow_handle(
        execution.id, run_id=execution.run_id
    ).fetch_history()
    failed = [
        event.workflow_task_failed_event_attributes
        for event in history.events
        if event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED
    ]
    return Run(
        workflow=execution.id,
        events=len(history.events),
        size=sum(event.ByteSize() for event in history.events),
        failed=[
            f"{WorkflowTaskFailedCause.Name(each.cause)}: {each.failure.message[:300]}"
            for each in failed
            if each.cause not in HARMLESS
        ],
    )


def _accepted(root: Root) -> dict[str, bytes]:
    if not project_repository_path(root, JOB).exists():
        return {}
    project = ProjectRepository(project_repository_path(root, JOB))
    main = project.git.references["refs/heads/main"].peel().tree
    contents: dict[str, bytes] = {}

    def walk(tree: Any, under: str) -> None:
        for entry in tree:
            path = f"{under}{entry.name}"
            if entry.type_str == "tree":
                walk(entry, f"{path}/")
            else:
                contents[path] = entry.data

    walk(main, "")
    return contents


def _effects(root: Root, jobs: list[str]) -> Counter[str]:
    store = RelationalStore(root)
    effects: Counter[str] = Counter()
    for job in jobs:
        for row in store.run(partial(list_job_requirements, job=job)):
            effects[f"requirement {job} {row.id} {row.status} {row.final_json}"] += 1
        effects.update(f"trace {job} {trace.what_happened}" for trace in read_job_traces(root, job))
    if embedded_graph_folder(root.path).exists():
        with open_graph(root, load_agent("validator").graph_schema) as graph:
            for answer in graph.read(
                GraphQuery("MATCH (r:Requirement) RETURN r.id ORDER BY r.id"),
                GraphQuery("MATCH (r:Requirement)-[:FULFILLED_BY]->(b) RETURN r.id ORDER BY r.id"),
            ):
                effects.update(f"{answer.columns} {row}" for row in answer.rows)
    return effects


async def _leave(place: Place) -> list[str]:
    """End the workers in good order; return whatever remains."""
    left = []
    place.look_for_the_dead()
    for worker in place.workers:
        worker.drain()
    stuck = await asyncio.to_thread(_until_gone, place.workers)
    left += [f"worker {worker.pid} does not end" for worker in stuck]
    left += [f"process {description}" for description in _processes(str(place.root.path))]
    # Our lock files stay; the kernel holds a lock while its holder lives.
    left += [
        f"lock {path}"
        for repository in place.root.path.rglob("*.git")
        for path in repository.rglob("*.lock")
        if not path.name.startswith("longhaul-")
    ]
    return left


def _until_gone(workers: list[Worker]) -> list[Worker]:
    """Wait for the workers to end; return those that have not ended in time."""
    until = time.monotonic() + DRAIN_SECONDS
    while (left := [each for each in workers if each.alive]) and time.monotonic() < until:
        time.sleep(0.05)
    return left


def _processes(mark: str) -> list[str]:
    """Return processes that name this folder or run in it."""
    descriptions = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command_line = (
                (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            )
            where = str((folder / "cwd").readlink())
        except OSError:
            continue
        if mark in command_line or where.startswith(mark):
            descriptions.append(f"{folder.name}: {command_line[:200]} in {where}")
    return descriptions
