"""A branch as files: a patch for `git am`, and a bundle for `git clone`."""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from activities.checkpoints.git import run_git
from activities.job.snapshot import Snapshot
from activities.projects.project_repository import EMAIL, ProjectRepository
from protocol.publishing import BranchResult
from protocol.repository_link import RepositoryLink

PATCH, BUNDLE = "output/changes.patch", "output/branch.bundle"


def with_branch_files(
    repository: ProjectRepository, snapshot: Snapshot, result: BranchResult
) -> BranchResult:
    written = []
    text = make_branch_patch(repository, result.base, result.commit)
    assert snapshot.repository is not None
    excluded = _commits_outside_branch(repository, snapshot.repository)
    with TemporaryDirectory() as place:
        bundle = _make_branch_bundle(repository, Path(place), result.branch, excluded)
        for path, data in ((PATCH, text), (BUNDLE, bundle)):
            if len(data) <= snapshot.files.limit:
                snapshot.write_system_file(path, data)
                written.append(path)
    return result.model_copy(update={"files": written})


def _commits_outside_branch(repository: ProjectRepository, link: RepositoryLink) -> list[str]:
    """Return the commits that people have already, so that a bundle may leave them out.

    The commit of a plain folder, or of uncommitted changes, was made for the job: it is nowhere
    else, and a bundle that requires it could not be used.
    """
    base = repository.get_commit(link.commit)
    if link.origin.start.folder and base.author.email == EMAIL:
        return [str(parent) for parent in base.parent_ids]
    return [link.commit]


def _make_branch_bundle(
    repository: ProjectRepository, place: Path, branch: str, excluded: Sequence[str]
) -> bytes:
    """Return a bundle of a branch. Its HEAD is that branch, so that `git clone` checks it out."""
    head, bundle = place / "head", place / "bundle"
    head.mkdir()
    # Like the folder of a linked work tree: its own HEAD, and all else of the repository.
    (head / "HEAD").write_text(f"ref: refs/heads/{branch}\n")
    (head / "commondir").write_text(f"{repository.path.absolute()}\n")
    run_git(
        head,
        # With one thread the same objects give the same bytes.
        *("-c", "pack.threads=1"),
        *("bundle", "create", "--quiet", str(bundle)),
        *(f"^{commit}" for commit in excluded),
        *("HEAD", f"refs/heads/{branch}"),
    )
    return bundle.read_bytes()


def make_branch_patch(repository: ProjectRepository, base: str, commit: str) -> bytes:
    with TemporaryDirectory() as place:
        form = ["--binary", "--full-index", "--no-signature", "--quiet"]
        commits = f"{base}..{commit}"
        run_git(repository.path, "format-patch", *form, "-o", place, commits)
        # Sort by number: git pads it to four digits only.
        patches = sorted(Path(place).iterdir(), key=lambda path: int(path.name.partition("-")[0]))
        return b"".join(path.read_bytes() for path in patches)
