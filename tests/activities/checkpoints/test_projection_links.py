"""Links that a person or a command puts into the folder are never followed out of it."""

import contextlib
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from activities.checkpoints import Checkpoints, Files, Root, take_edits, update_projection

SWAPPER = """
import contextlib, itertools, pathlib, random, sys, time
folder, outside, aside = map(pathlib.Path, sys.argv[1:])
aside.mkdir()
print("ready", flush=True)
for number in itertools.count():
    with contextlib.suppress(OSError):
        (folder / "notes").rename(aside / str(number))
        (folder / "notes").symlink_to(outside)
    until = time.perf_counter() + random.uniform(0, 0.0005)
    while time.perf_counter() < until:
        pass
    with contextlib.suppress(OSError):
        (folder / "notes").unlink()
        (aside / str(number)).rename(folder / "notes")
"""

Projector = Callable[[Files], list[str]]


@pytest.fixture
def files(checkpoints: Checkpoints) -> Files:
    files = Files.empty(checkpoints.store).write("notes/a.md", b"a").write("notes/b.md", b"b")
    return files.write("run.sh", b"run")


@pytest.fixture
def projected(checkpoints: Checkpoints, root: Root) -> Projector:
    return lambda files: update_projection(checkpoints, root, "job", files, 1)


@pytest.fixture
def folder(root: Root) -> Path:
    return root.workspace("job")


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    (tmp_path / "outside").mkdir()
    return tmp_path / "outside"


def test_a_link_swapped_in(
    checkpoints: Checkpoints,
    root: Root,
    files: Files,
    projected: Projector,
    folder: Path,
    outside: Path,
) -> None:
    (outside / "a.md").write_text("not yours")
    projected(files)
    shutil.rmtree(folder / "notes")
    (folder / "notes").symlink_to(outside)
    (folder / "run.sh").unlink()
    (folder / "run.sh").symlink_to(outside / "a.md")
    changed = files.write("notes/a.md", b"new").write("run.sh", b"new")
    moved_paths = projected(changed)
    # All of notes is restored, including files that did not change.
    assert take_edits(checkpoints, root, "job", changed) == (changed, [])
    assert [path.read_text() for path in outside.iterdir()] == ["not yours"]
    assert sorted(moved_paths) == ["lost+found/job/0001/notes", "lost+found/job/0001/run.sh"]
    assert (root.path / "lost+found/job/0001/notes").is_symlink()


def test_a_link_that_comes_and_goes_meanwhile(
    checkpoints: Checkpoints,
    root: Root,
    files: Files,
    projected: Projector,
    folder: Path,
    outside: Path,
    start: Callable[..., subprocess.Popen[str]],
) -> None:
    projected(files)
    swapper = start(SWAPPER, str(folder), str(outside), str(outside.parent / "aside"))
    until = time.monotonic() + 0.7
    while time.monotonic() < until:
        for text in ("1", "2"):
            with contextlib.suppress(OSError):
                projected(files.write("notes/a.md", text.encode()).write(f"notes/{text}", b""))
    swapper.kill()
    swapper.wait()
    assert list(outside.iterdir()) == []
    update_projection(checkpoints, root, "job", files, 1, full=True)
    assert take_edits(checkpoints, root, "job", files) == (files, [])


def test_a_workspace_that_is_a_link(
    files: Files, projected: Projector, folder: Path, outside: Path
) -> None:
    folder.symlink_to(outside)
    with pytest.raises(OSError, match="link or a file is in the place of a folder"):
        projected(files)
    assert list(outside.iterdir()) == []
