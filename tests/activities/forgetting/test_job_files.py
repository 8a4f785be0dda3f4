"""What a job has on the disk goes, out of sight at once, and a kill on the way costs nothing."""

import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from activities.checkpoints import Root, open_checkpoints
from activities.checkpoints.forgotten_records import (
    ForgottenJob,
    find_forgotten_record,
    list_forgotten_records,
)
from activities.checkpoints.locks import file_lock
from activities.forgetting.job_files import LOCKS, has_job_files, job_paths, remove_job_paths

JOB = "read/the law.git"
FILES = 500
REPOSITORY = Path(__file__).resolve().parents[3]
FORGET = """
import sys
from pathlib import Path
from activities.checkpoints import Root
from activities.forgetting.job_files import remove_job_paths
from activities.checkpoints.forgotten_records import ForgottenJob

root = Root.open(Path(sys.argv[1]), create=False)
print("begun", flush=True)
remove_job_paths(root, ForgottenJob(job=sys.argv[2], timestamp=1))
"""


def make(root: Root, job: str = JOB, files: int = 3) -> None:
    store = open_checkpoints(root, job, create=True)
    for place in job_paths(root, job):
        for number in range(files):
            path = place / f"{number % 7}" / f"{number}.md"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("tea")
    assert store.tags() == {}


def left(root: Root) -> list[str]:
    """Return all files except the records of forgotten jobs."""
    paths = [path.relative_to(root.path) for path in root.path.rglob("*") if not path.is_dir()]
    ignored_prefixes = (".longhaul/root-id", ".longhaul/forgotten/")
    return [str(path) for path in paths if not str(path).startswith(ignored_prefixes)]


def test_all_of_a_job_goes_and_all_of_others_stays(root: Root) -> None:
    make(root, "another")
    stays = left(root)
    make(root)
    mine = root.lost_found(JOB) / "0001" / "mine.md"
    mine.parent.mkdir(parents=True)
    mine.write_text("by hand")
    remove_job_paths(root, ForgottenJob(job=JOB, timestamp=86_400))
    assert sorted(left(root)) == sorted([*stays, str(mine.relative_to(root.path))])
    record = find_forgotten_record(root, JOB)
    assert record
    assert record.message == (
        f"job {JOB} was forgotten on 1970-01-02: its workspace and checkpoints are no more"
    )
    assert find_forgotten_record(root, "another") is None
    remove_job_paths(root, record)
    assert find_forgotten_record(root, JOB) == record


def test_links_are_removed_and_what_they_lead_to_stays(root: Root, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "mine.md").write_text("by hand")
    make(root)
    workspace, private = root.workspace(JOB), job_paths(root, JOB)[-1]
    (private / "out").symlink_to(outside)
    workspace.rename(tmp_path / "moved")
    workspace.symlink_to(tmp_path / "moved")
    remove_job_paths(root, ForgottenJob(job=JOB, timestamp=1))
    assert left(root) == []
    assert (outside / "mine.md").exists()
    assert (tmp_path / "moved" / "0" / "0.md").exists()


@pytest.mark.parametrize("job", ["../outside", "/outside", "..", ".longhaul", ""])
def test_no_id_leads_out_of_the_root_or_to_what_is_not_a_jobs(
    root: Root, tmp_path: Path, job: str
) -> None:
    (tmp_path / "outside").mkdir()
    make(root, "another")
    before = sorted(left(root))
    remove_job_paths(root, ForgottenJob(job=job, timestamp=1))
    assert sorted(left(root)) == before
    assert (tmp_path / "outside").exists()


def test_folders_that_commands_closed_are_removed(root: Root) -> None:
    make(root)
    closed = job_paths(root, JOB)[-1] / "0"
    closed.chmod(0o000)
    remove_job_paths(root, ForgottenJob(job=JOB, timestamp=1))
    assert left(root) == []


def test_whoever_is_at_the_repository_is_waited_for(root: Root) -> None:
    make(root)
    released: list[float] = []
    acquired = threading.Event()

    def hold() -> None:
        with file_lock(root.repository(JOB) / LOCKS[0], seconds=1):
            acquired.set()
            time.sleep(0.5)
            assert has_job_files(root, JOB)
            released.append(time.monotonic())

    thread = threading.Thread(target=hold)
    thread.start()
    acquired.wait()
    remove_job_paths(root, ForgottenJob(job=JOB, timestamp=1))
    thread.join()
    assert released
    assert not has_job_files(root, JOB)


@pytest.mark.parametrize("milliseconds", [0, 5, 20])
def test_killed_anywhere_the_next_call_finishes(root: Root, milliseconds: int) -> None:
    make(root, files=FILES)
    process = subprocess.Popen(
        [sys.executable, "-c", FORGET, str(root.path), JOB],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
    )
    assert process.stdout
    assert process.stdout.readline() == b"begun\n"
    time.sleep(milliseconds / 1000)
    process.kill()
    process.wait()
    process.stdout.close()
    # Each part is either complete, or gone.
    for place in job_paths(root, JOB):
        assert not place.exists() or len(list(place.rglob("*.md"))) == FILES
    if not job_paths(root, JOB)[0].exists():
        record = find_forgotten_record(root, JOB)
        assert record
        assert [one.job for one in list_forgotten_records(root)] == [JOB]
    remove_job_paths(root, ForgottenJob(job=JOB, timestamp=1))
    assert left(root) == []
    assert list(root.path.rglob("*.forgotten")) == []
