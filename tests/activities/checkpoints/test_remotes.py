"""What hosts may expect of any remote."""

import re
import secrets
from pathlib import Path

import pygit2
import pytest

from activities.checkpoints import CheckpointMissing, Checkpoints, RemoteUnavailable
from activities.checkpoints.journal import PushStaging
from activities.checkpoints.journal_records import COMMIT, JournalRecord
from activities.checkpoints.remote import open_remote, remote_checkpoint_area, remote_owner
from activities.checkpoints.repository_owner import OwnerMark, read_owner
from tests.activities.checkpoints.hosts import Host
from tests.backends import REMOTES, WIRES, RemoteBackend

AREA = remote_checkpoint_area("job")


@pytest.fixture
def backend(request: pytest.FixtureRequest, address: str) -> RemoteBackend:
    return REMOTES[request.node.callspec.params["address"]]


def refs(url: str, draft: Path) -> dict[str, str]:
    pygit2.init_repository(str(draft), bare=True)
    return open_remote(url).fetch_packs(AREA, draft)[0]


@pytest.mark.parametrize("address", [*REMOTES, *WIRES], indirect=True)
def test_what_waits_in_the_journal_is_pushed_and_is_whole_elsewhere(
    host_a: Host, host_b: Host, tmp_path: Path
) -> None:
    first = host_a.step(None, "a.md", "notes/b.md")
    second = host_a.step(first, "c.md")
    assert not list((host_a.checkpoints.path / "objects" / "pack").glob("*"))
    host_a.push(second)
    assert refs(host_a.url, tmp_path / "draft") == {f"runs/run/{host_a.root.id}": second}
    with pytest.raises(CheckpointMissing):
        host_b.checkpoints.tree_id(second)
    host_b.fetch()
    assert host_b.checkpoints.is_intact(second)
    assert [entry.id for entry in host_b.checkpoints.log(second, 10)] == [second, first]


def test_two_hosts_take_turns_and_send_only_what_is_new(host_a: Host, host_b: Host) -> None:
    commit = host_a.step(None, "a.md", text=secrets.token_hex(50_000))
    host_a.push(commit)
    for turn in range(6):
        one, other = (host_b, host_a) if turn % 2 == 0 else (host_a, host_b)
        one.fetch()
        commit = one.step(commit, f"{turn}.md")
        one.push(commit)
        other.fetch()
        assert other.checkpoints.is_intact(commit)
    packs = (host_b.checkpoints.path / "objects" / "pack").glob("*.pack")
    assert sum(sorted(path.stat().st_size for path in packs)[:-1]) < 20_000


def test_a_push_after_packing_and_one_of_another_process(host_a: Host, host_b: Host) -> None:
    first = host_a.step(None, "a.md")
    host_a.push(first)
    host_a.checkpoints.pack()
    second = host_a.step(first, "b.md")
    host_a.push(second)
    third = host_a.step(second, "c.md")
    host_a.outgoing = PushStaging(host_a.checkpoints.path)
    host_a.push(third)
    host_b.fetch()
    assert host_b.checkpoints.is_intact(third)


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


def test_a_ref_that_only_was_to_be_made_is_left_where_it_points(
    host_a: Host, host_b: Host, tmp_path: Path
) -> None:
    commit, other = host_a.step(None, "a.md"), host_b.step(None, "b.md")
    host_a.push(commit, tags_completed=commit)
    host_b.push(other, tags_completed=other)
    held = refs(host_a.url, tmp_path / "draft")
    assert held["tags/completed"] == commit
    assert held[f"runs/run/{host_b.root.id}"] == other


def test_a_repository_that_lost_files_is_made_whole_again(host_a: Host) -> None:
    commit = host_a.step(None, "a.md", "b.md")
    host_a.push(commit)
    host_a.fetch()
    held = host_a.checkpoints.store.read(bytes.fromhex(commit))
    store = host_a.checkpoints.path
    for path in [*(store / "journal").glob("*"), *(store / "objects" / "pack").glob("*")]:
        path.unlink()
    damaged = Checkpoints(store)
    damaged.store.reload()
    damaged.store.write(JournalRecord.create(COMMIT, held))
    damaged.store.flush()
    assert damaged.has_commit(commit)
    assert not damaged.is_intact(commit)
    host_a.fetch(anew=True)
    damaged.store.reload()
    assert damaged.is_intact(commit)


def test_what_cannot_be_reached_says_so_and_harms_nothing(
    host_a: Host, host_b: Host, address: str, backend: RemoteBackend
) -> None:
    commit = host_a.step(None, "a.md")
    part, nothing, why = backend.unreachable
    host_a.url = re.sub(part, nothing, address)
    with pytest.raises(RemoteUnavailable, match=why):
        host_a.push(commit)
    with pytest.raises(RemoteUnavailable, match=why):
        host_a.fetch()
    with pytest.raises(RemoteUnavailable, match=why):
        remote_owner(host_a.url, "job")
    assert not (host_a.checkpoints.path / "incoming").exists()
    host_a.url = address
    host_a.push(commit)
    host_b.fetch()
    assert host_b.checkpoints.is_intact(commit)


@pytest.mark.parametrize("job", ["a..b", ".hidden", "with space", "x.lock", "ü/ö:*?[", "d" * 400])
def test_any_job_id_has_a_place(job: str, tmp_path: Path, address: str) -> None:
    host = Host(tmp_path / "here", address, job)
    commit = host.step(None, "a.md")
    host.push(commit)
    other = Host(tmp_path / "there", address, job)
    other.fetch()
    assert other.checkpoints.is_intact(commit)


def test_a_killed_fetch_is_swept_by_the_next(host_a: Host, host_b: Host) -> None:
    commit = host_a.step(None, "a.md")
    host_a.push(commit)
    left = host_b.checkpoints.path / "incoming" / "objects" / "pack"
    left.mkdir(parents=True)
    (left / "tmp_pack_x").write_text("half")
    host_b.fetch()
    assert host_b.checkpoints.is_intact(commit)


def test_a_forgotten_job_is_gone_and_nobody_fetches_it(
    host_a: Host, host_b: Host, tmp_path: Path, backend: RemoteBackend
) -> None:
    commit = host_a.step(None, "a.md")
    host_a.push(commit, owner_chain=commit, tags_phase=commit)
    url, remote = host_a.url, open_remote(host_a.url)
    assert len(remote.forget_area(AREA, 1_700_000_000)) == 3
    assert list(refs(url, tmp_path / "draft")) == ["owner/forgotten-1700000000"]
    assert bool(backend.objects(url)) is not remote.capabilities.deletes_objects
    assert remote_owner(url, "job") == "forgotten-1700000000"
    with pytest.raises(CheckpointMissing, match="job job was forgotten in the remote"):
        host_b.fetch()
    assert not host_b.checkpoints.has_commit(commit)
    # A second time there is nothing to remove, unless a frozen host pushed late.
    assert remote.forget_area(AREA, 1_800_000_000) == []
    host_a.push(host_a.step(commit, "late.md"))
    assert remote.forget_area(AREA, 1_800_000_000) == [f"runs/run/{host_a.root.id}"]
