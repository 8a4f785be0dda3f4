"""Credentials planted where a worker reads them, then searched for in all traces of a job.

The worker is a separate process that logs everything, so the scan covers all there is.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client, WorkflowFailureError

from activities.checkpoints import Root, open_checkpoints
from rehearsal.request_view import RequestView
from rehearsal.server import ModelServer
from rehearsal.wire import Answer, Failure, Request
from tests.activities.mcp.serving import odd
from tests.crash.processes import WORKER_CONFIG, Nursery, Worker
from tests.workflows.serving import Jobs
from tests.workflows.short import Call, Short, job
from tests.workflows.test_codec import raw

# None of them looks like a key, so that no pattern hides them by chance.
ENVIRONMENT = {
    "OPENAI_API_KEY": "oolong-4711-model",
    "ODD_HEADER": "oolong-4712-server",
    "DATABASE_PASSWORD": "oolong-4713-unused",
}
IN_ADDRESS = "oolong-4714-store"
PLANTED = [*ENVIRONMENT.values(), IN_ADDRESS]
WRITTEN = "AKIA" + "IOSFODNN7OOLONGS"
"""Made up by the model, which tries to write it."""
IN_DOCUMENT = "gh" + "p_0o1o2l3o4n5g6T7e8a9B0o1i2l3B4r5e6w7X"


@dataclass
class Careless:
    """A model whose endpoint echoes the key, and that writes down whatever it learns."""

    failures: int = 0
    results: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.short = Short({"Work": self.work})

    def work(self, view: RequestView) -> Sequence[Call]:
        self.results += [done_call.result for done_call in view.calls[-1:]]
        key = ENVIRONMENT["OPENAI_API_KEY"]
        calls: list[Call] = [
            ("odd__variables", {}),
            ("write_file", {"path": "notes/found.md", "content": f"The key is {key}."}),
            ("write_file", {"path": f"notes/{key}.md", "content": "tea"}),
            ("write_file", {"path": "notes/aws.md", "content": f"aws = {WRITTEN}"}),
            ("read_file", {"path": f"notes/{IN_ADDRESS}.md"}),
            ("take_requirement", {}),
        ]
        return [calls[view.replies % len(calls)]]

    def __call__(self, request: Request) -> Answer:
        if self.failures < 1:
            self.failures += 1
            return Failure(500, f"no account for {ENVIRONMENT['OPENAI_API_KEY']}")
        return self.short(request)


@asynccontextmanager
async def working(
    workers: Nursery, address: str, root: Root, base_url: str
) -> AsyncIterator[Worker]:
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("OPENAI_", "LONGHAUL_"))}
    variables = {
        **inherited,
        "LONGHAUL_CONFIG": str(WORKER_CONFIG),
        **ENVIRONMENT,
        "TEMPORAL_ADDRESS": address,
        "LONGHAUL_WORKSPACES": str(root.path),
        "LONGHAUL_TASK_QUEUE": "planted",
        "LONGHAUL_LOG": "DEBUG",
        "LONGHAUL_STORE_URL": f"postgresql://app:{IN_ADDRESS}@127.0.0.1:1/db",
        "OPENAI_BASE_URL": base_url,
    }
    worker = workers.start("planted", variables)
    try:
        yield worker
    finally:
        worker.drain()
        await worker.left()


def stored(root: Root, job_id: str) -> dict[str, str]:
    """Return every object of the job's checkpoints and every file below the root, by name."""
    repository = open_checkpoints(root, job_id)
    repository.pack()
    listed = subprocess.check_output(
        ["git", "--git-dir", repository.path, "cat-file", "--batch-all-objects", "--batch"]
    )
    contents = {"objects": listed.decode("latin-1")}
    for path in root.path.rglob("*"):
        contents[str(path.relative_to(root.path))] = (
            path.read_bytes().decode("latin-1") if path.is_file() else ""
        )
    return contents


def leaks(planted: str, where: dict[str, str]) -> list[str]:
    return [name for name, text in where.items() if planted in text or planted in name]


async def test_no_credential_of_the_worker_is_found_anywhere(
    temporal: Client, workers: Nursery, root: Root, tmp_path: Path
) -> None:
    document = tmp_path / "law.md"
    document.write_text(f"# Law\n\nThe old token was {IN_DOCUMENT}.\n")
    start: dict[str, Any] = job(
        documents=[str(document)],
        set={
            "mcp": {"odd": odd(tmp_path / "ledger", env={"ODD_TOKEN": "ODD_HEADER"})},
            "tools": ["files", "todos", "job", "documents", "validation"],
            "limits.tools_offered": 60,
            "limits.tool_attempts": 1,
        },
    )
    address = temporal.service_client.config.target_host
    model = Careless()
    with ModelServer(model) as served:
        async with working(workers, address, root, served.base_url) as worker:
            jobs = Jobs(temporal, root, "planted")
            handle = await jobs.start(start)
            status = await jobs.until(handle, waiting_for="dependency")
            raw_history = await raw(jobs, handle.id)
            # At its end the job updates the folder.
            await handle.signal("cancel", {"reason": "Enough."})
            with pytest.raises(WorkflowFailureError):
                await jobs.result(handle)
    left = {
        "history": raw_history,
        "status": str(status),
        "log": worker.log.read_text(errors="replace"),
        **stored(root, handle.id),
    }
    # The job did meet them: the failing endpoint, the server's answer, the store's message.
    assert "no account for [redacted]" in left["history"] + left["log"]
    assert any("ODD_TOKEN=[redacted]" in tool_result for tool_result in model.results)
    assert "app:***@127.0.0.1:1/db" in left["status"]
    assert f"{handle.id}/notes/[redacted].md" in left
    for planted in PLANTED:
        assert leaks(planted, left) == []
    # Texts of documents and of the model are the job's own content: they stay in checkpoints, but
    # are in no file that the model wrote, and neither in the history nor in the log.
    replies = [name for name in left if "/replies/" in name]
    assert set(leaks(WRITTEN, left)) <= {"objects", *replies}
    in_document = leaks(IN_DOCUMENT, left)
    assert "objects" in in_document
    assert all(name == "objects" or f"{handle.id}/documents/" in name for name in in_document)
