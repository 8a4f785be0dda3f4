"""A repository or folder on the command line: checked, staged, and shown as git does."""

import json
from pathlib import Path
from typing import Any

import pytest

from activities.checkpoints import Checkpoints, Root
from activities.job.snapshot import Snapshot
from activities.source_repository.repository_bounds import RepositoryBounds
from activities.source_repository.repository_fetch import fetch_pinned_repository
from activities.source_repository.workspace_repository import put_repository_into_workspace
from cli.output import UserError
from cli.start.repository_input import publish_input_fields, repository_input_fields
from cli.start.repository_staging import stage_repository
from config.agent_files import load_agent
from protocol.job_state import JobState
from protocol.phase import Phase
from protocol.repository_start import RepositoryStart
from protocol.todo_list import Todo
from tests.activities.source_repository.origins import WorkTree, git
from tests.activities.standing import AT


def fields(**arguments: Any) -> dict[str, Any]:
    base = {"repository": None, "ref": None, "depth": None, "folder": None}
    return repository_input_fields(**{**base, "subfolder": "", "token_variable": None, **arguments})


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"ref": "main"}, "--repository URL or --folder PATH"),
        ({"repository": "https://ada:x4711x@h/tea.git"}, "without a password"),
        ({"repository": "file:///x", "folder": Path("/y")}, "give either url or folder"),
        ({"folder": Path("/y"), "depth": 1}, "go with url"),
        (
            {"repository": "/usr"},
            "--folder /usr, or for its commits alone --repository file:///usr",
        ),
    ],
)
def test_what_cannot_be_used_is_said_before_anything_is_sent(
    arguments: dict[str, Any], why: str
) -> None:
    with pytest.raises(UserError, match=why) as refused:
        fields(**arguments)
    assert "x4711x" not in str(refused.value)


def test_a_branch_needs_a_remote_that_is_known() -> None:
    folder = {"folder": "/tea"}
    with pytest.raises(UserError, match="name the remote to push to"):
        publish_input_fields("stronger", "", folder, approve=False)
    with pytest.raises(UserError, match="--publish BRANCH names the branch"):
        publish_input_fields(None, "file:///tea.git", folder, approve=False)
    named = publish_input_fields("stronger", "file:///tea.git", folder, approve=True)
    assert named == {"branch": "stronger", "remote": "file:///tea.git", "approve": True}


def test_a_folder_is_staged_as_seen_from_the_projects_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LONGHAUL_WORKSPACES", str(tmp_path / "root"))
    WorkTree.create(tmp_path / "code" / "tea")
    agents = [load_agent("generalist")]
    staged = stage_repository({"folder": "tea"}, agents, tmp_path / "code")
    assert staged["folder"].endswith(".git/tea")
    # A repository that is staged already is left unchanged.
    assert stage_repository(staged, agents) == staged
    root = Root.open(tmp_path / "root", create=True)
    bounds = RepositoryBounds.of_agents(*agents)
    origin = fetch_pinned_repository(root, "job", RepositoryStart.model_validate(staged), bounds)
    assert origin.source == "folder tea"
    with pytest.raises(UserError, match="there is no such folder"):
        stage_repository({"folder": "none"}, agents, tmp_path)


@pytest.fixture
def changed(engine: Any, workspaces: Path, tmp_path: Path) -> str:
    """Return a job that changed a file of a repository, and added and renamed others."""
    tree = WorkTree.create(tmp_path / "tea", tea_py="x = 1\n", old_py="a\nb\nc\nd\n")
    root = Root.open(workspaces, create=True)
    job = f"changed-{workspaces.parent.name}"
    phase = Phase(
        number=1, kind="tactical", purpose="work", name="Mend",
        todos=[Todo(id=1, content="Mend")],
    )  # fmt: skip
    config = load_agent("generalist")
    snapshot = Snapshot.start(Checkpoints.create(root, job), config, JobState(phase=phase))
    start = RepositoryStart(url=tree.url)
    origin = fetch_pinned_repository(root, job, start, RepositoryBounds.of_agents(config))
    put_repository_into_workspace(root, snapshot, job, origin, None)
    first = snapshot.save("phase 1 begins", AT)
    files = snapshot.files.write("repo/tea.py", b"x = 2\n").write("repo/new.py", b"y = 1\n")
    snapshot.files = files.move("repo/old.py", "repo/older.py").write("notes/a.md", b"x")
    newest = snapshot.save("phase 1 · todo 1 · write_file repo/tea.py", AT + 1)
    known = [{"phase": 1, "id": first}]
    return str(engine.job(job, set={"checkpoint": newest, "checkpoints": known}))


def test_the_work_is_shown_as_git_shows_it(changed: str, starter: Any) -> None:
    assert starter("diff", changed, "--name-only").out.split() == ["new.py", "older.py", "tea.py"]
    stat = starter("diff", changed, "--stat").out
    assert "old.py => older.py | 0" in stat
    assert stat.endswith("3 files changed, 2 insertions(+), 1 deletion(-)\n")
    shown = json.loads(starter("diff", changed, "--json").out)
    assert shown["paths"] == ["new.py", "older.py", "tea.py"]
    assert "rename from old.py\nrename to older.py\n" in shown["diff"]


def test_what_is_shown_applies(changed: str, starter: Any, tmp_path: Path) -> None:
    (tmp_path / "shown.diff").write_text(starter("diff", changed).out)
    git(tmp_path / "tea", "apply", "../shown.diff")
    assert (tmp_path / "tea" / "tea.py").read_text() == "x = 2\n"
    assert (tmp_path / "tea" / "new.py").read_text() == "y = 1\n"
    assert not (tmp_path / "tea" / "old.py").exists()


def test_between_phases_the_whole_workspace_is_compared(changed: str, starter: Any) -> None:
    out = starter("diff", changed, "1", "now", "--stat").out
    assert "notes/a.md" in out
    error = starter("diff", changed, "1", "now", "--name-only").error
    assert "leave the phases out" in error
