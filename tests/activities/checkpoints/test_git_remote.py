"""Checkpoints in a git repository elsewhere: packs, room, and what git's own cleaning keeps."""

import subprocess
from pathlib import Path

import pytest

from activities.checkpoints.packing import pack_journal
from activities.checkpoints.remote_fetch import MAX_PACKS
from tests.activities.checkpoints.hosts import Host
from tests.full_disk import files_of_at_most

pytestmark = pytest.mark.parametrize("address", ["git"], indirect=True)


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
