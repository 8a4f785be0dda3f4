"""Checkpoints in a bucket of an object store that others wrote."""

import os
import threading
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from activities.checkpoints import CheckpointMissing, RemoteUnavailable
from activities.checkpoints.bucket import PROBE
from activities.checkpoints.checkpoint_errors import RemoteUnfit
from activities.checkpoints.remote import remote_checkpoint_area, remote_owner
from activities.checkpoints.repository_owner import OwnerMark, read_owner
from activities.checkpoints.s3_remote import MAX_PACKS, S3Remote
from protocol.s3_address import S3Address
from tests.activities.checkpoints.hosts import Host
from tests.buckets import OTHER_STORE, create_bucket, unconditional_server
from tests.flawed_store import flawed_store

pytestmark = pytest.mark.usefixtures("bucket_keys")


@pytest.fixture
def address(endpoint: str) -> str:
    return create_bucket(endpoint)


def another_process(url: str) -> S3Remote:
    """Return a remote without anything cached."""
    return S3Remote(S3Address.parse(url))


def stored_packs(url: str) -> list[str]:
    return another_process(url)._bucket.stale_keys(f"{remote_checkpoint_area('job')}/packs", -60)


def test_what_waits_in_the_journal_is_pushed_and_is_whole_elsewhere(
    host_a: Host, host_b: Host
) -> None:
    first = host_a.step(None, "a.md", "notes/b.md")
    second = host_a.step(first, "c.md")
    host_a.push(second)
    host_b.fetch()
    assert host_b.checkpoints.is_intact(second)
    assert [entry.id for entry in host_b.checkpoints.log(second, 10)] == [second, first]


def test_two_hosts_take_turns_and_send_only_what_is_new(host_a: Host, host_b: Host) -> None:
    commit = host_a.step(None, "a.md", text="tea " * 100_000)
    host_a.push(commit)
    for turn in range(6):
        one, other = (host_b, host_a) if turn % 2 == 0 else (host_a, host_b)
        one.fetch()
        commit = one.step(commit, f"{turn}.md")
        one.push(commit)
        other.fetch()
        assert other.checkpoints.is_intact(commit)
    packs = another_process(host_a.url)._read_listing(remote_checkpoint_area("job")).listing.packs
    assert len(packs) == 7
    assert max(pack.size for pack in packs[1:]) < 2000, packs


def test_many_packs_become_few_and_all_is_there(host_a: Host, host_b: Host) -> None:
    commit, commits = None, []
    for number in range(MAX_PACKS + 5):
        commit = host_a.step(commit, f"{number % 7}.md", text=f"{number}\n")
        host_a.push(commit)
        commits.append(commit)
        if number == 10:
            host_b.fetch()
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


def test_tags_and_the_owner_travel(host_a: Host, host_b: Host) -> None:
    commit = host_a.step(None, "a.md")
    assert remote_owner(host_a.url, "job") is None
    host_a.push(commit, tags_phase_0001=commit, owner_chain=commit)
    assert remote_owner(host_a.url, "job") == "chain"
    host_b.fetch()
    assert host_b.checkpoints.tags() == {"phase/0001": commit}
    mark = OwnerMark(chain="chain", job="job", remote=host_a.url)
    assert read_owner(host_b.checkpoints.path) == mark
    assert remote_owner(host_a.url, "other") is None


def test_a_ref_that_only_was_to_be_made_is_left_where_it_points(host_a: Host, host_b: Host) -> None:
    commit, other = host_a.step(None, "a.md"), host_b.step(None, "b.md")
    host_a.push(commit, tags_completed=commit)
    host_b.push(other, tags_completed=other)
    refs = another_process(host_a.url)._read_listing(remote_checkpoint_area("job")).listing.refs
    assert refs["tags/completed"] == commit
    assert refs[f"runs/run/{host_b.root.id}"] == other


def test_a_repository_that_lost_files_is_made_whole_again(host_a: Host, host_b: Host) -> None:
    commit = host_a.step(None, "a.md", "b.md")
    host_a.push(commit)
    host_b.fetch()
    [pack] = (host_b.checkpoints.path / "objects" / "pack").glob("*.pack")
    pack.unlink()
    pack.with_suffix(".idx").unlink()
    host_b.checkpoints.store.reload()
    host_b.fetch(anew=True)
    assert host_b.checkpoints.is_intact(commit)


@pytest.mark.parametrize("job", ["a..b", ".hidden", "with space", "ü/ö:*?[", "d" * 400])
def test_any_job_id_has_a_place(job: str, tmp_path: Path, address: str) -> None:
    host = Host(tmp_path / "here", address, job)
    commit = host.step(None, "a.md")
    host.push(commit)
    other = Host(tmp_path / "there", address, job)
    other.fetch()
    assert other.checkpoints.is_intact(commit)


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


def test_a_store_that_is_away_says_so_and_is_taken_when_it_is_back(
    host_a: Host, host_b: Host, endpoint: str, address: str
) -> None:
    commit = host_a.step(None, "a.md")
    host_a.url = address.replace(str(urlsplit(endpoint).port), "1")
    with pytest.raises(RemoteUnavailable, match="cannot be reached"):
        host_a.push(commit)
    host_a.url = address
    host_a.push(commit)
    host_b.fetch()
    assert host_b.checkpoints.is_intact(commit)


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


def test_a_forgotten_job_is_gone_and_nobody_fetches_it(host_a: Host, host_b: Host) -> None:
    commit = host_a.step(None, "a.md")
    host_a.push(commit, owner_chain=commit)
    url, area = host_a.url, remote_checkpoint_area("job")
    assert len(another_process(url).forget_area(area, 1_700_000_000)) == 2
    assert stored_packs(url) == []
    assert remote_owner(url, "job") == "forgotten-1700000000"
    with pytest.raises(CheckpointMissing, match="job job was forgotten in the remote"):
        host_b.fetch()
    assert another_process(url).forget_area(area, 1_800_000_000) == []
