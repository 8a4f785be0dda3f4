"""Credentials planted where a worker reads them, then searched for in all traces of a job.

The worker is a separate process that logs everything, so the scan covers all there is.
"""

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import pytest
from temporalio.client import Client, WorkflowFailureError

from activities.checkpoints import Root, open_checkpoints
from activities.commands import sandbox
from engine.free_ports import free_port
from rehearsal.request_view import RequestView
from rehearsal.server import ModelServer
from rehearsal.wire import Answer, Failure, Request
from tests.activities.guards.hooks.scripts import hook
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
    "TEAM_PHASE": "oolong-4715-phase-model",
    "TEAM_SEARCH": "oolong-4716-search",
    "TEAM_INDEX": "oolong-4717-command",
    "TEAM_CHECK": "oolong-4718-hook-before",
    "TEAM_FORMAT": "oolong-4719-hook-after",
    "TEAM_CHAT": "oolong-4720-hook-notification",
    "TEAM_PAGER": "http://127.0.0.1:1/oolong-4721-address",
    "TEAM_HEADER": "oolong-4722-header",
}
"""A variable of each kind; only the configuration says that those of the team are credentials."""
IN_ADDRESS = "oolong-4714-store"
PLANTED = [*ENVIRONMENT.values(), IN_ADDRESS]
COMMANDS = ["shell"] if sandbox.sandbox_problem(sandbox.find_bwrap()) is None else []
WRITTEN = "AKIA" + "IOSFODNN7OOLONGS"
"""Made up by the model, which tries to write it."""
IN_DOCUMENT = "gh" + "p_0o1o2l3o4n5g6T7e8a9B0o1i2l3B4r5e6w7X"


@dataclass
class Careless:
    """A model whose endpoint echoes the key, and that writes down whatever it learns."""

    failures: int = 0
    results: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

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
            ("write_file", {"path": "notes/all.md", "content": "\n".join(ENVIRONMENT.values())}),
            ("run_command", {"command": 'echo "index $INDEX"; echo "$INDEX" > notes/index.md'}),
            ("take_requirement", {}),
        ]
        return [calls[view.replies % len(calls)]]

    def __call__(self, request: Request) -> Answer:
        self.requests.append(json.dumps(request, ensure_ascii=False, default=vars))
        if self.failures < 1:
            self.failures += 1
            return Failure(500, f"no account for {ENVIRONMENT['OPENAI_API_KEY']}")
        return self.short(request)


@asynccontextmanager
async def working(
    workers: Nursery, address: str, root: Root, base_url: str, metrics: str
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
        "LONGHAUL_METRICS": metrics,
    }
    worker = workers.start("planted", variables)
    try:
        yield worker
    finally:
        worker.drain()
        await worker.left()


def naming(folder: Path) -> dict[str, Any]:
    """Return settings of each kind that names variables, with hooks that tell them to everybody."""
    told = "print(json.dumps({'decision': 'block', 'reason': 'found ' + os.environ['TEAM_CHECK']}))"
    formatted = (
        "open('notes/formatted.md', 'w').write(os.environ['TEAM_FORMAT'])\n"
        "print(json.dumps({'additionalContext': 'formatted by ' + os.environ['TEAM_FORMAT']}))"
    )
    failed = "sys.exit('no chat for ' + os.environ['TEAM_CHAT'])"
    return {
        "hooks": {
            "PreToolUse": [
                hook(folder / "told.py", told, matcher="read_file", environment=["TEAM_CHECK"])
            ],
            "PostToolUse": [
                hook(
                    folder / "formatted.py",
                    formatted,
                    matcher="write_file",
                    environment=["TEAM_FORMAT"],
                )
            ],
            "Notification": [hook(folder / "failed.py", failed, environment=["TEAM_CHAT"])],
        },
        "notify": {"url_variable": "TEAM_PAGER", "headers": {"X-Team": "TEAM_HEADER"}},
        "phase_models": {"strategic": {"api_key_variable": "TEAM_PHASE"}},
        "shell.environment": {"INDEX": "TEAM_INDEX"},
        "web.search": {"kind": "brave", "api_key_variable": "TEAM_SEARCH"},
    }


def report(root: Root, address: str, job_id: str, folder: Path) -> str:
    """Return the report as a page and as JSON, made by somebody without the variables."""
    variables = {
        "PATH": os.environ["PATH"],
        "TEMPORAL_ADDRESS": address,
        "LONGHAUL_WORKSPACES": str(root.path),
    }
    page = folder / "report.html"
    command = [sys.executable, "starter.py", "report", job_id]
    told = [
        subprocess.run([*command, *more], env=variables, capture_output=True, text=True, check=True)
        for more in (["--output", str(page)], ["--json"])
    ]
    return page.read_text() + told[1].stdout


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
            "tools": ["files", "todos", "job", "documents", "validation", *COMMANDS],
            "limits.tools_offered": 60,
            "limits.tool_attempts": 1,
            **naming(tmp_path),
        },
    )
    address = temporal.service_client.config.target_host
    model = Careless()
    with ModelServer(model) as served:
        metrics = f"127.0.0.1:{free_port()}"
        async with working(workers, address, root, served.base_url, metrics) as worker:
            jobs = Jobs(temporal, root, "planted")
            handle = await jobs.start(start)
            status = await jobs.until(handle, waiting_for="dependency")
            raw_history = await raw(jobs, handle.id)
            measured = httpx2.get(f"http://{metrics}/metrics").text
            # At its end the job updates the folder.
            await handle.signal("cancel", {"reason": "Enough."})
            with pytest.raises(WorkflowFailureError):
                await jobs.result(handle)
    left = {
        "history": raw_history,
        "status": str(status),
        "log": worker.log.read_text(errors="replace"),
        "metrics": measured,
        "requests": "\n".join(model.requests),
        "report": report(root, address, handle.id, tmp_path),
        **stored(root, handle.id),
    }
    # The job did meet them: the failing endpoint, the server's answer, the store's message.
    assert "no account for [redacted]" in left["history"] + left["log"]
    assert any("ODD_TOKEN=[redacted]" in tool_result for tool_result in model.results)
    assert "app:***@127.0.0.1:1/db" in left["status"]
    assert f"{handle.id}/notes/[redacted].md" in left
    assert "found [redacted]" in left["requests"]
    assert "formatted by [redacted]" in left["requests"]
    assert "no chat for [redacted]" in left["log"] + left["history"]
    assert not COMMANDS or "index [redacted]" in left["requests"]
    for planted in PLANTED:
        assert leaks(planted, left) == []
    # Texts of documents and of the model are the job's own content: they stay in checkpoints, but
    # are in no file that the model wrote, and neither in the history nor in the log. The endpoint
    # gets the model's own words and the documents again.
    replies = [name for name in left if "/replies/" in name]
    assert set(leaks(WRITTEN, left)) <= {"objects", "requests", *replies}
    in_document = leaks(IN_DOCUMENT, left)
    assert "objects" in in_document
    assert all(
        name in ("objects", "requests") or f"{handle.id}/documents/" in name for name in in_document
    )
