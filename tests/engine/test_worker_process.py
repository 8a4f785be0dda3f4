"""`worker.py` as a process: it gets ready, drains, and exits with the right code."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pygit2
import pytest

from activities.checkpoints import Root, open_checkpoints
from activities.checkpoints.object_store import EMPTY_TREE
from activities.job.checkpoint_push import UnpushedCheckpoint, record_unpushed
from engine.service import GRACE
from tests.crash.processes import Nursery
from tests.workflows.deploying import make_current

REPOSITORY = Path(__file__).parents[2]


def environment(address: str, root: Path, **more: str) -> dict[str, str]:
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("OPENAI_", "LONGHAUL_"))}
    return {**inherited, "TEMPORAL_ADDRESS": address, "LONGHAUL_WORKSPACES": str(root), **more}


def run(address: str, root: Path, *told: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "worker.py", *told], cwd=REPOSITORY, timeout=90, check=False,
        env=environment(address, root, **more), capture_output=True, text=True,
    )  # fmt: skip


def test_without_a_server_one_line_and_code_2(tmp_path):
    ended = run("localhost:1", tmp_path, LONGHAUL_LOG_FORMAT="json")
    assert ended.returncode == 2
    assert ended.stderr.count("\n") == 1
    log_entry = json.loads(ended.stderr)
    assert log_entry["level"] == "ERROR"
    assert log_entry["message"].startswith("error: no Temporal server at localhost:1")


@pytest.mark.parametrize(("argument", "code"), [("--help", 0), ("7233", 2)])
def test_with_an_argument_it_says_where_settings_come_from(tmp_path, argument, code):
    ended = run("localhost:1", tmp_path, argument)
    assert ended.returncode == code
    output = ended.stdout if code == 0 else ended.stderr
    assert output.startswith("usage: worker.py")
    assert ("TEMPORAL_ADDRESS" if code == 0 else "unrecognized arguments: 7233") in output


async def refused(workers: Nursery, address: str, root: Path, **more: str) -> str:
    """Return the one line that a worker prints before it exits with code 2."""
    worker = workers.start("refused", environment(address, root, **more))
    assert await worker.left() == 2
    log_text = worker.log.read_text()
    assert log_text.startswith("error: ")
    assert log_text.count("\n") == 1
    return log_text


async def test_with_a_root_that_cannot_be_written_one_line_and_code_2(workers, tmp_path):
    (tmp_path / "file").write_text("")
    root = tmp_path / "file" / "root"
    assert str(root) in await refused(workers, "localhost:1", root)


async def test_with_a_namespace_that_is_not_there_one_line_and_code_2(running, workers, tmp_path):
    log_text = await refused(workers, running.address, tmp_path, TEMPORAL_NAMESPACE="tea")
    assert log_text.startswith("error: the namespace tea cannot be used")
    assert "TEMPORAL_NAMESPACE" in log_text


@pytest.mark.parametrize(
    ("variables", "complaint"),
    [
        ({"LONGHAUL_BUILD_ID": "7"}, "LONGHAUL_BUILD_ID is set and LONGHAUL_DEPLOYMENT is not"),
        ({"LONGHAUL_DEPLOYMENT": "a.b", "LONGHAUL_BUILD_ID": "7"}, "found 'a.b', expected letters"),
        (
            {"TEMPORAL_WORKER_BUILD_ID": "7"},
            "TEMPORAL_WORKER_BUILD_ID is set and TEMPORAL_DEPLOYMENT_NAME is not",
        ),
        ({"LONGHAUL_CONFIG": "/nowhere/tea"}, "LONGHAUL_CONFIG: /nowhere/tea: there is no such"),
        ({"LONGHAUL_STORE_URL": "mysql://host/db"}, "LONGHAUL_STORE_URL names mysql"),
        ({"LONGHAUL_STORE_URL": "postgresql://me:secret@host:x/db"}, "LONGHAUL_STORE_URL is no"),
        ({"LONGHAUL_LOG": "loud"}, "LONGHAUL_LOG: found 'loud', expected one of DEBUG, INFO"),
    ],
)
async def test_with_a_variable_that_cannot_be_used_one_line_and_code_2(
    workers, tmp_path, variables, complaint
):
    log_text = await refused(workers, "localhost:1", tmp_path, **variables)
    assert complaint in log_text
    assert "secret" not in log_text


@pytest.mark.parametrize(
    ("graph", "complaint"),
    [("http://me:secret@host", "begins with 'http'"), ("bolt://", "names no host")],
)
async def test_with_a_graph_that_cannot_be_one_line_and_code_2(
    running, workers, tmp_path, graph, complaint
):
    log_text = await refused(workers, running.address, tmp_path, LONGHAUL_GRAPH_URL=graph)
    assert f"LONGHAUL_GRAPH_URL {complaint}" in log_text
    assert "secret" not in log_text


async def test_a_store_and_a_graph_that_are_away_do_not_keep_it_from_beginning(workers, tmp_path):
    away = {"LONGHAUL_STORE_URL": "postgresql://127.0.0.1:1/db", "LONGHAUL_GRAPH_URL": "bolt://h:1"}
    assert "no Temporal server" in await refused(workers, "localhost:1", tmp_path, **away)


def test_interrupted_while_it_loads_it_leaves_without_a_word(tmp_path):
    (tmp_path / "temporalio.py").write_text("raise KeyboardInterrupt")
    ended = run("localhost:1", tmp_path / "root", PYTHONPATH=str(tmp_path))
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "")


def leave_unpushed(folder: Path) -> tuple[pygit2.Repository, str]:
    """Leave a checkpoint of a job in a root; return the remote that lacks it."""
    root, path = Root.open(folder, create=True), folder / "remote.git"
    store = open_checkpoints(root, "job", create=True)
    files = store.files(EMPTY_TREE.hex()).write("a.md", b"tea")
    commit = store.commit(files.id, [], "one", 1_700_000_000)
    left = UnpushedCheckpoint(job="job", url=f"file://{path}", commit=commit, run="run")
    assert record_unpushed(root.repository("job"), left)
    return pygit2.init_repository(str(path), bare=True), commit


@pytest.mark.parametrize(
    ("number", "form", "version", "expected"),
    [
        (signal.SIGTERM, "json", {}, "workspaces "),
        (
            signal.SIGINT,
            "text",
            {"LONGHAUL_DEPLOYMENT": "tea", "LONGHAUL_BUILD_ID": "2026.7"},
            "version tea.2026.7, ",
        ),
    ],
    ids=["terminated, with a log of JSON", "interrupted, with a version"],
)
async def test_a_signal_drains_and_ends_it(running, tmp_path, number, form, version, expected):
    def said(line: bytes) -> str:
        return json.loads(line)["message"] if form == "json" else line.decode()

    remote, commit = leave_unpushed(tmp_path)
    variables = environment(running.address, tmp_path, **version, LONGHAUL_LOG_FORMAT=form)
    worker = await asyncio.create_subprocess_exec(
        sys.executable, "worker.py", cwd=REPOSITORY,
        env=variables, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        assert worker.stdout
        ready = said(await asyncio.wait_for(worker.stdout.readline(), 120))
        assert ready.startswith(f"worker ready: task queue longhaul, {expected}")
        assert str(tmp_path) in ready
        assert "rehearsal model" in ready
        if version:
            # The server identifies it by its version.
            await make_current(running.client, *version.values())
        began = time.monotonic()
        worker.send_signal(number)
        rest, _ = await asyncio.wait_for(worker.communicate(), 60)
        assert worker.returncode == 0
        assert said(rest).startswith("worker draining")
        # Nothing is running, so nothing is waited for.
        assert time.monotonic() - began < GRACE.total_seconds()
        # Meanwhile the remote has got what the worker before this one could not push.
        assert commit in [str(ref.target) for ref in remote.references.objects]
    finally:
        if worker.returncode is None:
            worker.kill()
            await worker.wait()
