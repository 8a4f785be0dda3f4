"""Checkpoints in a git repository elsewhere, pushed and fetched by git itself."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from activities.checkpoints import CheckpointMissing, Checkpoints, RemoteUnavailable
from activities.checkpoints.journal_records import COMMIT, JournalRecord
from activities.checkpoints.packing import pack_journal
from activities.checkpoints.push_staging import PushStaging
from activities.checkpoints.remote import remote_owner, remote_ref_prefix
from activities.checkpoints.remote_fetch import MAX_PACKS, fetch_remote_checkpoints
from activities.checkpoints.repository_owner import OwnerMark, read_owner
from tests.activities.checkpoints.hosts import Host
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
    here: Host, there: Host, remote: Path
) -> None:
    first = here.step(None, "a.md", "notes/b.md")
    second = here.step(first, "c.md")
    assert not list((here.checkpoints.path / "objects" / "pack").glob("*"))
    here.push(second)
    assert refs(remote) == {f"{remote_ref_prefix('job')}runs/run/{here.root.id}": second}
    with pytest.raises(CheckpointMissing):
        there.checkpoints.tree_id(second)
    there.fetch()
    assert there.checkpoints.is_intact(second)
    assert [entry.id for entry in there.checkpoints.log(second, 10)] == [second, first]


def test_two_hosts_take_turns_and_send_only_what_is_new(here: Host, there: Host) -> None:
    commit = here.step(None, "a.md", text="tea " * 100_000)
    here.push(commit)
    for turn in range(6):
        one, other = (there, here) if turn % 2 == 0 else (here, there)
        one.fetch()
        commit = one.step(commit, f"{turn}.md")
        one.push(commit)
        other.fetch()
        assert other.checkpoints.is_intact(commit)
    packs = sorted(
        path.stat().st_size for path in (there.checkpoints.path / "objects/pack").glob("*.pack")
    )
    assert sum(packs[:-1]) < 20_000, packs


def test_packs_do_not_pile_up(here: Host, there: Host) -> None:
    for number in range(MAX_PACKS):
        there.step(None, f"{number}.md")
        pack_journal(there.checkpoints.path, max_packs=2 * MAX_PACKS)
    here.push(here.step(None, "a.md"))
    there.fetch()
    assert len(list((there.checkpoints.path / "objects/pack").glob("*.pack"))) < MAX_PACKS


@pytest.mark.parametrize("room", [10, 150, 1100])
def test_what_found_no_room_to_be_staged_is_staged_the_next_time(
    here: Host, there: Host, room: int
) -> None:
    first = here.step(None, "a.md")
    here.push(first)
    second = here.step(first, "b.md")
    with files_of_at_most(room), pytest.raises(OSError, match="File too large"):
        here.outgoing.stage()
    # Nothing broken remains that git could trip over.
    packs = list((here.checkpoints.path / "outgoing").glob("*/pack/*"))
    assert sorted(path.suffix for path in packs) == [".idx", ".pack"]
    here.push(second)
    there.fetch()
    assert there.checkpoints.is_intact(second)


def test_a_push_after_packing_and_one_of_another_process(here: Host, there: Host) -> None:
    first = here.step(None, "a.md")
    here.push(first)
    here.checkpoints.pack()
    second = here.step(first, "b.md")
    here.push(second)
    third = here.step(second, "c.md")
    here.outgoing = PushStaging(here.checkpoints.path)
    here.push(third)
    there.fetch()
    assert there.checkpoints.is_intact(third)


def test_what_a_reset_left_behind_and_phase_starts_stay_reachable(
    here: Host, there: Host, remote: Path
) -> None:
    start = here.step(None, "a.md")
    left = here.step(start, "b.md")
    here.checkpoints.tag("phase/0001", start)
    here.push(left, tags_phase_0001=start)
    anew = here.step(start, "c.md")
    here.push(anew, run="second")
    subprocess.run(["git", "--git-dir", str(remote), "gc", "--quiet", "--prune=now"], check=True)
    there.fetch()
    assert all(there.checkpoints.is_intact(commit) for commit in (start, left, anew))


@pytest.mark.parametrize("address", ["file", "http"], indirect=True)
def test_tags_and_the_owner_travel(here: Host, there: Host) -> None:
    commit = here.step(None, "a.md")
    assert remote_owner(here.url, "job") is None
    here.push(commit, tags_phase_0001=commit, owner_chain=commit)
    assert remote_owner(here.url, "job") == "chain"
    there.fetch()
    assert there.checkpoints.tags() == {"phase/0001": commit}
    assert read_owner(there.checkpoints.path) == OwnerMark(chain="chain", job="job")
    assert remote_owner(here.url, "other") is None


def test_a_ref_that_only_was_to_be_made_is_left_where_it_points(
    here: Host, there: Host, remote: Path
) -> None:
    commit = here.step(None, "a.md")
    here.push(commit, tags_completed=commit)
    other = there.step(None, "b.md")
    there.push(other, tags_completed=other)
    held = refs(remote)
    assert held[f"{remote_ref_prefix('job')}tags/completed"] == commit
    assert held[f"{remote_ref_prefix('job')}runs/run/{there.root.id}"] == other


def test_a_repository_that_lost_files_is_made_whole_again(here: Host) -> None:
    commit = here.step(None, "a.md", "b.md")
    here.push(commit)
    here.fetch()
    held = here.checkpoints.store.read(bytes.fromhex(commit))
    store = here.checkpoints.path
    for path in [*(store / "journal").glob("*"), *(store / "objects" / "pack").glob("*")]:
        path.unlink()
    damaged = Checkpoints(store)
    damaged.store.reload()
    damaged.store.write(JournalRecord.create(COMMIT, held))
    damaged.store.flush()
    assert damaged.has_commit(commit)
    assert not damaged.is_intact(commit)
    fetch_remote_checkpoints(here.url, "job", damaged, refetch=True)
    assert damaged.is_intact(commit)


def test_what_cannot_be_reached_says_so_and_harms_nothing(here: Host, remote: Path) -> None:
    commit = here.step(None, "a.md")
    remote.rename(remote.with_name("away"))
    with pytest.raises(RemoteUnavailable, match="does not appear to be a git repository"):
        here.push(commit)
    with pytest.raises(RemoteUnavailable, match="does not appear to be a git repository"):
        here.fetch()
    with pytest.raises(RemoteUnavailable, match="does not appear to be a git repository"):
        remote_owner(here.url, "job")
    remote.with_name("away").rename(remote)
    here.push(commit)
    assert commit in refs(remote).values()
    assert not (here.checkpoints.path / "incoming").exists()


@pytest.mark.parametrize("job", ["a..b", ".hidden", "with space", "x.lock", "ü/ö:*?[", "d" * 400])
def test_any_job_id_has_refs_that_git_takes(job: str, tmp_path: Path, address: str) -> None:
    host = Host(tmp_path / "here", address, job)
    commit = host.step(None, "a.md")
    host.push(commit)
    other = Host(tmp_path / "there", address, job)
    other.fetch()
    assert other.checkpoints.is_intact(commit)


def test_a_killed_fetch_is_swept_by_the_next(here: Host, there: Host) -> None:
    commit = here.step(None, "a.md")
    here.push(commit)
    left = there.checkpoints.path / "incoming" / "objects" / "pack"
    left.mkdir(parents=True)
    (left / "tmp_pack_x").write_text("half")
    there.fetch()
    assert there.checkpoints.is_intact(commit)
