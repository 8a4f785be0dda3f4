"""What differs from run to run is kept, and left out of the tree by which runs are compared."""

import json
from pathlib import Path

import pytest

from activities.checkpoints.volatile_paths import volatile_matcher, without_volatile
from activities.steps.close_job import close_job
from config.schema.shell import ShellConfig
from protocol.endings import CloseRequest, JobResult
from tests.activities.standing import AT, Standing, environment

PATTERNS = ShellConfig.model_validate({}).volatile


@pytest.mark.parametrize(
    ("path", "is_volatile"),
    [
        (".git/index", True),
        ("repo/.git/index", True),
        ("repo/.git/logs/refs/heads/main", True),
        ("repo/.git/HEAD", False),
        ("a/b/__pycache__/c.pyc", True),
        ("__pycache__/c.pyc", True),
        ("x__pycache__/c.pyc", False),
        ("build.log", True),
        ("logs/build.log", True),
        ("logs/build.log.md", False),
        ("commands/log.jsonl", False),
        ("index", False),
    ],
)
def test_paths_that_are_volatile(path: str, is_volatile: bool) -> None:
    assert volatile_matcher(PATTERNS)(path) is is_volatile
    assert not volatile_matcher([])(path)


def test_where_there_are_none_it_is_the_same_tree(tmp_path: Path) -> None:
    snapshot = Standing.begin(tmp_path).open()
    assert without_volatile(snapshot.files, PATTERNS).id == snapshot.files.id
    assert snapshot.comparable_tree == snapshot.checkpoints.tree_id(snapshot.commit)


def test_folders_that_held_nothing_else_go_with_them(tmp_path: Path) -> None:
    job = Standing.begin(tmp_path)
    before = job.open().files
    job.write("src/__pycache__/a.pyc", "1")
    job.write("src/a.py", "x")
    job.put(lambda files: files.make_folder("caches/__pycache__"))
    left = [entry.path for entry in without_volatile(job.open().files, PATTERNS).walk()]
    assert "src/a.py" in left
    assert not [path for path in left if "pycache" in path]
    many = before
    for number in range(300):
        many = many.write(f"runs/{number}.log", b"x")
    assert without_volatile(many, PATTERNS) == before.make_folder("runs")


async def closed(path: Path, mark: str, text: str = "tea") -> tuple[Standing, JobResult]:
    """Return a job that ran commands, which left the mark in volatile paths."""
    job = Standing.begin(path)
    snapshot, before = job.open(), job.open().files
    for name in ("repo/.git/index", "repo/__pycache__/m.pyc", "build.log"):
        snapshot.files = snapshot.files.write(name, mark.encode())
    snapshot.files = snapshot.files.write("output/tea.md", text.encode())
    snapshot.record_changes(before)
    job.commit = snapshot.save("command", AT)
    job.reply(("job_complete", json.dumps({"summary": "s", "deliverables": [], "confidence": 1})))
    request = CloseRequest(
        root=job.root.id, commit=job.commit, at=AT, step=job.step, status="completed", call=0
    )
    reply = await environment(local=False).run(close_job(job.root), request)
    result: JobResult = reply.result
    return job, result


async def test_two_runs_that_differ_in_it_have_the_same_tree(tmp_path: Path) -> None:
    (one, first), (_, second), (_, third) = [
        await closed(tmp_path / "1", "Monday"),
        await closed(tmp_path / "2", "a longer mark of Tuesday"),
        await closed(tmp_path / "3", "Monday", "coffee"),
    ]
    assert first.checkpoint != second.checkpoint
    assert first.tree == second.tree != third.tree
    stored_files = one.open(first.checkpoint).files
    assert stored_files.read("repo/.git/index") == b"Monday"
    assert b"build.log" not in stored_files.read("workspace_summary.md")
