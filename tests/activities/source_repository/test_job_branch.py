"""A repository in a workspace, and what of the work there becomes commits."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from activities.checkpoints import Checkpoints, Root, open_checkpoints
from activities.checkpoints.journal import PushStaging
from activities.checkpoints.remote import push_to_remote
from activities.checkpoints.remote_fetch import fetch_remote_checkpoints
from activities.job.snapshot import Snapshot
from activities.projects.project_repository import project_repository_path
from activities.source_repository.job_branch import commit_job_branch
from activities.source_repository.repository_bounds import RepositoryBounds
from activities.source_repository.repository_fetch import fetch_pinned_repository
from activities.source_repository.workspace_repository import put_repository_into_workspace
from config.agent_files import load_agent
from protocol.job_state import JobState
from protocol.phase import Phase
from protocol.repository_link import EarlierStart, StartTests
from protocol.repository_start import RepositoryStart
from protocol.todo_list import Todo
from tests.activities.source_repository.origins import WorkTree, git
from tests.activities.standing import AT


@dataclass
class Line:
    """A job of several phases, each of which leaves files in the repository."""

    root: Root
    snapshot: Snapshot
    starts: list[str] = field(default_factory=list)

    @classmethod
    def begin(cls, root: Root, tree: WorkTree) -> Line:
        phase = Phase(
            number=1, kind="tactical", purpose="work", name="Boil",
            todos=[Todo(id=1, content="Boil")],
        )  # fmt: skip
        config = load_agent("generalist")
        store = Checkpoints.create(root, "job")
        snapshot = Snapshot.start(store, config, JobState(phase=phase))
        bounds = RepositoryBounds.of_agents(config)
        origin = fetch_pinned_repository(root, "job", RepositoryStart(url=tree.url), bounds)
        put_repository_into_workspace(root, snapshot, "job", origin, None)
        return cls(root, snapshot, [snapshot.save("phase 1 begins", AT)])

    def end_phase(self, files: dict[str, str | None], name: str = "Next") -> None:
        """Leave these files, archive the list, and begin the next phase."""
        number = self.snapshot.state.phase.number
        for path, text in files.items():
            place, before = f"repo/{path}", self.snapshot.files
            self.snapshot.files = (
                before.delete(place) if text is None else before.write(place, text.encode())
            )
        page = "todos:\n- {id: 1, content: Made it, status: completed, notes: It was easy}\n"
        self.snapshot.files = self.snapshot.files.write(
            f"archive/phase_{number:03d}.yaml", page.encode()
        )
        phase = self.snapshot.state.phase.model_copy(update={"number": number + 1, "name": name})
        self.snapshot.state.phase = phase
        self.starts.append(self.snapshot.save(f"phase {number + 1} begins", AT + number))

    def messages(self, story: str = "All is done. It holds.") -> list[str]:
        result = commit_job_branch(self.root, self.snapshot, "job", self.starts, story)
        if not result.commit:
            return []
        own = project_repository_path(self.root, "job")
        log = git(own, "log", "--reverse", "--format=%B%x00", f"{result.base}..{result.commit}")
        return [message.strip() for message in log.split("\0") if message.strip()]


@pytest.fixture
def tree(tmp_path: Path) -> WorkTree:
    return WorkTree.create(tmp_path / "tea", _gitignore="*.log\n", tea_py="x = 1\n", out__a="a")


@pytest.fixture
def line(root: Root, tree: WorkTree) -> Line:
    return Line.begin(root, tree)


def test_contents_are_shared_and_not_copied(root: Root, tmp_path: Path) -> None:
    many = {f"d{n // 100}/f{n}.txt": f"{n} " * 500 for n in range(1000)}
    tree = WorkTree.create(tmp_path / "many")
    tree.commit("Many", many)
    line = Line.begin(root, tree)
    line.snapshot.checkpoints.pack()
    own = sum(path.stat().st_size for path in root.repository("job").rglob("*") if path.is_file())
    assert own < 150_000  # of 2 MB
    assert line.snapshot.checkpoints.is_intact(line.starts[0])
    assert line.snapshot.files.read("repo/d9/f999.txt") == b"999 " * 500


def test_each_phase_that_changed_something_is_a_commit(line: Line) -> None:
    line.end_phase({"tea.py": "x = 2\n"}, "Rest")
    line.end_phase({}, "Brew")
    line.end_phase({"new.py": "y\n"})
    assert line.messages() == [
        "Boil\n\n- Made it. It was easy\n\nJob: job",
        "Brew\n\n- Made it. It was easy\n\nAll is done. It holds.\n\nJob: job",
    ]


def test_the_branch_of_a_fork_begins_with_the_phases_that_it_continues_from(line: Line) -> None:
    line.end_phase({"tea.py": "x = 2\n"}, "Rest")
    line.end_phase({"new.py": "y\n"}, "Think again")
    earlier = [EarlierStart(job="first", commit=commit) for commit in line.starts]
    assert line.snapshot.repository
    line.snapshot.repository = line.snapshot.repository.model_copy(update={"earlier": earlier})
    line.starts = [line.snapshot.save("phase 4 begins", AT + 4)]
    line.end_phase({"tea.py": "x = 3\n"})
    assert line.messages("Three.") == [
        "Boil\n\n- Made it. It was easy\n\nJob: first",
        "Rest\n\n- Made it. It was easy\n\nJob: first",
        "Think again\n\n- Made it. It was easy\n\nThree.\n\nJob: job",
    ]


def test_what_was_taken_back_is_in_no_commit(line: Line) -> None:
    line.end_phase({"tea.py": "wrong\n"})
    line.end_phase({"tea.py": "x = 1\n"})
    assert line.messages() == []
    line.end_phase({"tea.py": "x = 3\n"})
    assert len(line.messages()) == 1


def test_new_files_that_are_ignored_stay_behind_and_old_ones_of_such_names_stay(
    root: Root, tmp_path: Path
) -> None:
    tree = WorkTree.create(tmp_path / "tea", _gitignore="out/\n*.log\n")
    tree.write({"out/kept": "x", "cache/__pycache__/a": "x"})
    tree.git("add", "-f", "out/kept", "cache")
    tree.git("commit", "-q", "-m", "Two")
    line = Line.begin(root, tree)
    line.end_phase(
        {"out/kept": "y", "out/new": "y", "a.log": "y", "b/__pycache__/c": "y", "d.py": "y"}
    )
    result = commit_job_branch(root, line.snapshot, "job", line.starts, "Done.")
    own = project_repository_path(root, "job")
    changed = git(own, "diff", "--name-status", result.base, result.commit)
    assert changed.split() == ["A", "d.py", "M", "out/kept"]


def test_what_the_tests_generated_before_the_work_stays_behind(line: Line) -> None:
    link = line.snapshot.repository
    assert link
    tests = StartTests(generated=["tea.py", "build"])
    line.snapshot.repository = link.model_copy(update={"tests": tests})
    line.end_phase({"tea.py": "x = 2\n", "build/a": "y", "builder": "y"})
    result = commit_job_branch(line.root, line.snapshot, "job", line.starts, "Done.")
    own = project_repository_path(line.root, "job")
    changed = git(own, "diff", "--name-status", result.base, result.commit)
    assert changed.split() == ["A", "builder", "M", "tea.py"]


def test_a_pattern_takes_back_one_of_another_folder(root: Root, tmp_path: Path) -> None:
    tree = WorkTree.create(tmp_path / "tea", _gitignore="*.log\n")
    line = Line.begin(root, tree)
    line.end_phase({"a/.gitignore": "!kept.log\n", "a/kept.log": "x", "a/b.log": "x", "c.py": "x"})
    result = commit_job_branch(root, line.snapshot, "job", line.starts, "Done.")
    changed = git(
        project_repository_path(root, "job"), "diff", "--name-only", result.base, result.commit
    )
    assert changed.split() == ["a/.gitignore", "a/kept.log", "c.py"]


def test_the_same_work_is_the_same_commit_though_the_repository_was_lost(line: Line) -> None:
    line.end_phase({"tea.py": "x = 2\n"})
    results = []
    for _ in range(2):
        results.append(commit_job_branch(line.root, line.snapshot, "job", line.starts, "Done."))
        shutil.rmtree(project_repository_path(line.root, "job"))
    assert results[0] == results[1]


def test_another_host_has_all_of_it_and_makes_the_same_branch(line: Line, tmp_path: Path) -> None:
    line.end_phase({"tea.py": "x = 2\n"})
    first = commit_job_branch(line.root, line.snapshot, "job", line.starts, "Done.")
    git(tmp_path, "init", "-q", "--bare", "remote.git")
    url, own = f"file://{tmp_path / 'remote.git'}", line.root.repository("job")
    newest = line.snapshot.commit
    push_to_remote(url, "job", own, PushStaging(own).stage(), {"runs/run/here": newest}, {})
    # Objects borrowed on this host do not exist on the other one.
    shutil.rmtree(line.root.path)
    other = Root.open(tmp_path / "other", create=True)
    store = open_checkpoints(other, "job", create=True)
    fetch_remote_checkpoints(url, "job", store)
    assert store.is_intact(newest)
    snapshot = Snapshot.load(store, newest)
    assert commit_job_branch(other, snapshot, "job", line.starts, "Done.") == first


def test_a_later_checkpoint_of_the_same_work_makes_the_same_commit(line: Line) -> None:
    line.end_phase({"tea.py": "x = 2\n"})
    first = commit_job_branch(line.root, line.snapshot, "job", line.starts, "Done.")
    line.snapshot.files = line.snapshot.files.write("instructions.md", b"Told more.\n")
    line.snapshot.save("tell", AT + 1000)
    assert commit_job_branch(line.root, line.snapshot, "job", line.starts, "Done.") == first
