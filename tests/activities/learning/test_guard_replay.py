"""What a guard would have refused in the jobs that are still there: real checkpoints."""

import json
import shutil
from pathlib import Path

import pytest

from activities.checkpoints import Root
from activities.checkpoints.workspaces_root import list_job_repositories
from activities.learning.finished_jobs import finished_jobs, read_finished_job
from activities.learning.learning_pass import replay_guard
from config.learned_guards import ReplayCounts
from config.schema.guards import Guard, Match
from tests.activities.standing import AT, JOB, Standing

GUARD = Guard(
    name="no-scratch",
    point="before_tool",
    match=Match(tool=["write_file"], path=["scratch/*"]),
    decision="deny",
    message="No.",
)


@pytest.fixture
def job(tmp_path: Path) -> Standing:
    """A completed job."""
    job = Standing.begin(tmp_path)
    job.write("output/completion.json", json.dumps({"status": "completed"}))
    return job


def replied(job: Standing, *calls: tuple[str, str]) -> None:
    """Save a reply with the message that the model activity gives its checkpoints."""
    job.reply(*calls)
    job.commit = job.open().save(f"phase 2: reply: {', '.join(c[0] for c in calls)}", AT)
    job.open().checkpoints.tag("completed", job.commit)


def hits(root: Root) -> int:
    counts: ReplayCounts = replay_guard(root, GUARD, "generalist", [], {})
    return counts.hits


def test_a_reply_without_a_call_is_passed_over(job: Standing) -> None:
    replied(job, ("write_file", json.dumps({"path": "scratch/a.md"})))
    snapshot = job.open()
    snapshot.state.step = job.step = 2
    message = {"role": "assistant", "content": "I think that I am done."}
    snapshot.conversation = snapshot.conversation.append(message)
    job.commit = snapshot.save("phase 2: reply: text", AT)
    replied(job, ("write_file", json.dumps({"path": "scratch/b.md"})))
    assert hits(job.root) == 2


def test_arguments_that_are_nested_too_deep_are_none(job: Standing) -> None:
    replied(job, ("write_file", "[" * 100_000))
    assert hits(job.root) == 0


@pytest.mark.parametrize("damage", ["no objects", "no tags", "no journal", "broken objects"])
def test_a_damaged_repository_keeps_no_other_from_being_read(job: Standing, damage: str) -> None:
    replied(job, ("write_file", json.dumps({"path": "scratch/a.md"})))
    whole = job.root.repository(JOB)
    bad = job.root.repository("bad")
    shutil.copytree(whole, bad)
    if damage == "no objects":
        shutil.rmtree(bad / "objects")
    elif damage == "no tags":
        shutil.rmtree(bad / "refs" / "tags")
    elif damage == "no journal":
        shutil.rmtree(bad / "journal")
    else:
        for file in (bad / "journal").iterdir():
            file.write_bytes(b"x" * file.stat().st_size)
    assert whole in list_job_repositories(job.root)
    assert hits(job.root) == 1
    assert list(finished_jobs(job.root)) == [whole.stem]
    assert read_finished_job(bad) is None
