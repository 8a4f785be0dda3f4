"""Folders go for good, also where somebody else removes them at the same time."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

from activities.checkpoints.removing import unlock


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
            unlock(tmp_path)
    finally:
        over.set()
        other.join()
