import shutil
import subprocess
from pathlib import Path

import pytest

from activities.checkpoints import (
    CheckpointMissing,
    Checkpoints,
    Files,
    Root,
    copy_checkpoint,
    open_checkpoints,
)


def story(checkpoints: Checkpoints, files: Files, steps: int) -> list[str]:
    """Commit ids of a chain of changes to the files, the newest last."""
    commits: list[str] = []
    for step in range(steps):
        files = files.write("plan.md", b"%d\n" % step)
        commits.append(checkpoints.commit(files.id, commits[-1:], f"step {step} · ü", 1000 + step))
    return commits


def everything(folder: Path) -> set[tuple[str, int, int]]:
    """Return everything below a folder with size and time."""
    return {
        (str(path.relative_to(folder)), path.stat().st_size, path.stat().st_mtime_ns)
        for path in folder.rglob("*")
    }


def varied(checkpoints: Checkpoints) -> Files:
    files = Files.empty(checkpoints.store)
    for number in range(600):  # more than fit into a flat folder
        files = files.write(f"notes/{number}.md", b"%d" % number)
    files = files.write("run.sh", b"true", executable=True).make_folder("empty")
    return files.link("here", "notes/1.md").write("large.bin", b"\1\2" * 600_000)


def test_a_copy_is_whole_with_its_history_and_shares_nothing(
    checkpoints: Checkpoints, root: Root
) -> None:
    commits = story(checkpoints, varied(checkpoints), 5)
    checkpoints.pack()
    commits += [checkpoints.commit(checkpoints.tree_id(commits[-1]), commits[-1:], "later", 2000)]
    before = everything(checkpoints.path)
    target = Checkpoints.create(root, "other")
    history = copy_checkpoint(target, checkpoints, commits[3])
    assert [entry.id for entry in history] == commits[3::-1]
    assert everything(checkpoints.path) == before
    expected = [(entry.id, entry.message, entry.tree) for entry in checkpoints.log(commits[3], 100)]
    listed = list(checkpoints.files(checkpoints.tree_id(commits[3])).walk())
    shutil.rmtree(checkpoints.path)

    copy = open_checkpoints(root, "other")
    assert [
        (entry.id, entry.message, entry.tree) for entry in copy.log(commits[3], 100)
    ] == expected
    assert list(copy.files(copy.tree_id(commits[3])).walk()) == listed
    assert all(copy.is_intact(commit) for commit in commits[:4])
    with pytest.raises(CheckpointMissing):
        copy.tree_id(commits[4])
    copy.pack()
    copy.tag("phase/0001", commits[3])
    checked = subprocess.run(
        ["git", "-C", str(copy.path), "fsck", "--full", "--strict"],
        capture_output=True, check=False,
    )  # fmt: skip
    assert checked.returncode == 0, checked.stderr


def test_copying_twice_and_after_a_part_was_copied_gives_the_same(
    checkpoints: Checkpoints, root: Root
) -> None:
    commits = story(checkpoints, varied(checkpoints), 3)
    target = Checkpoints.create(root, "other")
    copy_checkpoint(target, checkpoints, commits[0])
    copy_checkpoint(target, checkpoints, commits[2])
    before = everything(target.path / "objects")
    copy_checkpoint(target, checkpoints, commits[2])
    assert {name for name, *_ in everything(target.path / "objects")} == {n for n, *_ in before}


def test_what_is_lost_in_the_source_is_missed(checkpoints: Checkpoints, root: Root) -> None:
    commits = story(checkpoints, Files.empty(checkpoints.store).write("a.md", b"a"), 3)
    target = Checkpoints.create(root, "other")
    blob = checkpoints.files(checkpoints.tree_id(commits[2])).entry("plan.md")
    assert blob is not None
    [journal] = (checkpoints.path / "journal").glob("*.log")
    whole = journal.read_bytes()
    for lost in (blob.id, commits[0]):
        data = checkpoints.store.read(bytes.fromhex(lost))
        journal.write_bytes(whole.replace(data, bytes(255 - byte for byte in data)))
        with pytest.raises(CheckpointMissing):
            copy_checkpoint(target, Checkpoints(checkpoints.path), commits[2])
        journal.write_bytes(whole)
