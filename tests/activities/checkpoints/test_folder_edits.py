import os
import shutil
import socket
import subprocess
from pathlib import Path

import pytest

from activities.checkpoints import Checkpoints, Files, Root, take_edits, update_projection


@pytest.fixture
def files(checkpoints: Checkpoints) -> Files:
    return (
        Files.empty(checkpoints.store)
        .write("notes/a.md", b"a")
        .write("gone/b.md", b"b")
        .write("c.md", b"c")
    )


@pytest.fixture
def folder(checkpoints: Checkpoints, root: Root, files: Files) -> Path:
    update_projection(checkpoints, root, "job", files, 1)
    return root.workspace("job")


def test_a_folder_nobody_touched_is_the_same_tree(
    checkpoints: Checkpoints, root: Root, files: Files, folder: Path
) -> None:
    assert take_edits(checkpoints, root, "job", files) == (files, [])


def test_everything_a_person_can_leave_comes_back(
    checkpoints: Checkpoints, root: Root, files: Files, folder: Path
) -> None:
    (folder / "notes" / "a.md").write_text("edited")
    shutil.rmtree(folder / "gone")
    (folder / "empty" / "inner").mkdir(parents=True)
    (folder / "tool").write_text("#!")
    (folder / "tool").chmod(0o755)
    (folder / "out").symlink_to("/etc/passwd")
    (folder / "loop").symlink_to(".")
    os.mkdir(os.fsencode(folder) + b"/\xff\xfe")  # noqa: PTH102
    (folder / "new\nline").write_text("x")
    (folder / "errors").mkdir()
    (folder / "errors" / "trace").write_text("left out")
    subprocess.run(["git", "init", "-q", "repo"], cwd=folder, check=True)
    (folder / "repo" / "x").write_text("1")
    subprocess.run(["git", "add", "x"], cwd=folder / "repo", check=True)

    edited, notes = take_edits(checkpoints, root, "job", files)

    assert notes == []
    assert edited.read("notes/a.md") == b"edited"
    assert edited.entry("gone") is None
    assert edited.entry("errors") is None
    kinds = {entry.path: (entry.kind, entry.executable) for entry in edited.walk()}
    assert kinds["empty/inner"] == ("folder", False)
    assert kinds["tool"] == ("file", True)
    assert kinds["out"] == ("link", False)
    assert kinds["loop"] == ("link", False)
    assert kinds["\udcff\udcfe"] == ("folder", False)
    assert kinds["new\nline"] == ("file", False)
    assert "repo/.git/HEAD" in kinds

    shutil.rmtree(folder)
    assert update_projection(checkpoints, root, "job", edited, 2, full=True) == []
    assert take_edits(checkpoints, root, "job", edited) == (edited, [])
    status = subprocess.run(
        ["git", "status", "--porcelain"], cwd=folder / "repo", capture_output=True, check=True
    )
    assert status.stdout == b"A  x\n"


def test_what_no_tree_can_hold_is_left_out_and_named(
    checkpoints: Checkpoints, root: Root, files: Files, folder: Path
) -> None:
    os.mkfifo(folder / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / "s"))
        (folder / "c.md").write_bytes(b"x" * 11)
        deep = folder / "/".join(["d"] * 201)
        deep.parent.mkdir(parents=True)
        deep.write_text("")
        base = Files(files.store, files.id, limit=10)
        edited, notes = take_edits(checkpoints, root, "job", base)
    assert len(notes) == 4
    assert all(note.isprintable() and note.startswith("Left out '") for note in notes)
    assert [word for word in ("pipe", "'s'", "c.md", "deep") if word not in str(notes)] == []
    assert edited.read("c.md") == b"c"


def test_a_folder_that_lags_takes_nothing_back(
    checkpoints: Checkpoints, root: Root, files: Files, folder: Path
) -> None:
    newest = (
        files.write("notes/a.md", b"newer").write("made.md", b"m").delete("c.md").delete("gone")
    )
    assert take_edits(checkpoints, root, "job", newest) == (newest, [])
    (folder / "notes" / "b.md").write_text("mine")
    (folder / "c.md").write_text("edited")
    edited, _ = take_edits(checkpoints, root, "job", newest)
    assert edited == newest.write("notes/b.md", b"mine").write("c.md", b"edited")

    # A whole new folder is added at once; file by file, each folder above would be rewritten.
    (folder / "own" / "inner").mkdir(parents=True)
    for number in range(200):
        (folder / "own" / "inner" / f"{number}").write_text("mine")
    before = _stored(checkpoints)
    whole, _ = take_edits(checkpoints, root, "job", newest)
    assert _stored(checkpoints) - before < 50_000
    assert len(whole.children("own/inner")) == 200
    assert whole.delete("own") == edited


def _stored(checkpoints: Checkpoints) -> int:
    """Return the size of the whole repository in bytes."""
    checkpoints.store.flush()
    return sum(path.stat().st_size for path in checkpoints.path.rglob("*") if path.is_file())


def test_a_deletion_in_a_folder_that_lags_counts(
    checkpoints: Checkpoints, root: Root, files: Files, folder: Path
) -> None:
    shutil.rmtree(folder / "gone")
    (folder / "notes" / "a.md").unlink()
    (folder / "notes").rmdir()
    (folder / "notes").write_text("a file now")
    newest = files.write("made/x", b"m")
    edited, _ = take_edits(checkpoints, root, "job", newest)
    assert {entry.path for entry in edited.walk()} == {"c.md", "made/x", "notes"}


def test_without_a_record_nothing_counts_as_deleted(
    checkpoints: Checkpoints, root: Root, files: Files, folder: Path
) -> None:
    (checkpoints.path / "projected.json").unlink()
    (folder / "c.md").unlink()
    (folder / "d.md").write_text("d")
    assert take_edits(checkpoints, root, "job", files)[0] == files.write("d.md", b"d")
    shutil.rmtree(folder)
    edited, [note] = take_edits(checkpoints, root, "job", files)
    assert edited == files
    assert "no folder" in note
