"""Folders go for good, also where somebody else removes them at the same time."""

import os
import shutil
import subprocess
import threading
from pathlib import Path

from activities.checkpoints.removal import make_removable, remove_path


def test_what_another_removes_meanwhile_does_not_matter(tmp_path: Path) -> None:
    over = threading.Event()

    def come_and_go() -> None:
        while not over.is_set():
            for n in range(50):
                (tmp_path / f"{n}" / "below").mkdir(parents=True, exist_ok=True)
            for n in range(50):
                shutil.rmtree(tmp_path / f"{n}")

    other = threading.Thread(target=come_and_go)
    other.start()
    try:
        for _ in range(300):
            make_removable(tmp_path)
    finally:
        over.set()
        other.join()


def test_what_is_nested_deeper_than_any_path_goes_as_well(tmp_path: Path) -> None:
    folder, outside = tmp_path / "folder", tmp_path / "outside"
    outside.mkdir(mode=0o500)
    folder.mkdir()
    descriptor = os.open(folder, os.O_RDONLY)
    for _ in range(1500):
        os.mkdir("nested", dir_fd=descriptor)
        os.symlink(outside, "link", dir_fd=descriptor)
        inner = os.open("nested", os.O_RDONLY, dir_fd=descriptor)
        os.fchmod(inner, 0)
        os.close(descriptor)
        descriptor = inner
    os.close(descriptor)
    try:
        remove_path(folder)
    finally:
        # pytest could not remove it either.
        subprocess.run(["rm", "-rf", folder], check=True)
    assert list(tmp_path.iterdir()) == [outside]
    assert outside.stat().st_mode & 0o777 == 0o500


def test_a_folder_that_nobody_may_write_in_can_be_emptied(tmp_path: Path) -> None:
    for folder in (tmp_path / "outer", tmp_path / "outer" / "inner"):
        folder.mkdir()
    for folder in (tmp_path / "outer" / "inner", tmp_path / "outer"):
        folder.chmod(0)
    make_removable(tmp_path / "outer")
    modes = [each.stat().st_mode & 0o777 for each in (tmp_path / "outer", *tmp_path.glob("*/*"))]
    assert modes == [0o700, 0o700]
