"""A job's work as commits on top of the commit it began from."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import yaml

from activities.checkpoints import CheckpointMissing, Root, job_folder_name
from activities.job.snapshot import Snapshot
from activities.projects.ignored_files import without_ignored
from activities.projects.project_remote import open_remote_project
from activities.projects.project_repository import (
    ProjectRepository,
    Since,
    project_repository_path,
)
from activities.projects.work_proof import WorkProof, known_work_proof
from activities.source_repository.repository_bounds import RepositoryBounds
from activities.source_repository.repository_fetch import fetch_pinned_repository
from activities.toolkit.registry import REGISTRY
from config.schema.agent import ConfigError
from protocol.commit_message import commit_message
from protocol.publishing import BranchResult
from protocol.repository_link import EarlierStart, RepositoryLink
from protocol.repository_start import STAGED
from protocol.short_text import as_sentence, one_line

MOST_TODOS = 30
MOST_NOTES = 300


@dataclass(frozen=True)
class _Stage:
    """The repository's files at the end of a phase, and the message that describes it."""

    job: str
    tree: str
    story: str
    timestamp: int
    is_planning: bool = False
    """Whether the phase has no words of its own: its todos are the configuration's."""


def commit_job_branch(
    root: Root, snapshot: Snapshot, job: str, starts: Sequence[str], story: str, proof: str = ""
) -> BranchResult:
    """Put a job's work on its branch: a commit for each phase of work that changed something, or
    one for all.

    What was corrected while planning is in the commit that follows. Deterministic: the same
    arguments give the same commits.

    Args:
        starts: Start checkpoints of its phases, in order. A fork's branch begins with the phases
            that it continues from, as commits of their own job.
        story: The job's own summary, which is in the message of the last commit.

    Raises CheckpointMissing, ConfigError, ApplicationError.
    """
    link = snapshot.repository
    assert link is not None
    repository = open_branch_repository(root, snapshot, link)
    branch = link.publish.branch if link.publish else f"longhaul/{job_folder_name(job)}"
    result = BranchResult(base=link.commit, branch=branch)
    commits, tip = snapshot.config.commits, link.published or link.commit
    trees, stages = [repository.tree_id(tip)], list[_Stage]()
    earlier = [] if link.published else link.earlier
    phases = [*earlier, *(EarlierStart(job=job, commit=commit) for commit in starts)]
    for stage in _job_branch_stages(repository, snapshot, link, phases, story):
        if stage.tree in trees:
            # A phase that changed nothing gets no commit; one that restored an earlier state also
            # drops the commits since that state.
            place = trees.index(stage.tree)
            trees, stages = trees[: place + 1], stages[:place]
            continue
        trees.append(stage.tree)
        stages.append(stage)
    if not stages:
        return result.model_copy(update={"commit": link.published})
    if commits.single:
        stages = stages[-1:]
    stages = [stage for stage in stages[:-1] if not stage.is_planning] + stages[-1:]
    for number, stage in enumerate(stages, 1):
        text = stage.story
        if number == len(stages):
            text = story if commits.single else _last_commit_story(stages, story)
            text = "\n\n".join(filter(None, [text, f"Tests: {proof}." if proof else ""]))
        trailers = {"Job": "" if commits.single else stage.job}
        trailers["Signed-off-by"] = commits.author if commits.sign_off else ""
        message = commit_message(
            text or f"Work of {stage.job}", trailers, has_subject=commits.single
        )
        tip = repository.commit(stage.tree, [tip], message, stage.timestamp, commits.author)
    repository.set_branch(branch, tip)
    return result.model_copy(update={"commit": tip})


def _last_commit_story(stages: Sequence[_Stage], story: str) -> str:
    last = stages[-1]
    if len(stages) == 1 or last.is_planning or last.story == story:
        return story
    return "\n\n".join(filter(None, [last.story, story]))


def finished_work_proof(root: Root, snapshot: Snapshot, call: int | None) -> WorkProof:
    """Return what the work changes, and what the runs at the job's end have shown of it."""
    link, arguments = snapshot.repository, {}
    assert link is not None
    repository = open_branch_repository(root, snapshot, link)
    if call is not None:
        called = snapshot.tool_call(call)["function"]
        arguments = REGISTRY["job_complete"].parse(called["arguments"])
    tree = job_branch_tree(repository, snapshot, link)
    return known_work_proof(snapshot, repository, tree, arguments)


def open_branch_repository(
    root: Root, snapshot: Snapshot, link: RepositoryLink
) -> ProjectRepository:
    """Open the job's git repository, fetching it again if it was on a lost host.

    The remote has it, unless it was away when the job began or only a part of the history was
    fetched.

    Raises CheckpointMissing, ConfigError, ApplicationError.
    """
    remote = snapshot.config.workspace.remote or ""
    with suppress(CheckpointMissing):
        repository = open_remote_project(root, link.owner, remote, link.commit)
        if link.commit in repository.git:
            return repository
    start, bounds = link.origin.start, RepositoryBounds.of_agents(snapshot.config)
    if start.url:
        again = start.model_copy(update={"ref": link.commit, "depth": None})
        fetch_pinned_repository(root, link.owner, again, bounds)
    elif remote and start.folder.startswith(STAGED):
        # Without the history, the work ends as files alone.
        with suppress(ConfigError):
            fetch_pinned_repository(root, link.owner, start, bounds, remote)
    return ProjectRepository(project_repository_path(root, link.owner))


def _job_branch_stages(
    repository: ProjectRepository,
    snapshot: Snapshot,
    link: RepositoryLink,
    phases: Sequence[EarlierStart],
    story: str,
) -> list[_Stage]:
    stages: list[_Stage] = []
    before: Snapshot | None = None
    job, timestamp = link.owner, repository.get_commit(link.commit).commit_time
    for phase in phases:
        try:
            start = Snapshot.load(snapshot.checkpoints, phase.commit)
            [entry] = snapshot.checkpoints.log(phase.commit, 1)
        except CheckpointMissing:
            continue
        if start.repository is None or start.repository.commit != link.commit:
            # A job of a project that was forked may have begun from another commit.
            continue
        if before is not None:
            text = _branch_phase_story(before, start)
            tree = job_branch_tree(repository, start, link)
            is_planning = before.state.phase.kind == "strategic"
            stages.append(_Stage(job, tree, text, entry.timestamp, is_planning))
        before, job, timestamp = start, phase.job, entry.timestamp
    # Date the last commit by the start of its phase: otherwise a remark to a job whose branch was
    # pushed, but which has not ended yet, would give the same work another commit.
    return [*stages, _Stage(job, job_branch_tree(repository, snapshot, link), story, timestamp)]


def job_branch_tree(repository: ProjectRepository, snapshot: Snapshot, link: RepositoryLink) -> str:
    left_out = [pattern for pattern in snapshot.config.shell.volatile if pattern.endswith("/**")]
    for path in link.tests.generated if link.tests else ():
        left_out += [path, f"{path}/**"]
    files = without_ignored(snapshot.files, link.folder, link.tree, left_out)
    return repository.take_from(files, link.folder, Since(link.commit, link.tree))


def _branch_phase_story(before: Snapshot, after: Snapshot) -> str:
    """Describe a phase by its completed todos, from the page archived when the next phase began."""
    phase = before.state.phase
    page = yaml.safe_load(after.read_text(f"archive/phase_{phase.number:03d}.yaml") or "{}")
    completed = [todo for todo in page.get("todos") or [] if todo.get("status") == "completed"]
    lines = [
        f"- {as_sentence(todo['content'])} {one_line(todo.get('notes') or '', MOST_NOTES)}".rstrip()
        for todo in completed[:MOST_TODOS]
    ]
    return "\n\n".join(filter(None, [as_sentence(phase.name), "\n".join(lines)]))


def completed_branch_story(snapshot: Snapshot, call: int | None) -> str:
    """Return the text of the commit that closes a job; its notes are for people, and no part."""
    if call is None:
        return ""
    arguments = REGISTRY["job_complete"].parse(snapshot.tool_call(call)["function"]["arguments"])
    return str(arguments["summary"]).strip()


def unfinished_branch_story(job: str, words: Sequence[str]) -> str:
    return "\n\n".join([f"Unfinished work of {job}", *filter(None, words)])
