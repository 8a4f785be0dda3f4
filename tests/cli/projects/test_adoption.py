"""A fork's work comes into the project that has ended, and nothing else does."""

from datetime import UTC, datetime

import pytest

from activities.phases.phase_tags import phase_tag
from activities.projects.handoff import prepare_handoff_workspace
from activities.projects.project_repository import ProjectRepository, project_repository_path
from cli.jobs.job_view import JobView
from cli.output import UserError
from cli.projects.adoption import adopt_job
from protocol.handoffs import Handoff, HandoffInputs, ProjectLink
from protocol.status import JobStatus, ProjectStatus
from tests.activities.standing import AT, JOB, Standing

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def fork(tmp_path, monkeypatch):
    """Return a job that left a project which offers tea, and the project's repository."""
    standing = Standing.begin(tmp_path)
    monkeypatch.setenv("LONGHAUL_WORKSPACES", str(standing.root.path))
    project = ProjectRepository.create(project_repository_path(standing.root, "tearoom"))
    nothing = str(project.git.TreeBuilder().write())
    first = project.commit(project.with_files(nothing, {"menu.md": b"tea\n"}), [], "Tea", AT)
    project.set_branch("main", first)
    handoff = Handoff(
        id="brew-coder-1",
        from_agent="project",
        to_agent="coder",
        task="Brew.",
        inputs=HandoffInputs(commit=first),
    )
    link = ProjectLink(id="tearoom", folder="repo", summary_tokens=1000, handoff=handoff)
    snapshot = standing.open()
    prepare_handoff_workspace(standing.root, snapshot, link)
    standing.commit = snapshot.save("begun", AT)
    snapshot.checkpoints.tag(phase_tag(1), standing.commit)
    snapshot = standing.open()
    snapshot.link = None
    standing.commit = snapshot.save("left", AT)
    return standing, project


def viewed(standing: Standing, *, closed: bool = True) -> tuple[JobView, JobView]:
    project = ProjectStatus(job_id="tearoom", status="completed", form="features")
    job = JobStatus(job_id=JOB, status="completed", checkpoint=standing.commit)
    return (
        JobView("tearoom", project, closed, NOW, "r"),
        JobView(JOB, job, True, NOW, "r"),
    )


def test_its_work_is_merged_once(fork):
    standing, project = fork
    with pytest.raises(UserError, match="changed nothing in repo/"):
        adopt_job(*viewed(standing))
    standing.write("repo/brew.md", "hot\n")
    merged = adopt_job(*viewed(standing))
    assert project.branch_tip("main") == merged
    assert project.read_file(merged, "menu.md") == b"tea\n"
    assert project.read_file(merged, "brew.md") == b"hot\n"
    assert "Adopted-by: " in project.get_commit(merged).message
    with pytest.raises(UserError, match="has the work of"):
        adopt_job(*viewed(standing))


def test_a_project_at_work_takes_nothing(fork):
    standing, _ = fork
    with pytest.raises(UserError, match="tearoom is at work"):
        adopt_job(*viewed(standing, closed=False))


def test_what_collides_is_left_on_its_branch(fork):
    standing, project = fork
    tree = project.with_files(project.tree_id(project.branch_tip("main")), {"menu.md": b"cocoa\n"})
    head = project.commit(tree, [project.branch_tip("main")], "Cocoa", AT)
    project.set_branch("main", head)
    standing.write("repo/menu.md", "coffee\n")
    with pytest.raises(UserError, match=r"collides with the product in menu\.md.*jobs/"):
        adopt_job(*viewed(standing))
    assert project.branch_tip("main") == head
