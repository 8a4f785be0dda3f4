"""Checkpoints in a git repository elsewhere, pushed and fetched by git itself."""

import subprocess
from pathlib import Path

import pytest

from activities.checkpoints import CheckpointMissing, Checkpoints, RemoteUnavailable
from activities.checkpoints.journal import PushStaging
from activities.checkpoints.journal_records import COMMIT, JournalRecord
from activities.checkpoints.packing import pack_journal
from activities.checkpoints.remote import open_remote, remote_checkpoint_area, remote_owner
from activities.checkpoints.remote_fetch import MAX_PACKS, fetch_remote_checkpoints
from activities.checkpoints.repository_owner import OwnerMark, read_owner
from tests.activities.checkpoints.hosts import Host, remote_ref_prefix
from tests.activities.wires import WIRES
from tests.full_disk import files_of_at_most


def refs(remote: Path) -> dict[str, str]:
    listed = subprocess.run(
        ["git", "--git-dir", str(remote), "for-each-ref", "--format=%(refname) %(objectname)"],
        check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    return dict(line.split() for line in listed.splitlines())


@pytest.mark.parametrize("address", WIRES, indirect=True)
def test_what_waits_in_the_journal_is_pushed_and_is_whole_elsewhere(
    host_a: Host, host_b: Host, remote: Path
) -> None:
    first = host_a.step(None, "a.md", "notes/b.md")
    second = host_a.step(first, "c.md")
    assert not list((host_a.checkpoints.path / "objects" / "pack").glob("*"))
    host_a.push(second)
    assert refs(remote) == {f"{remote_ref_prefix('job')}runs/run/{host_a.root.id}": second}
    with pytest.raises(CheckpointMissing):
        host_b.checkpoints.tree_id(second)
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
    packs = sorted(
        path.stat().st_size for path in (host_b.checkpoints.path / "objects/pack").glob("*.pack")
    )
    assert sum(packs[:-1]) < 20_000, packs


def test_packs_do_not_pile_up(host_a: Host, host_b: Host) -> None:
    for number in range(MAX_PACKS):
        host_b.step(None, f"{number}.md")
        pack_journal(host_b.checkpoints.path, max_packs=2 * MAX_PACKS)
    host_a.push(host_a.step(None, "a.md"))
    host_b.fetch()
    assert len(list((host_b.checkpoints.path / "objects/pack").glob("*.pack"))) < MAX_PACKS


@pytest.mark.parametrize("room", [10, 150, 1100])
def test_what_found_no_room_to_be_staged_is_staged_the_next_time(
    host_a: Host, host_b: Host, room: int
) -> None:
    first = host_a.step(None, "a.md")
    host_a.push(first)
    second = host_a.step(first, "b.md")
    with files_of_at_most(room), pytest.raises(OSError, match="File too large"):
        host_a.outgoing.stage()
    # Nothing broken remains that git could trip over.
    packs = list((host_a.checkpoints.path / "outgoing").glob("*/pack/*"))
    assert sorted(path.suffix for path in packs) == [".idx", ".pack"]
    host_a.push(second)
    host_b.fetch()
    assert host_b.checkpoints.is_intact(second)


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


def test_what_a_reset_left_behind_and_phase_starts_stay_reachable(
    host_a: Host, host_b: Host, remote: Path
) -> None:
    start = host_a.step(None, "a.md")
    left = host_a.step(start, "b.md")
    host_a.checkpoints.tag("phase/0001", start)
    host_a.push(left, tags_phase_0001=start)
    anew = host_a.step(start, "c.md")
    host_a.push(anew, run="second")
    subprocess.run(["git", "--git-dir", str(remote), "gc", "--quiet", "--prune=now"], check=True)
    host_b.fetch()
    assert all(host_b.checkpoints.is_intact(commit) for commit in (start, left, anew))


@pytest.mark.parametrize("address", ["file", "http"], indirect=True)
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
    host_a: Host, host_b: Host, remote: Path
) -> None:
    commit = host_a.step(None, "a.md")
    host_a.push(commit, tags_completed=commit)
    other = host_b.step(None, "b.md")
    host_b.push(other, tags_completed=other)
    held = refs(remote)
    assert held[f"{remote_ref_prefix('job')}tags/completed"] == commit
    assert held[f"{remote_ref_prefix('job')}runs/run/{host_b.root.id}"] == other


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
    fetch_remote_checkpoints(host_a.url, "job", damaged, refetch=True)
    assert damaged.is_intact(commit)


def test_what_cannot_be_reached_says_so_and_harms_nothing(host_a: Host, remote: Path) -> None:
    commit = host_a.step(None, "a.md")
    remote.rename(remote.with_name("away"))
    with pytest.raises(RemoteUnavailable, match="does not appear to be a git repository"):
        host_a.push(commit)
    with pytest.raises(RemoteUnavailable, match="does not appear to be a git repository"):
        host_a.fetch()
    with pytest.raises(RemoteUnavailable, match="does not appear to be a git repository"):
        remote_owner(host_a.url, "job")
    remote.with_name("away").rename(remote)
    host_a.push(commit)
    assert commit in refs(remote).values()
    assert not (host_a.checkpoints.path / "incoming").exists()


@pytest.mark.parametrize("job", ["a..b", ".hidden", "with space", "x.lock", "ü/ö:*?[", "d" * 400])
def test_any_job_id_has_refs_that_git_takes(job: str, tmp_path: Path, address: str) -> None:
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
    host_a: Host, host_b: Host, remote: Path
) -> None:
    commit = host_a.step(None, "a.md")
    host_a.push(commit, owner_chain=commit, tags_phase=commit)
    url, area = host_a.url, remote_checkpoint_area("job")
    assert len(open_remote(url).forget_area(area, 1_700_000_000)) == 3
    assert list(refs(remote)) == [f"{remote_ref_prefix('job')}owner/forgotten-1700000000"]
    assert remote_owner(url, "job") == "forgotten-1700000000"
    with pytest.raises(CheckpointMissing, match="job job was forgotten in the remote"):
        host_b.fetch()
    assert not host_b.checkpoints.has_commit(commit)
    # A second time there is nothing to remove, unless a frozen host pushed late.
    assert open_remote(url).forget_area(area, 1_800_000_000) == []
    host_a.push(host_a.step(commit, "late.md"))
    assert open_remote(url).forget_area(area, 1_800_000_000) == [f"runs/run/{host_a.root.id}"]
