import errno
import os
import resource
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from activities.checkpoints import CheckpointMissing, Checkpoints, Files, Root, update_projection
from activities.checkpoints.sharded_tree import FILE, TreeEntry


@pytest.fixture
def files(checkpoints: Checkpoints) -> Files:
    return (
        Files.empty(checkpoints.store)
        .write("notes/a.md", b"a")
        .write("notes/b.md", b"b")
        .write("run.sh", b"#!/bin/sh", executable=True)
        .write(".git/HEAD", b"ref")
        .write("\udcff", b"bytes")
        .link("link", "notes/a.md")
        .link("out", "/etc/passwd")
        .make_folder("empty/inner")
    )


@pytest.fixture
def folder(root: Root) -> Path:
    return root.workspace("job")


def on_disk(folder: Path) -> dict[str, object]:
    """Return everything in a folder: content, link target or None; executable files are marked."""
    entries: dict[str, object] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            entries[name] = ("link", str(path.readlink()))
        elif path.is_dir():
            entries[name] = None
        else:
            entries[name] = (path.read_bytes(), bool(path.stat().st_mode & 0o100))
    return entries


def in_tree(files: Files) -> dict[str, object]:
    entries: dict[str, object] = {}
    todo = [""]
    while todo:
        for entry in files.children(todo.pop()):
            if entry.kind == "folder":
                entries[entry.path] = None
                todo.append(entry.path)
            elif entry.kind == "link":
                entries[entry.path] = ("link", files.read_entry(entry).decode())
            else:
                entries[entry.path] = (files.read(entry.path), entry.executable)
    return entries


class Job:
    """The calls under test, without their constant arguments."""

    def __init__(self, checkpoints: Checkpoints, root: Root) -> None:
        self.checkpoints, self.root, self.order = checkpoints, root, 0

    def project(self, files: Files, order: int | None = None) -> list[str]:
        self.order += 1
        return update_projection(self.checkpoints, self.root, "job", files, order or self.order)

    def mend(self, files: Files) -> list[str]:
        self.order += 1
        return update_projection(self.checkpoints, self.root, "job", files, self.order, full=True)


@pytest.fixture
def job(checkpoints: Checkpoints, root: Root) -> Job:
    return Job(checkpoints, root)


def test_the_folder_shows_the_tree_and_follows_it(job: Job, folder: Path, files: Files) -> None:
    assert job.project(files) == []
    assert on_disk(folder) == in_tree(files)
    steps = [
        files.write("notes/a.md", b"longer").delete("empty"),
        files.delete("notes").write("notes", b"a file now"),
        files,
        files.write("run.sh", b"#!/bin/sh", executable=False),
        files.delete("link").write("link/below", b"x").delete("out").write("out", b"x"),
        files.move("notes", "moved/notes"),
        Files.empty(files.store),
    ]
    for step in steps:
        assert job.project(step) == []
        assert on_disk(folder) == in_tree(step)
        assert job.mend(step) == []
        assert on_disk(folder) == in_tree(step)


def test_what_a_person_edited_is_kept_beside_it(
    job: Job, root: Root, folder: Path, files: Files
) -> None:
    job.project(files)
    (folder / "notes" / "a.md").write_text("mine")
    (folder / "notes" / "b.md").write_text("also mine")
    moved_paths = job.project(files.write("notes/a.md", b"theirs").delete("notes/b.md"))
    assert moved_paths == ["lost+found/job/0001/notes/a.md", "lost+found/job/0001/notes/b.md"]
    assert (root.path / moved_paths[0]).read_text() == "mine"
    assert (folder / "notes" / "a.md").read_text() == "theirs"


def test_what_a_person_writes_at_that_very_moment_is_kept(
    job: Job, root: Root, folder: Path, files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    job.project(files)
    renamed, left = os.rename, {b"a.md", b"b.md"}

    def rename(source: bytes, target: bytes, **folders: Any) -> None:
        for name in {source, target} & left:
            left.remove(name)
            (folder / "notes" / os.fsdecode(name)).write_text("mine")
        renamed(source, target, **folders)

    changed = files.write("notes/a.md", b"theirs").delete("notes/b.md")
    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(os, "rename", rename)
        moved_paths = job.project(changed)
    assert moved_paths == ["lost+found/job/0001/notes/a.md", "lost+found/job/0001/notes/b.md"]
    assert [(root.path / path).read_text() for path in moved_paths] == ["mine", "mine"]
    assert on_disk(folder) == in_tree(changed)


def test_an_edit_that_agrees_with_the_tree_is_no_stray(
    job: Job, folder: Path, files: Files
) -> None:
    job.project(files)
    (folder / "notes" / "a.md").write_text("new")
    (folder / "made").write_text("x")
    (folder / "made").chmod(0o600)
    assert job.project(files.write("notes/a.md", b"new").write("made", b"x", executable=True)) == []
    assert os.access(folder / "made", os.X_OK)


def test_strays_in_the_way_are_moved(job: Job, root: Root, folder: Path, files: Files) -> None:
    job.project(files)
    (folder / "new.md").mkdir()
    (folder / "new.md" / "precious").write_text("1")
    (folder / "deep").write_text("2")
    (folder / "notes" / "stray").write_text("3")
    os.mkfifo(folder / "pipe")
    changed = files.write("new.md", b"x").write("deep/er", b"x").write("pipe", b"").delete("notes")
    moved_paths = job.project(changed)
    assert on_disk(folder) == in_tree(changed)
    lost_paths = {str(path.relative_to(root.lost_found("job") / "0001")) for path in
            (root.lost_found("job") / "0001").rglob("*")}  # fmt: skip
    assert lost_paths == {"new.md", "new.md/precious", "deep", "notes", "notes/stray", "pipe"}
    assert sorted(moved_paths) == [
        f"lost+found/job/0001/{name}" for name in ["deep", "new.md", "notes/stray", "pipe"]
    ]


def test_each_pass_has_its_own_place_in_lost_and_found(
    job: Job, root: Root, folder: Path, files: Files
) -> None:
    for number in (1, 2):
        job.project(files)
        (folder / "notes" / "a.md").write_text(f"edit {number}")
        assert job.project(files.delete("notes/a.md")) == [f"lost+found/job/000{number}/notes/a.md"]
    assert (root.lost_found("job") / "0001/notes/a.md").read_text() == "edit 1"


def test_who_was_scheduled_earlier_cannot_put_the_folder_back(
    job: Job, folder: Path, files: Files
) -> None:
    newer = files.write("notes/a.md", b"newer")
    job.project(newer, order=200)
    assert job.project(files, order=199) == []
    assert (folder / "notes" / "a.md").read_bytes() == b"newer"
    job.project(files, order=200)
    assert (folder / "notes" / "a.md").read_bytes() == b"a"


def test_a_pass_that_broke_off_is_mended_by_the_next(
    job: Job, root: Root, folder: Path, files: Files
) -> None:
    job.project(files)
    (folder / "notes" / "a.md").write_text("mine")
    half = files.write("a-new.md", b"half").write("notes/a.md", b"half").write("zz", b"half")
    (root.path / "lost+found").write_text("in the way")
    with pytest.raises(OSError, match="lost"):
        job.project(half)
    assert (folder / "a-new.md").exists()
    assert not (folder / "zz").exists()
    (root.path / "lost+found").unlink()
    (folder / "run.sh").unlink()  # only a full scan finds this
    # Files of the broken pass are known to be ours and are not preserved; the edit is.
    assert job.project(files) == ["lost+found/job/0001/notes/a.md"]
    assert on_disk(folder) == in_tree(files)


def test_a_process_short_of_handles_takes_nothing_of_ours_for_a_persons(
    job: Job, root: Root, folder: Path, files: Files
) -> None:
    job.project(files)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    failed = 0
    for spare in range(12):
        changed = files.write("notes/a.md", b"%d" % spare).delete("notes/b.md")
        job.project(files)
        # All free descriptors below the limit, except for so many.
        handles = [os.open(os.devnull, os.O_RDONLY) for _ in range(100)]
        resource.setrlimit(resource.RLIMIT_NOFILE, (handles[-1] + 1 + spare, limits[1]))
        try:
            job.project(changed)
        except OSError:
            failed += 1
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
            for handle in handles:
                os.close(handle)
        assert not root.lost_found("job").exists()
        assert job.project(changed) == []
        assert on_disk(folder) == in_tree(changed)
    assert 1 < failed < 12


@pytest.mark.parametrize("call", ["open", "read"])
def test_a_file_on_a_bad_sector_is_named_and_stays(
    job: Job, root: Root, folder: Path, files: Files, call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    job.project(files)
    changed = files.write("notes/a.md", b"changed")
    opened, bad = os.open, OSError(errno.EIO, "Input/output error")

    def open_(name: Any, flags: int, *more: Any, **options: Any) -> int:
        if name == b"a.md" and call == "open":
            raise bad
        if name == b"a.md":
            # Reading its beginning fails as on a bad disk.
            return opened("/proc/self/mem", flags)
        return opened(name, flags, *more, **options)

    with monkeypatch.context() as disk:
        disk.setattr(os, "open", open_)
        with pytest.raises(OSError, match=r"notes/a\.md"):
            job.project(changed)
    assert not root.lost_found("job").exists()
    assert job.project(changed) == []
    assert on_disk(folder) == in_tree(changed)


def test_what_a_broken_pass_moved_is_named_once_people_are_told(
    job: Job, root: Root, folder: Path, files: Files
) -> None:
    job.project(files)
    (folder / "notes" / "a.md").write_text("mine")
    lost = "00" * 19 + "01"
    broken = files.write("notes/a.md", b"new").with_tree_entry(
        ("zz",), TreeEntry(FILE, bytes.fromhex(lost))
    )
    with pytest.raises(CheckpointMissing):
        job.project(broken)
    assert (root.path / "lost+found/job/0001/notes/a.md").read_text() == "mine"
    assert job.project(files) == []
    assert on_disk(folder) == in_tree(files)
    assert job.mend(files) == ["lost+found/job/0001"]


def test_what_was_moved_in_passing_is_named_once_people_are_told(
    job: Job, folder: Path, files: Files
) -> None:
    for number in (1, 2):
        job.project(files)
        (folder / "notes" / "a.md").write_text(f"edit {number}")
        job.project(files.delete("notes/a.md"))
    (folder / "stray").write_text("x")
    lost = "lost+found/job"
    assert job.mend(files) == [f"{lost}/0001", f"{lost}/0002", f"{lost}/0003/stray"]
    assert job.mend(files) == []


def test_killed_at_random_it_ends_where_it_should(
    job: Job,
    root: Root,
    folder: Path,
    checkpoints: Checkpoints,
    start: Callable[..., subprocess.Popen[str]],
) -> None:
    trees = []
    for version in range(2):
        files = Files.empty(checkpoints.store)
        for number in range(150):
            files = files.write(f"d{number % 7}/f{number}", b"%d" % (version * number))
        trees.append(files.id)
    checkpoints.store.flush()
    code = (
        "import pathlib, sys\n"
        "from activities.checkpoints import Files, Root, open_checkpoints, update_projection\n"
        "root = Root.open(pathlib.Path(sys.argv[1]), create=False)\n"
        "c = open_checkpoints(root, 'job')\n"
        "print('ready', flush=True)\n"
        "while True:\n"
        "    for tree in sys.argv[2:]:\n"
        "        assert update_projection(c, root, 'job', Files(c.store, tree), 1) == []\n"
    )
    for pause in (0.0, 0.01, 0.03, 0.07):
        child = start(code, str(root.path), *trees)
        with pytest.raises(subprocess.TimeoutExpired):
            child.wait(pause + 0.001)
        child.kill()
        child.wait()
    assert job.project(Files(checkpoints.store, trees[0])) == []
    assert on_disk(folder) == in_tree(Files(checkpoints.store, trees[0]))
    assert not root.lost_found("job").exists()


def test_mending_restores_and_clears_everything_but_errors(
    job: Job, folder: Path, files: Files
) -> None:
    job.project(files)
    (folder / "errors").mkdir()
    (folder / "errors" / "trace.txt").write_text("kept")
    (folder / "notes" / "a.md").unlink()
    (folder / "notes" / "b.md").write_text("edited")
    (folder / "run.sh").chmod(0o644)
    (folder / "stray").mkdir()
    shutil.rmtree(folder / "empty")
    moved_paths = job.mend(files)
    expected = in_tree(files) | {"errors": None, "errors/trace.txt": (b"kept", False)}
    assert on_disk(folder) == expected
    assert moved_paths == ["lost+found/job/0001/notes/b.md", "lost+found/job/0001/stray"]
    (job.checkpoints.path / "projected.json").unlink()
    (folder / "notes" / "b.md").unlink()
    assert job.project(files) == []
    assert on_disk(folder) == expected


def test_a_lost_earlier_tree_does_not_stop_it(job: Job, folder: Path, files: Files) -> None:
    record = job.checkpoints.path / "projected.json"
    lost = "00" * 19 + "01"
    record.write_text(f'{{"order": 1, "tree": "{lost}", "started": [], "reported": 0}}')
    folder.mkdir()
    (folder / "old").write_text("whose?")
    assert job.project(files) == ["lost+found/job/0001/old"]
    assert on_disk(folder) == in_tree(files)


@pytest.mark.parametrize("rest", ["", '{"order": 1, "tr'], ids=["no line", "half a line"])
def test_a_pass_whose_end_was_not_recorded_counts_as_interrupted(
    job: Job, folder: Path, files: Files, rest: str
) -> None:
    job.project(files)
    record = job.checkpoints.path / "projected.json"
    begun, _ = record.read_text().splitlines()
    record.write_text(f"{begun}\n{rest}")
    (folder / "notes" / "a.md").unlink()
    assert job.project(files) == []
    assert on_disk(folder) == in_tree(files)


def test_a_folder_that_was_deleted_comes_back(job: Job, folder: Path, files: Files) -> None:
    job.project(files)
    shutil.rmtree(folder)
    assert job.project(files) == []
    assert on_disk(folder) == in_tree(files)
