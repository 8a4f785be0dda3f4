"""What git reports when a server refuses access, and that passwords are never printed."""

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from temporalio.exceptions import ApplicationError

from activities.checkpoints import RemoteUnavailable, Root, open_checkpoints
from activities.checkpoints.journal import PushStaging
from activities.checkpoints.object_store import EMPTY_TREE
from activities.checkpoints.remote import push_to_remote, remote_owner
from activities.checkpoints.remote_fetch import fetch_remote_checkpoints
from activities.job.activity_context import fetch_snapshot
from activities.preparation.checkpoint_ownership import check_remote_ownership
from activities.runtime.failures import typed_failures
from config.agent_files import load_agent
from protocol.failure_details import OUTAGE
from protocol.prepare_requests import PrepareRequest
from tests.activities.standing import JOB, environment
from tests.activities.wires import (
    PASSWORD,
    USER,
    Shell,
    Web,
    authorization,
    certificate,
    given,
    shell,
    web,
)
from tests.soak import patient

SOON = 15
"""Seconds: no password is asked for, and nothing is waited for."""


@pytest.fixture
def served(remote: Path) -> Iterator[Web]:
    with web(remote.parent) as served:
        yield served


@pytest.fixture(scope="module")
def let_in(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    with shell(tmp_path_factory.mktemp("shell") / "sshd") as let_in:
        yield let_in


def pushed(root: Root, url: str) -> str:
    store = open_checkpoints(root, JOB, create=True)
    files = store.files(EMPTY_TREE.hex()).write("a.md", b"tea\n")
    commit = store.commit(files.id, [], "one", 1_700_000_000)
    push_to_remote(
        url, JOB, store.path, PushStaging(store.path).stage(), {"runs/run/here": commit}, {}
    )
    return commit


def told_by_each(root: Root, url: str) -> set[str]:
    """Return how a push, a look and a fetch fail."""
    begun = time.monotonic()
    store = open_checkpoints(root, JOB, create=True)
    with pytest.raises(RemoteUnavailable) as push_failed:
        pushed(root, url)
    with pytest.raises(RemoteUnavailable) as look_failed:
        remote_owner(url, JOB)
    with pytest.raises(RemoteUnavailable) as fetch_failed:
        fetch_remote_checkpoints(url, JOB, store)
    messages = {str(each.value) for each in (push_failed, look_failed, fetch_failed)}
    assert time.monotonic() - begun < patient(SOON)
    return messages


def test_without_a_password_nobody_is_asked_for_it(
    root: Root, remote: Path, served: Web, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    window = tmp_path / "window"
    window.write_text(f"#!/bin/sh\ntouch {tmp_path / 'asked'}\n")
    window.chmod(0o700)
    monkeypatch.setenv("SSH_ASKPASS", str(window))
    given(monkeypatch, http__extraHeader=f"Authorization: {authorization('wr0ng-4711')}")
    [message] = told_by_each(root, f"{served.url}/{remote.name}")
    assert "could not read Username" in message
    assert message.endswith("has no credentials that are taken there")
    assert not (tmp_path / "asked").exists()


@pytest.mark.parametrize("password", [PASSWORD, "wr0ng-4711-brewed"])
def test_a_password_that_git_is_given_is_neither_told_nor_kept(
    root: Root, remote: Path, served: Web, monkeypatch: pytest.MonkeyPatch, password: str
) -> None:
    url = f"{served.url}/{remote.name}"
    to = served.url.replace("://", f"://{USER}:{password}@")
    given(monkeypatch, **{f"url.{to}/.insteadOf": f"{served.url}/"})
    if password == PASSWORD:
        pushed(root, url)
        fetch_remote_checkpoints(url, JOB, open_checkpoints(root, JOB))
        url += ".not"
    messages = told_by_each(root, url)
    config = load_agent("generalist", {"workspace.remote": url})
    messages |= set(
        environment().run(check_remote_ownership, config, PrepareRequest(chain="chain"))
    )
    assert any("Authentication failed" in line or "not found" in line for line in messages)
    disk_content = b"".join(path.read_bytes() for path in root.path.rglob("*") if path.is_file())
    assert password not in "".join(messages)
    assert password.encode() not in disk_content


def test_a_certificate_that_git_does_not_know_is_told(
    root: Root, remote: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    proof = certificate(remote.parent)
    given(monkeypatch, http__extraHeader=f"Authorization: {authorization()}")
    with web(remote.parent, proof) as served:
        url = f"{served.url}/{remote.name}"
        [message] = told_by_each(root, url)
        assert "certificate" in message
        monkeypatch.setenv("GIT_SSL_CAINFO", str(proof))
        pushed(root, url)
        fetch_remote_checkpoints(url, JOB, open_checkpoints(root, JOB))


def test_a_proxy_that_git_is_set_up_with_is_used(
    root: Root, remote: Path, served: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    let_in = f"Authorization: {authorization()}"
    given(monkeypatch, http__proxy=served.url, http__extraHeader=let_in)
    url = f"http://remote.invalid/{remote.name}"
    pushed(root, url)
    fetch_remote_checkpoints(url, JOB, open_checkpoints(root, JOB))


def test_a_worker_that_lacks_a_checkpoint_waits_for_the_right_password(
    root: Root, remote: Path, served: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"{served.url}/{remote.name}"
    given(monkeypatch, http__extraHeader=f"Authorization: {authorization('wr0ng')}")

    def bring() -> None:
        with typed_failures():
            fetch_snapshot(root, JOB, url, "0" * 40)

    with pytest.raises(ApplicationError) as failed:
        environment().run(bring)
    assert failed.value.type == "Dependency"
    assert not failed.value.non_retryable
    assert OUTAGE in failed.value.details
    assert "has no credentials that are taken there" in failed.value.message


def test_a_remote_that_refuses_says_why(root: Root, remote: Path) -> None:
    git = ["git", "--git-dir", str(remote)]
    subprocess.run([*git, "config", "receive.hideRefs", "refs/longhaul"], check=True)
    with pytest.raises(RemoteUnavailable, match="deny updating a hidden ref"):
        pushed(root, f"file://{remote}")


@pytest.mark.parametrize(
    ("key", "known", "why"),
    [
        ("stranger", "known", "Permission denied"),
        ("key", "nobody", "Host key verification failed"),
        ("key", "changed", "Host key for .* has changed"),
    ],
)
def test_ssh_that_may_not_says_why_and_asks_nobody(
    root: Root, remote: Path, let_in: Shell, monkeypatch: pytest.MonkeyPatch,
    key: str, known: str, why: str,
) -> None:  # fmt: skip
    monkeypatch.setenv("GIT_SSH_COMMAND", let_in.command(key, known))
    with pytest.raises(RemoteUnavailable, match=why):
        pushed(root, f"{let_in.url}{remote}")
    # No empty password is tried either: servers lock people out for that.
    assert "Failed password" not in let_in.log


def test_another_program_than_ssh_gets_none_of_its_options(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    called = tmp_path / "called"
    program = tmp_path / "tunnel"
    program.write_text(f'#!/bin/sh\necho "$@" >> {called}\necho no way there >&2\nexit 1\n')
    program.chmod(0o700)
    monkeypatch.setenv("GIT_SSH_COMMAND", f"{program} -v")
    with pytest.raises(RemoteUnavailable, match="no way there"):
        remote_owner("ssh://git.example.com/checkpoints.git", JOB)
    assert "BatchMode" not in called.read_text()
