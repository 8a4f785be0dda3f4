"""Work trees as people have them: what git knows already, what is cut off, what is under way."""

from collections.abc import Callable
from pathlib import Path

import pytest

from activities.checkpoints import Root
from activities.checkpoints.remote_files import store_remote_folder
from activities.projects.project_repository import ProjectRepository, project_repository_path
from activities.source_repository.repository_fetch import fetch_pinned_repository
from activities.source_repository.staged_folder import (
    carried_staged_folder,
    fetch_staged_folder,
    stage_folder,
)
from config.schema.agent import ConfigError
from protocol.repository_link import RepositoryOrigin
from protocol.repository_start import RepositoryStart
from tests.activities.source_repository.origins import BOUNDS, WorkTree, git


def bring(root: Root, **start: str) -> tuple[ProjectRepository, RepositoryOrigin]:
    if "folder" in start:
        start["folder"] = stage_folder(Path(start["folder"]), root.staged, BOUNDS)
    origin = fetch_pinned_repository(root, "job", RepositoryStart.model_validate(start), BOUNDS)
    return ProjectRepository(project_repository_path(root, "job")), origin


def three_commits(path: Path) -> WorkTree:
    tree = WorkTree.create(path, a_txt="line 1\n")
    for number in (2, 3):
        tree.commit(f"commit {number}", {"a.txt": f"line {number}\n"})
    return tree


def added(tree: WorkTree) -> None:
    tree.write({"new.txt": "new\n"})
    tree.git("add", "new.txt")


def added_and_more(tree: WorkTree) -> None:
    added(tree)
    tree.write({"more.txt": "more\n"})


def soft(tree: WorkTree) -> None:
    tree.git("reset", "-q", "--soft", "HEAD~1")


def stashed(tree: WorkTree) -> None:
    tree.write({"a.txt": "at work\n"})
    tree.git("stash", "-q")
    tree.git("stash", "apply", "-q")


def branched(tree: WorkTree) -> None:
    tree.git("checkout", "-q", "-b", "other")
    tree.commit("other", {"o.txt": "other\n"})
    tree.git("checkout", "-q", "trunk")
    tree.git("checkout", "-q", "other", "--", "o.txt")
    tree.git("reset", "-q")


def split_index(tree: WorkTree) -> None:
    added(tree)
    tree.git("update-index", "--split-index")


def known_in_packs(tree: WorkTree) -> None:
    branched(tree)
    tree.git("gc", "-q")


def in_another_folder(tree: WorkTree) -> None:
    """A folder where a file was, and a file where a folder was."""
    tree.commit("folder", {"b/c.txt": "c\n"})
    (tree.path / "a.txt").unlink()
    (tree.path / "b" / "c.txt").unlink()
    (tree.path / "b").rmdir()
    tree.write({"a.txt/x": "x\n", "b": "b\n"})


def odd_names(tree: WorkTree) -> None:
    tree.write({"-n": "x\n", "with space\tand tab": "x\n", "umläut": "x\n", 'q"uote': "x\n"})
    (tree.path.absolute() / "li\nne").write_text("x\n")


def files_of(tree: WorkTree) -> dict[str, str]:
    return {
        str(path.relative_to(tree.path)): path.read_text()
        for path in tree.path.rglob("*")
        if path.is_file() and ".git" not in path.relative_to(tree.path).parts
    }


def files_at(repository: ProjectRepository, commit: str) -> dict[str, str]:
    names = git(repository.path, "ls-tree", "-r", "-z", "--name-only", commit).split("\0")
    return {name: (repository.read_file(commit, name) or b"").decode() for name in names if name}


CHANGES = [
    added, added_and_more, soft, stashed, branched, split_index, known_in_packs, in_another_folder,
    odd_names,
]  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_a_work_tree_comes_along_as_it_is(
    change: Callable[[WorkTree], None], root: Root, tmp_path: Path
) -> None:
    tree = three_commits(tmp_path / "tea")
    change(tree)
    status = tree.git("status", "--porcelain")
    repository, origin = bring(root, folder=str(tree.path))
    assert files_at(repository, origin.commit) == files_of(tree)
    git(repository.path, "fsck", "--strict", "--full")
    assert str(repository.get_commit(origin.commit).parent_ids[0]) == tree.head
    assert tree.git("status", "--porcelain") == status


def conflict(tree: WorkTree, command: str) -> None:
    tree.git("checkout", "-q", "-b", "other", "HEAD~1")
    tree.commit("theirs", {"a.txt": "theirs\n", "their.txt": "x\n"})
    tree.git("checkout", "-q", "trunk")
    with pytest.raises(AssertionError):
        tree.git(command, "other")


@pytest.mark.parametrize(
    ("command", "what"),
    [("merge", "a merge"), ("rebase", "a rebase"), ("cherry-pick", "a cherry-pick")],
)
def test_what_is_under_way_comes_along_with_its_marks(
    command: str, what: str, root: Root, tmp_path: Path
) -> None:
    tree = three_commits(tmp_path / "tea")
    conflict(tree, command)
    repository, origin = bring(root, folder=str(tree.path))
    assert files_at(repository, origin.commit) == files_of(tree)
    assert "<<<<<<<" in files_of(tree)["a.txt"]
    assert repository.get_commit(origin.commit).message.endswith(f"amid {what}\n")


@pytest.mark.parametrize("way", ["folder", "url"])
@pytest.mark.parametrize("change", [False, True])
def test_a_shallow_clone_starts_with_the_history_that_it_has(
    change: bool, way: str, root: Root, tmp_path: Path
) -> None:
    tree = three_commits(tmp_path / "tea")
    git(tmp_path, "clone", "-q", "--depth=1", tree.url, "clone")
    clone = WorkTree(tmp_path / "clone")
    if change:
        added(clone)
        if way == "url":
            clone.git("commit", "-q", "-m", "new")
    repository, origin = bring(root, **{way: clone.url if way == "url" else str(clone.path)})
    assert files_at(repository, origin.commit) == files_of(clone)
    assert origin.notes == [
        "Its history is not whole there: it begins at the oldest commit it has."
    ]
    assert git(repository.path, "rev-list", "--count", origin.commit).strip() == str(1 + change)


def test_a_shallow_folder_goes_to_other_hosts(root: Root, tmp_path: Path) -> None:
    tree = three_commits(tmp_path / "tea")
    git(tmp_path, "clone", "-q", "--depth=1", tree.url, "clone")
    git(tmp_path, "init", "-q", "--bare", "remote.git")
    added(WorkTree(tmp_path / "clone"))
    name = stage_folder(tmp_path / "clone", root.staged, BOUNDS).partition(":")[2].split("/")[0]
    remote = f"file://{tmp_path}/remote.git"
    store_remote_folder(remote, root.staged / name, carried_staged_folder(root.staged / name))
    other = Root.open(tmp_path / "other", create=True)
    assert fetch_staged_folder(name, other.staged, remote)
    start = RepositoryStart(folder=f"staged:{name}/clone")
    origin = fetch_pinned_repository(other, "job", start, BOUNDS)
    repository = ProjectRepository(project_repository_path(other, "job"))
    assert files_at(repository, origin.commit) == {"a.txt": "line 3\n", "new.txt": "new\n"}


@pytest.mark.parametrize("way", ["folder", "url"])
def test_a_partial_clone_starts_with_what_it_has(way: str, root: Root, tmp_path: Path) -> None:
    tree = three_commits(tmp_path / "tea")
    tree.git("config", "uploadpack.allowFilter", "true")
    git(tmp_path, "clone", "-q", "--filter=blob:none", tree.url, "clone")
    clone = WorkTree(tmp_path / "clone")
    if way == "folder":
        clone.write({"new.txt": "new\n"})
    repository, origin = bring(root, **{way: clone.url if way == "url" else str(clone.path)})
    assert files_at(repository, origin.commit) == files_of(clone)
    assert "history is not whole" in origin.notes[0]


def test_a_partial_clone_without_its_own_files_says_what_to_do(root: Root, tmp_path: Path) -> None:
    tree = three_commits(tmp_path / "tea")
    tree.git("config", "uploadpack.allowFilter", "true")
    git(tmp_path, "clone", "-q", "--no-checkout", "--filter=blob:none", tree.url, "clone")
    git(tmp_path / "clone", "read-tree", "HEAD")
    git(tmp_path / "clone", "update-index", "--skip-worktree", "a.txt")
    with pytest.raises(ConfigError, match=r"partial clone.*refetch"):
        bring(root, folder=str(tmp_path / "clone"))


def missing_branch(tree: WorkTree) -> None:
    tree.git("symbolic-ref", "HEAD", "refs/heads/nowhere")


def empty(tree: WorkTree) -> None:
    tree.git("update-ref", "-d", "HEAD")


@pytest.mark.parametrize(
    ("change", "way", "why"),
    [
        (
            missing_branch,
            "folder",
            "the branch nowhere, which does not exist; it has trunk",
        ),
        (missing_branch, "url", r"names no branch that exists; name one with .*: it has trunk"),
        (empty, "url", "it is empty; commit something first"),
    ],
)
def test_a_repository_without_a_commit_says_what_there_is(
    change: Callable[[WorkTree], None], way: str, why: str, root: Root, tmp_path: Path
) -> None:
    tree = three_commits(tmp_path / "tea")
    change(tree)
    with pytest.raises(ConfigError, match=why):
        bring(root, **{way: tree.url if way == "url" else str(tree.path)})


def test_files_of_which_nothing_is_committed_start(root: Root, tmp_path: Path) -> None:
    tree = three_commits(tmp_path / "tea")
    empty(tree)
    repository, origin = bring(root, folder=str(tree.path))
    assert files_at(repository, origin.commit) == files_of(tree)


def test_a_linked_work_tree_starts_from_its_own_commit(root: Root, tmp_path: Path) -> None:
    tree = three_commits(tmp_path / "tea")
    tree.git("worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    side = WorkTree(tmp_path / "side")
    side.commit("side", {"side.txt": "x\n"})
    added(side)
    repository, origin = bring(root, folder=str(side.path))
    assert files_at(repository, origin.commit) == files_of(side)
    assert str(repository.get_commit(origin.commit).parent_ids[0]) == side.head


def test_a_submodule_starts_on_its_own(root: Root, tmp_path: Path) -> None:
    tree, cup = WorkTree.create(tmp_path / "tea"), three_commits(tmp_path / "cup")
    tree.git("submodule", "--quiet", "add", cup.url, "vendor/cup")
    assert bring(root, folder=str(tree.path / "vendor" / "cup"))[1].commit == cup.head


def test_filters_that_are_not_run_are_told(root: Root, tmp_path: Path) -> None:
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 1\n"
    tree = WorkTree.create(tmp_path / "tea", tea_bin=pointer)
    tree.commit("attributes", {".gitattributes": "*.bin filter=lfs\n*.key filter=crypt\n"})
    tree.git("config", "filter.lfs.required", "true")
    tree.git("config", "filter.lfs.clean", "git-lfs clean -- %f")
    tree.write({"new.txt": "x\n"})
    repository, origin = bring(root, folder=str(tree.path))
    assert files_at(repository, origin.commit)["tea.bin"] == pointer
    assert origin.notes == [
        "Git LFS is not followed, these files are pointers only, on which tests may fail (a clone "
        "with their content can be given as a folder): tea.bin.",
        "No filter of .gitattributes is run, files are as committed: crypt.",
    ]


def test_a_damaged_commit_is_told_and_its_history_not_dropped(root: Root, tmp_path: Path) -> None:
    tree = three_commits(tmp_path / "tea")
    head = tree.head
    (tree.path / ".git" / "objects" / head[:2] / head[2:]).unlink()
    with pytest.raises(ConfigError, match="is missing or damaged; `git fsck` says more"):
        bring(root, folder=str(tree.path))
