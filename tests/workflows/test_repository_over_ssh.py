"""A repository behind a real sshd: fetched, and published to, with a key or an agent."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client

from activities.checkpoints import Root
from tests.activities.source_repository.origins import WorkTree, bare_clone, git
from tests.activities.wires import Shell, shell
from tests.workflows.serving import serving
from tests.workflows.short import job
from tests.workflows.test_publish import model, tip


@pytest.fixture
def let_in(tmp_path: Path) -> Iterator[Shell]:
    with shell(tmp_path / "sshd") as let_in:
        yield let_in


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    tree = WorkTree.create(tmp_path / "tea", tea_py="def brew():\n    ...\n")
    return bare_clone(tree, tmp_path / "remote.git")


@pytest.fixture
def agent(let_in: Shell, tmp_path: Path) -> Iterator[str]:
    """The socket of an ssh agent that holds the key."""
    socket = str(tmp_path / "agent")
    process = subprocess.Popen(
        ["ssh-agent", "-D", "-a", socket], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    try:
        assert process.stdout
        process.stdout.readline()
        subprocess.run(
            ["ssh-add", "-q", let_in.folder / "key"],
            env={"SSH_AUTH_SOCK": socket, "PATH": "/usr/bin:/bin"},
            check=True,
            capture_output=True,
        )
        yield socket
    finally:
        process.terminate()
        process.wait()


def mending(let_in: Shell, remote: Path) -> dict[str, Any]:
    repository = {"url": f"{let_in.url}{remote}"}
    return job(repository=repository, publish={"branch": "stronger"})


async def test_a_key_that_the_workers_variable_names_is_used(
    temporal: Client, root: Root, let_in: Shell, remote: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_SSH_COMMAND", let_in.command("stranger"))
    async with serving(temporal, root, model()) as jobs:
        handle = await jobs.start(mending(let_in, remote))
        status = await jobs.until(handle, status="waiting")
        assert status["waiting_for"] == "dependency"
        message = status["waiting"]["message"]
        assert re.search(r"cannot be fetched: .*Permission denied \(.*publickey.*\)\.$", message)
        monkeypatch.setenv("GIT_SSH_COMMAND", let_in.command())
        await handle.signal("resume", {})
        result = await jobs.result(handle)
    assert tip(remote) == result["branch"]["commit"]
    assert git(remote, "rev-parse", "stronger^").strip() == result["branch"]["base"]


async def test_a_key_of_the_ssh_agent_is_used(
    temporal: Client,
    root: Root,
    let_in: Shell,
    agent: str,
    remote: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known = f"-o UserKnownHostsFile={let_in.folder / 'known'} -o GlobalKnownHostsFile=none"
    monkeypatch.setenv("GIT_SSH_COMMAND", f"ssh -F none {known}")
    monkeypatch.setenv("SSH_AUTH_SOCK", agent)
    async with serving(temporal, root, model()) as jobs:
        result = await jobs.result(await jobs.start(mending(let_in, remote)))
    assert tip(remote) == result["branch"]["commit"]
