"""What a job did, as commits upon the one that it began from."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import yaml

from activities.checkpoints import CheckpointMissing, Root, folder_name
from activities.checkpoints.git import run_git
from activities.job.snapshot import Snapshot
from activities.projects.ignored import without_ignored
from activities.projects.repository import ProjectRepository, Since, repository_path
from activities.repository.bounds import Bounds
from activities.repository.fetched import bring_repository
from protocol.repository import BranchResult, RepositoryLink
from protocol.text import as_sentence, commit_message, one_line

PATCH, BUNDLE = "output/changes.patch", "output/branch.bundle"
PLAIN = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull}
"""Nobody's settings change the form of a patch."""
MOST_TODOS = 30
"""That a commit's message names."""
MOST_NOTES = 300
"""Characters of the notes on each."""


@dataclass(frozen=True)
class _Stage:
    """The repository's files at the end of a phase, and what the phase did."""

    tree: str
    story: str
    timestamp: int


def commit_work(
    root: Root, snapshot: Snapshot, job: str, starts: Sequence[str], story: str
) -> BranchResult:
    """Put a job's work on its branch: a commit for each phase that changed something.

    A function of its arguments: done again, it gives the same commits.

    Args:
        root: Where the git repository is.
        snapshot: The job's end.
        job: Its id.
        starts: Start checkpoints of its phases, in order.
        story: What the job says of its work, for the last commit.

    Raises:
        CheckpointMissing: the repository is not on this root and cannot be fetched again.
        Problem, ApplicationError: the same.
    """
    link = snapshot.repository
    assert link is not None
    repository = open_repository(root, snapshot, link)
    branch = link.publish.branch if link.publish else f"longhaul/{folder_name(job)}"
    result = BranchResult(base=link.commit, branch=branch)
    base = repository.tree_id(link.commit)
    trees, stages = [base], list[_Stage]()
    for stage in _stages(repository, snapshot, link, starts, story):
        if stage.tree in trees:
            # Taken back, or nothing new: what led away from it is no part of the story.
            place = trees.index(stage.tree)
            trees, stages = trees[: place + 1], stages[:place]
            continue
        trees.append(stage.tree)
        stages.append(stage)
    if not stages:
        return result
    tip = link.commit
    for number, stage in enumerate(stages, 1):
        text = story if number == len(stages) else stage.story
        message = commit_message(text or f"Work of {job}", {"Job": job})
        tip = repository.commit(stage.tree, [tip], message, stage.timestamp)
    repository.set_branch(branch, tip)
    return result.model_copy(update={"commit": tip})


def changes_nothing(root: Root, snapshot: Snapshot, link: RepositoryLink) -> bool:
    """Whether the repository's files equal those at the start, so that there is no branch.

    Raises:
        CheckpointMissing, Problem, ApplicationError: as for `open_repository`.
    """
    repository = open_repository(root, snapshot, link)
    return product_tree(repository, snapshot, link) == repository.tree_id(link.commit)


def open_repository(root: Root, snapshot: Snapshot, link: RepositoryLink) -> ProjectRepository:
    """The git repository of a job; fetched again where a lost host has taken it along."""
    try:
        return ProjectRepository(repository_path(root, link.owner))
    except CheckpointMissing:
        start = link.origin.start
        if start.url:
            again = start.model_copy(update={"ref": link.commit, "depth": None})
            bring_repository(root, link.owner, again, Bounds.of_agents(snapshot.config))
        return ProjectRepository(repository_path(root, link.owner))


def _stages(
    repository: ProjectRepository,
    snapshot: Snapshot,
    link: RepositoryLink,
    starts: Sequence[str],
    story: str,
) -> list[_Stage]:
    stages: list[_Stage] = []
    before: Snapshot | None = None
    timestamp = repository.get_commit(link.commit).commit_time
    for commit in starts:
        try:
            start = Snapshot.load(snapshot.checkpoints, commit)
            [entry] = snapshot.checkpoints.log(commit, 1)
        except CheckpointMissing:
            continue
        if before is not None:
            text = _phase_story(before, start)
            stages.append(_Stage(product_tree(repository, start, link), text, entry.timestamp))
        before, timestamp = start, entry.timestamp
    # Of the last phase its beginning: what people say to a job whose branch was pushed and that has
    # not ended yet makes no other commit of the same work.
    return [*stages, _Stage(product_tree(repository, snapshot, link), story, timestamp)]


def product_tree(repository: ProjectRepository, snapshot: Snapshot, link: RepositoryLink) -> str:
    """The repository's files at a checkpoint, as git's own tree."""
    caches = [pattern for pattern in snapshot.config.shell.volatile if pattern.endswith("/**")]
    files = without_ignored(snapshot.files, link.folder, link.tree, caches)
    return repository.take_from(files, link.folder, Since(link.commit, link.tree))


def _phase_story(before: Snapshot, after: Snapshot) -> str:
    """What a phase did, by its list: as it was archived when the next one began."""
    phase = before.state.phase
    page = yaml.safe_load(after.read_text(f"archive/phase_{phase.number:03d}.yaml") or "{}")
    done = [todo for todo in page.get("todos") or [] if todo.get("status") == "completed"]
    lines = [
        f"- {as_sentence(todo['content'])} {one_line(todo.get('notes') or '', MOST_NOTES)}".rstrip()
        for todo in done[:MOST_TODOS]
    ]
    return "\n\n".join(filter(None, [as_sentence(phase.name), "\n".join(lines)]))


def with_files(
    repository: ProjectRepository, snapshot: Snapshot, result: BranchResult
) -> BranchResult:
    """Put the branch into the workspace as a patch and a bundle; gives what holds it.

    Raises:
        GitNotInstalled, RemoteUnavailable: there is no git program, or it failed.
        OSError.
    """
    written = []
    text = make_patch(repository, result.base, result.commit)
    with TemporaryDirectory() as place:
        bundle = Path(place, "bundle")
        ref = f"refs/heads/{result.branch}"
        # With one thread the same objects give the same bytes.
        single = ("-c", "pack.threads=1")
        run_git(
            repository.path,
            *single,
            "bundle",
            "create",
            "--quiet",
            str(bundle),
            f"^{result.base}",
            ref,
        )
        for path, data in ((PATCH, text), (BUNDLE, bundle.read_bytes())):
            if len(data) <= snapshot.files.limit:
                snapshot.write_system_file(path, data)
                written.append(path)
    return result.model_copy(update={"files": written})


def make_patch(repository: ProjectRepository, base: str, commit: str) -> bytes:
    """The commits from one to another as `git am` takes them. Raises GitNotInstalled,
    RemoteUnavailable."""
    with TemporaryDirectory() as place:
        form = ["--binary", "--full-index", "--no-signature", "--quiet"]
        commits = f"{base}..{commit}"
        run_git(repository.path, "format-patch", *form, "-o", place, commits, variables=PLAIN)
        # By number, and git pads it to four digits only.
        patches = sorted(Path(place).iterdir(), key=lambda path: int(path.name.partition("-")[0]))
        return b"".join(path.read_bytes() for path in patches)
