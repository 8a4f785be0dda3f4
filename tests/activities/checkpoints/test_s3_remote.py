"""Checkpoints in a bucket of an object store that others wrote."""

import os
import threading
from pathlib import Path

import pytest

from activities.checkpoints import RemoteUnavailable
from activities.checkpoints.bucket import PROBE
from activities.checkpoints.checkpoint_errors import RemoteUnfit
from activities.checkpoints.remote import remote_checkpoint_area, remote_owner
from activities.checkpoints.s3_remote import MAX_PACKS, S3Remote
from protocol.s3_address import S3Address
from tests.activities.checkpoints.hosts import Host
from tests.backends import stored_packs
from tests.buckets import OTHER_STORE, unconditional_server
from tests.flawed_store import flawed_store

pytestmark = pytest.mark.parametrize("address", ["s3"], indirect=True)


def another_process(url: str) -> S3Remote:
    """Return a remote without anything cached."""
    return S3Remote(S3Address.parse(url))


def test_many_packs_become_few_and_all_is_there(host_a: Host, host_b: Host) -> None:
    commit, commits = None, []
    for number in range(MAX_PACKS + 5):
        commit = host_a.step(commit, f"{number % 7}.md", text=f"{number}\n")
        host_a.push(commit)
        commits.append(commit)
        if number == 10:
            host_b.fetch()
            assert len(stored_packs(host_a.url)) == 11
    assert len(stored_packs(host_a.url)) < 10
    host_b.fetch()
    assert all(host_b.checkpoints.is_intact(commit) for commit in commits)
    third = Host(host_b.root.path.with_name("third"), host_a.url)
    third.fetch()
    assert all(third.checkpoints.is_intact(commit) for commit in commits)


def test_a_host_that_knows_an_old_list_adds_to_the_new_one(host_a: Host, address: str) -> None:
    area, store = remote_checkpoint_area("job"), host_a.checkpoints
    stale = another_process(address)
    first = host_a.step(None, "a.md")
    stale.push_refs(area, store.path, host_a.outgoing.stage(), {"runs/run/stale": first}, {})
    second = host_a.step(first, "b.md")
    host_a.push(second)
    third = host_a.step(second, "c.md")
    stale.push_refs(
        area,
        store.path,
        host_a.outgoing.stage(),
        {"runs/run/stale": third},
        {f"runs/run/{host_a.root.id}": first},
    )
    refs = another_process(address)._read_listing(area).listing.refs
    assert refs == {"runs/run/stale": third, f"runs/run/{host_a.root.id}": second}


def test_hosts_that_push_together_lose_nothing(tmp_path: Path, address: str) -> None:
    hosts = [Host(tmp_path / str(number), address) for number in range(4)]
    commits: list[tuple[Host, str]] = []

    def push_many(host: Host) -> None:
        remote, commit = another_process(address), None
        for number in range(8):
            commit = host.step(commit, f"{host.root.id}-{number}.md")
            moved = {f"runs/run/{host.root.id}": commit}
            objects = host.outgoing.stage()
            remote.push_refs(
                remote_checkpoint_area("job"), host.checkpoints.path, objects, moved, {}
            )
            commits.append((host, commit))

    threads = [threading.Thread(target=push_many, args=(host,)) for host in hosts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(commits) == 32
    new = Host(tmp_path / "new", address)
    new.fetch()
    assert all(new.checkpoints.is_intact(commit) for _, commit in commits)


def test_a_pack_that_a_killed_push_left_harms_nothing(
    host_a: Host, host_b: Host, address: str
) -> None:
    commit = host_a.step(None, "a.md")
    remote = another_process(address)
    # As after a kill between uploading the pack and the list.
    assert remote._upload_pack(
        remote_checkpoint_area("job"),
        host_a.checkpoints.path,
        host_a.outgoing.stage(),
        [commit],
        [],
    )
    assert remote_owner(address, "job") is None
    host_a.push(commit)
    host_b.fetch()
    assert host_b.checkpoints.is_intact(commit)
    assert len(stored_packs(address)) == 2


def test_a_bucket_that_is_not_there_is_named(host_a: Host, endpoint: str) -> None:
    host_a.url = f"s3://no-such-bucket/x?endpoint={endpoint}"
    with pytest.raises(RemoteUnavailable, match=r"bucket no-such-bucket at .*no such bucket"):
        host_a.push(host_a.step(None, "a.md"))
    with pytest.raises(RemoteUnavailable, match="no such bucket; create it"):
        host_a.fetch()


def test_a_store_that_ignores_conditions_is_refused(host_a: Host, tmp_path: Path) -> None:
    with unconditional_server(tmp_path / "served") as endpoint:
        host_a.url = f"s3://bucket/x?endpoint={endpoint}"
        with pytest.raises(RemoteUnavailable, match="ignores conditions on writes"):
            host_a.push(host_a.step(None, "a.md"))


@pytest.mark.skipif(bool(OTHER_STORE), reason="the proxy imitates such a store in front of moto")
def test_a_store_that_compares_versions_without_quotes_serves_several_hosts(
    host_a: Host, host_b: Host, endpoint: str, address: str
) -> None:
    with flawed_store(endpoint) as store:
        store.compares_bare_versions = True
        host_a.url = host_b.url = address.replace(endpoint, store.endpoint)
        first = host_a.step(None, "a.md")
        host_a.push(first)
        host_b.fetch()
        second = host_b.step(first, "b.md")
        host_b.push(second)
        host_a.push(host_a.step(first, "c.md"))
        host_a.fetch()
        assert host_a.checkpoints.is_intact(second)


def test_a_store_that_refuses_true_conditions_is_refused(
    host_a: Host, endpoint: str, address: str
) -> None:
    with flawed_store(endpoint) as store:
        host_a.url = address.replace(endpoint, store.endpoint)
        store.break_requests((412, "PreconditionFailed"), "/conditions-", times=100)
        with pytest.raises(RemoteUnfit, match="refuses a write whose condition"):
            host_a.push(host_a.step(None, "a.md"))


@pytest.mark.skipif(bool(OTHER_STORE), reason="the proxy imitates such a store in front of moto")
def test_a_store_that_compares_versions_without_quotes_may_have_failed_a_probe(
    host_a: Host, host_b: Host, endpoint: str, address: str
) -> None:
    with flawed_store(endpoint) as store:
        store.compares_bare_versions = True
        host_a.url = host_b.url = address.replace(endpoint, store.endpoint)
        first = host_a.step(None, "a.md")
        store.break_requests((412, "PreconditionFailed"), "/conditions-", times=100)
        with pytest.raises(RemoteUnfit):
            host_a.push(first)
        store.mend()
        host_a.push(first)
        second = host_a.step(first, "b.md")
        host_a.push(second)
        host_b.fetch()
        assert host_b.checkpoints.is_intact(second)


def test_no_probe_is_left_in_the_bucket(host_a: Host, address: str) -> None:
    host_a.push(host_a.step(None, "a.md"))
    keys = another_process(address)._bucket.stale_keys("", -60)
    assert keys
    assert not [key for key in keys if PROBE in key]


def test_wrong_keys_are_refused_and_not_told(
    host_a: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with unconditional_server(tmp_path / "served") as endpoint:
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "wr0ng-4711")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wr0ng-0815")
        host_a.url = f"s3://bucket/y?endpoint={endpoint}"
        with pytest.raises(RemoteUnavailable, match="credentials are refused") as refused:
            host_a.push(host_a.step(None, "a.md"))
    assert "wr0ng" not in str(refused.value)


def test_what_a_killed_push_left_here_is_swept(host_a: Host) -> None:
    commit = host_a.step(None, "a.md")
    left = host_a.checkpoints.path / "pushing-left"
    left.mkdir()
    (left / "pack-1.pack").write_text("half")
    os.utime(left, (1, 1))
    host_a.push(commit)
    assert not list(host_a.checkpoints.path.glob("pushing-*"))
