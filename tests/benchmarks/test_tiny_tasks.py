"""`benchmarks.tiny_tasks` judges a job's file as its verifier does."""

import subprocess
from pathlib import Path

import pytest

from activities.checkpoints import Root, open_checkpoints
from activities.checkpoints.tree_files import Files
from benchmarks.tiny_tasks import TinyTask, tiny_tasks


@pytest.mark.parametrize("task", tiny_tasks(1), ids=lambda task: str(task.target))
def test_verifier_and_count_agree(tmp_path: Path, task: TinyTask) -> None:
    store = open_checkpoints(Root.open(tmp_path / "root", create=True), "job", create=True).store
    (tmp_path / "output").mkdir()
    said = " ".join(task.words)
    texts = {said: True, f"{said.title()}.\n": True, f"{said}s": False, said * 50: False, "": False}
    for text, is_right in texts.items():
        (tmp_path / task.target).write_text(text)
        files = Files.empty(store).write(task.target, text.encode())
        assert task.is_right(files) is is_right
        ended = subprocess.run(["sh", "-c", task.check], cwd=tmp_path, check=False)
        assert (ended.returncode == 0) is is_right
