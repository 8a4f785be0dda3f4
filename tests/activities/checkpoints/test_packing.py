import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from activities.checkpoints import CheckpointMissing, Checkpoints, Files, Root
from activities.checkpoints.journal import FULL_BYTES
from activities.checkpoints.locks import file_lock
from activities.checkpoints.packfile import read_pack_offsets
from activities.checkpoints.packing import pack_journal
from tests.soak import soak

PACKER = """
import pathlib, sys
from activities.checkpoints.packing import pack_journal
print("ready", flush=True)
while True:
    pack_journal(pathlib.Path(sys.argv[1]), max_packs=3)
"""


def written(checkpoints: Checkpoints, numbers: range) -> Files:
    files = Files.empty(checkpoints.store)
    for number in numbers:
        files = files.write(f"f{number}", b"%d" % number * 50)
    checkpoints.store.flush()
    return files


def unpacked(checkpoints: Checkpoints) -> list[Path]:
    return list((checkpoints.path / "journal").iterdir())


def packs(checkpoints: Checkpoints) -> list[Path]:
    return list((checkpoints.path / "objects" / "pack").glob("pack-*.pack"))


def damage(victim: Path, place: int) -> bytes:
    """Flip one byte of a file and return the new content."""
    stored = bytearray(victim.read_bytes())
    stored[place] ^= 0xFF
    victim.chmod(0o644)
    victim.write_bytes(stored)
    return bytes(stored)


def content(path: Path, tree: str) -> dict[str, bytes]:
    """Return everything in a tree, read through a new handle."""
    files = Checkpoints(path).files(tree)
    return {entry.path: files.read(entry.path) for entry in files.walk()}


def is_sound(checkpoints: Checkpoints) -> bool:
    checked = subprocess.run(
        ["git", "-C", str(checkpoints.path), "fsck", "--full", "--strict"],
        capture_output=True, check=False,
    )  # fmt: skip
    return checked.returncode == 0


def test_packing_moves_everything_into_one_pack(checkpoints: Checkpoints) -> None:
    files = written(checkpoints, range(50))
    before = content(checkpoints.path, files.id)
    checkpoints.pack()
    assert (unpacked(checkpoints), len(packs(checkpoints))) == ([], 1)
    assert content(checkpoints.path, files.id) == before
    assert files.read("f49") == b"49" * 50  # the open handle finds it
    checkpoints.pack()
    assert len(packs(checkpoints)) == 1


def test_what_is_packed_already_is_only_dropped(checkpoints: Checkpoints) -> None:
    written(checkpoints, range(20))
    originals = {path: path.read_bytes() for path in unpacked(checkpoints)}
    checkpoints.pack()
    for path, stored in originals.items():
        path.write_bytes(stored)
    checkpoints.pack()
    assert (unpacked(checkpoints), len(packs(checkpoints))) == ([], 1)


def test_many_packs_become_one_under_an_open_handle(checkpoints: Checkpoints) -> None:
    trees = []
    for number in range(22):
        trees.append(written(Checkpoints(checkpoints.path), range(number, number + 3)).id)
        checkpoints.files(trees[-1]).read(f"f{number}")
        pack_journal(checkpoints.path)
    assert len(packs(checkpoints)) <= 2
    for number, tree in enumerate(trees):
        assert checkpoints.files(tree).read(f"f{number}") == b"%d" % number * 50
        assert content(checkpoints.path, tree)


def test_a_damaged_object_does_not_stop_it_and_is_set_aside(checkpoints: Checkpoints) -> None:
    files = written(checkpoints, range(20))
    [victim] = unpacked(checkpoints)
    stored = victim.read_bytes()
    victim.write_bytes(stored.replace(b"7" * 50, b"8" * 50))
    checkpoints.pack()
    assert unpacked(checkpoints) == []
    assert [path.name for path in (checkpoints.path / "damaged").iterdir()] == [victim.name]
    with pytest.raises(CheckpointMissing):
        content(checkpoints.path, files.id)
    assert written(checkpoints, range(20)) == files
    assert content(checkpoints.path, files.id)


def test_a_journal_is_full_at_some_size_until_it_is_packed(checkpoints: Checkpoints) -> None:
    written(checkpoints, range(3))
    assert not checkpoints.is_full
    files = Files.empty(checkpoints.store).write("large", b"x" * FULL_BYTES)
    assert checkpoints.is_full
    checkpoints.pack()
    assert (unpacked(checkpoints), len(packs(checkpoints))) == ([], 1)
    assert checkpoints.files(files.id).read("large") == b"x" * FULL_BYTES
    assert not checkpoints.is_full


def test_what_another_packer_keeps_from_being_packed_is_on_the_disk(
    checkpoints: Checkpoints, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(checkpoints, range(3))
    flushed: list[str] = []

    def fsync(handle: int) -> None:
        flushed.append(str(Path(f"/proc/self/fd/{handle}").readlink()))

    with file_lock(checkpoints.path / "longhaul-pack.lock", seconds=1):
        monkeypatch.setattr(os, "fsync", fsync)
        with pytest.raises(TimeoutError):
            checkpoints.pack(wait=0)
    [log] = unpacked(checkpoints)
    assert flushed == [str(log), str(log.parent)]
    assert packs(checkpoints) == []


def test_what_killed_packers_left_is_swept(checkpoints: Checkpoints) -> None:
    files = written(checkpoints, range(20))
    place = checkpoints.path / "objects" / "pack"
    place.mkdir(exist_ok=True)
    (place / "pack-00.idx").write_bytes(b"half")
    (checkpoints.path / "packing" / "pack").mkdir(parents=True)
    (checkpoints.path / "packing" / "pack" / "pack-00.pack").write_bytes(b"half")
    checkpoints.pack()
    assert not (place / "pack-00.idx").exists()
    assert not (checkpoints.path / "packing").exists()
    assert content(checkpoints.path, files.id)


@pytest.mark.parametrize("lost", [True, False])
def test_a_pack_without_a_sound_index_is_kept_and_gets_one(
    checkpoints: Checkpoints, *, lost: bool
) -> None:
    files = written(checkpoints, range(20))
    commit = checkpoints.commit(files.id, [], "all", 0)
    checkpoints.pack()
    [pack] = packs(checkpoints)
    index = pack.with_suffix(".idx")
    if lost:
        index.unlink()
    else:
        damage(index, index.read_bytes().index(bytes.fromhex(commit)))
    for number in range(30, 34):
        written(checkpoints, range(number, number + 1))
        pack_journal(checkpoints.path, max_packs=1)
    assert pack.exists()
    assert checkpoints.is_intact(commit)
    # With nothing to repair, nobody waits for a packer, which may be frozen.
    with file_lock(checkpoints.path / "longhaul-pack.lock", seconds=1):
        assert not checkpoints.is_intact("0" * 40)
    assert content(checkpoints.path, files.id)
    assert is_sound(checkpoints)


def killed_at(line: int, path: Path) -> bool:
    """Pack in a child process that kills itself before the given executed line of the packing
    module. Return whether it got that far.
    """
    child = os.fork()
    if child == 0:
        left = [line]

        def trace(frame: FrameType, event: str, _: object) -> Any:
            if frame.f_code.co_filename != pack_journal.__code__.co_filename:
                return None
            if event == "line":
                left[0] -= 1
                if left[0] == 0:
                    os.kill(os.getpid(), signal.SIGKILL)
            return trace

        sys.settrace(trace)
        pack_journal(path, max_packs=2)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def test_what_is_large_stays_where_it_is_while_small_packs_are_made_one(
    checkpoints: Checkpoints,
) -> None:
    files = {number: written(checkpoints, range(number, number + 1)) for number in range(30)}
    noise = Files.empty(checkpoints.store).write("noise", random.Random(1).randbytes(100_000))
    checkpoints.pack()
    [large] = packs(checkpoints)
    for number in range(100, 130):
        files[number] = written(checkpoints, range(number, number + 1))
        pack_journal(checkpoints.path, max_packs=5)
        assert large in packs(checkpoints)
        assert len(packs(checkpoints)) <= 6
    assert is_sound(checkpoints)
    assert noise.read("noise") == random.Random(1).randbytes(100_000)
    for number, stored_files in files.items():
        assert content(checkpoints.path, stored_files.id) == {f"f{number}": b"%d" % number * 50}


def growing(checkpoints: Checkpoints, numbers: Iterable[int]) -> Iterator[Files]:
    """Return these versions of a file that is appended to."""
    for number in numbers:
        content = b"".join(random.Random(part).randbytes(2000) for part in range(number))
        files = Files.empty(checkpoints.store).write("log", content)
        checkpoints.store.flush()
        yield files


def test_packs_are_made_one_without_looking_for_deltas_again(checkpoints: Checkpoints) -> None:
    trees: dict[int, str] = {}
    for number in range(6):
        numbers = range(10 * number, 10 * number + 10)
        trees |= {
            n: files.id for n, files in zip(numbers, growing(checkpoints, numbers), strict=True)
        }
        pack_journal(checkpoints.path, max_packs=99)
    before = sum(path.stat().st_size for path in packs(checkpoints))
    assert before < 500_000  # not the 3.5 MB of all versions
    pack_journal(checkpoints.path, max_packs=1)
    [merged] = packs(checkpoints)
    assert 0.9 * before < merged.stat().st_size < before
    assert is_sound(checkpoints)
    for number, tree in trees.items():
        assert len(content(checkpoints.path, tree)["log"]) == 2000 * number


def test_a_pack_that_git_made_is_taken_with_the_others(checkpoints: Checkpoints) -> None:
    trees = []
    for number, version in enumerate(growing(checkpoints, [*range(0, 20, 2), *range(1, 20, 2)])):
        trees.append(version.id)
        checkpoints.tag(f"v{number}", checkpoints.commit(version.id, [], "", 0))
        if number == 9:
            pack_journal(checkpoints.path)
            [half] = packs(checkpoints)
            pack_files = {path: path.read_bytes() for path in (half, half.with_suffix(".idx"))}
    pack_journal(checkpoints.path)
    git = ["git", "-C", str(checkpoints.path), "-c", "repack.useDeltaBaseOffset=true"]
    subprocess.run([*git, "repack", "-a", "-d", "-f", "-q"], check=True)
    [from_git] = packs(checkpoints)
    stored = from_git.read_bytes()
    # Deltas that give the distance to their base: it shrinks when objects in between are
    # taken from another pack.
    assert 6 in {stored[place] >> 4 & 7 for place, _ in read_pack_offsets(from_git)}
    for path, data in pack_files.items():
        path.write_bytes(data)
    pack_journal(checkpoints.path, max_packs=1)
    assert len(packs(checkpoints)) == 1
    assert is_sound(checkpoints)
    assert all(content(checkpoints.path, tree) for tree in trees)


def test_places_are_read_from_an_index_of_a_large_pack(checkpoints: Checkpoints) -> None:
    written(checkpoints, range(20))
    pack_journal(checkpoints.path)
    [pack] = packs(checkpoints)
    before = read_pack_offsets(pack)
    pack.with_suffix(".idx").unlink()
    # As if everything after the first 256 bytes were beyond 2 GB.
    subprocess.run(["git", "index-pack", "--index-version=2,0x100", str(pack)], check=True)
    assert len(pack.with_suffix(".idx").read_bytes()) > 1072 + 28 * len(before)
    assert read_pack_offsets(pack) == before


def test_a_damaged_pack_is_left_as_it_is_by_those_that_become_one(
    checkpoints: Checkpoints,
) -> None:
    trees = []
    for number in range(4):
        trees.append(written(checkpoints, range(10 * number, 10 * number + 10)).id)
        pack_journal(checkpoints.path, max_packs=99)
    victims = sorted(packs(checkpoints))[:2]
    stored = damage(victims[0], 60)
    index = victims[1].with_suffix(".idx")
    index.chmod(0o644)
    index.write_bytes(b"no index")
    pack_journal(checkpoints.path, max_packs=1)
    assert set(victims) < set(packs(checkpoints))
    assert victims[0].read_bytes() == stored
    assert len(packs(checkpoints)) == 3


def test_a_damaged_pack_is_read_no_second_time(checkpoints: Checkpoints) -> None:
    for number in range(3):
        written(checkpoints, range(10 * number, 10 * number + 10))
        pack_journal(checkpoints.path, max_packs=99)
    victim = packs(checkpoints)[0]
    damage(victim, 60)
    pack_journal(checkpoints.path, max_packs=1)
    assert [path.name for path in (checkpoints.path / "damaged").iterdir()] == [victim.name]
    victim.unlink()
    victim.mkdir()  # reading it fails from here on
    written(checkpoints, range(90, 99))
    pack_journal(checkpoints.path, max_packs=1)
    assert len(packs(checkpoints)) == 2


def test_a_sound_pack_is_made_one_with_others_though_a_damaged_one_holds_the_same(
    checkpoints: Checkpoints,
) -> None:
    large, small = random.Random(7).randbytes(2000), random.Random(7).randbytes(1900)
    files = Files.empty(checkpoints.store).write("large", large)
    checkpoints.store.flush()
    pack_journal(checkpoints.path, max_packs=99)
    [victim] = packs(checkpoints)
    damage(victim, 500)
    # It is written again, along with the objects stored as deltas against it.
    again = Checkpoints(checkpoints.path)
    files = Files.empty(again.store).write("large", large).write("small", small)
    files = files.write("more", random.Random(8).randbytes(2000))
    again.store.flush()
    pack_journal(checkpoints.path, max_packs=99)
    for number in range(2):
        written(checkpoints, range(number * 200, number * 200 + 200))
        pack_journal(checkpoints.path, max_packs=99)
    for _ in range(2):
        pack_journal(checkpoints.path, max_packs=1)
    assert [path.name for path in (checkpoints.path / "damaged").iterdir()] == [victim.name]
    assert len(packs(checkpoints)) == 2
    assert content(checkpoints.path, files.id)["small"] == small


def test_nothing_is_lost_at_whatever_line_a_packer_is_killed(
    checkpoints: Checkpoints, tmp_path: Path
) -> None:
    trees = []
    for number in range(4):
        trees.append(written(Checkpoints(checkpoints.path), range(number, number + 1)).id)
        if number < 3:
            pack_journal(checkpoints.path, max_packs=99)
    line = 0
    copy = tmp_path / "copy"
    reached = True
    while reached:
        line += soak(6, 1)
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(checkpoints.path, copy)
        reached = killed_at(line, copy)
        for _ in range(2):
            assert all(content(copy, tree) for tree in trees), line
            pack_journal(copy)
    assert line > 50
    assert packs(Checkpoints(copy))


@pytest.mark.parametrize("seed", range(soak(2, 20)))
def test_nothing_is_lost_when_a_packer_is_killed_beside_a_writer(
    root: Root, seed: int, start: Callable[..., subprocess.Popen[str]]
) -> None:
    checkpoints = Checkpoints.create(root, f"kill {seed}")
    dice = random.Random(seed)
    trees = [written(checkpoints, range(5)).id]
    child = start(PACKER, str(checkpoints.path))
    until = time.monotonic() + dice.uniform(0.05, 0.4)
    number = 0
    while time.monotonic() < until:
        # New objects, and repeatedly the same ones that are being packed meanwhile.
        trees.append(written(checkpoints, range(number % 7, number % 7 + 5)).id)
        trees.append(checkpoints.files(trees[-1]).write("new", b"%d" % number).id)
        checkpoints.store.flush()
        number += 1
    child.send_signal(signal.SIGKILL)
    assert child.wait() == -signal.SIGKILL
    for tree in set(trees):
        assert content(checkpoints.path, tree)
    checkpoints.pack()
    assert unpacked(checkpoints) == []
    for tree in set(trees):
        assert content(checkpoints.path, tree)
    assert is_sound(checkpoints)
