"""A folder as the start: what `.gitignore` names stays behind, and history comes along."""

import os
from pathlib import Path

import pytest

from activities.checkpoints import Root
from activities.projects.project_repository import ProjectRepository, project_repository_path
from activities.source_repository.repository_fetch import fetch_pinned_repository
from activities.source_repository.staged_folder import stage_folder
from config.schema.agent import ConfigError
from protocol.repository_start import RepositoryStart
from tests.activities.source_repository.origins import BOUNDS, WorkTree, git


def bring_folder(root: Root, folder: Path) -> tuple[ProjectRepository, str]:
    start = RepositoryStart(folder=stage_folder(folder, root.staged, BOUNDS))
    origin = fetch_pinned_repository(root, "job", start, BOUNDS)
    return ProjectRepository(project_repository_path(root, "job")), origin.commit


def paths(repository: ProjectRepository, commit: str) -> list[str]:
    return git(repository.path, "ls-tree", "-r", "--name-only", commit).split()


def test_ignored_files_are_left_out_and_nothing_is_written_into_the_folder(
    root: Root, tmp_path: Path
) -> None:
    folder = tmp_path / "tea"
    (folder / "build").mkdir(parents=True)
    (folder / "cups" / "big").mkdir(parents=True)
    (folder / ".gitignore").write_text("build/\n*.log\n!kept.log\n")
    (folder / "cups" / ".gitignore").write_text("big/\n")
    for name in ("a.log", "kept.log", "build/x", "cups/big/y", "cups/small"):
        (folder / name).write_text("x")
    (folder / "run.sh").write_text("#!/bin/sh\n")
    (folder / "run.sh").chmod(0o755)
    os.symlink("./run.sh", folder / "link")  # noqa: PTH211 - a Path would fold it
    repository, commit = bring_folder(root, folder)
    assert paths(repository, commit) == [
        ".gitignore", "cups/.gitignore", "cups/small", "kept.log", "link", "run.sh"
    ]  # fmt: skip
    tree = repository.get_commit(commit).tree
    assert repository.read_file(commit, "link") == b"./run.sh"
    assert [oct(tree[name].filemode) for name in ("link", "run.sh")] == ["0o120000", "0o100755"]
    assert not (folder / ".git").exists()


def test_a_clean_work_tree_starts_from_its_own_commit(root: Root, tmp_path: Path) -> None:
    tree = WorkTree.create(tmp_path / "tea")
    repository, commit = bring_folder(root, tree.path)
    assert commit == tree.head
    assert paths(repository, commit) == ["tea.py"]


def test_uncommitted_changes_are_a_commit_upon_it(root: Root, tmp_path: Path) -> None:
    tree = WorkTree.create(tmp_path / "tea", _gitignore="*.log\n", tea_py="x = 1\n")
    tree.git("add", "-f", "--intent-to-add", ".gitignore")
    tree.write({"tea.py": "x = 2\n", "new.py": "y = 1\n", "no.log": "x"})
    repository, commit = bring_folder(root, tree.path)
    [parent] = repository.get_commit(commit).parent_ids
    assert str(parent) == tree.head
    assert repository.changed_paths(tree.head, commit) == ["new.py", "tea.py"]


def test_an_edit_in_the_moment_of_the_commit_comes_along(root: Root, tmp_path: Path) -> None:
    tree = WorkTree.create(tmp_path / "tea")
    # Else the file's time of change would show the edit, unless both came within a second.
    tree.git("config", "core.trustctime", "false")
    moment = 1_700_000_000
    tree.write({"tea.py": "x = 1\n"})
    os.utime(tree.path / "tea.py", (moment, moment))
    tree.git("commit", "-q", "-a", "-m", "Two")
    tree.write({"tea.py": "x = 2\n"})
    for name in ("tea.py", ".git/index"):
        os.utime(tree.path / name, (moment, moment))
    repository, commit = bring_folder(root, tree.path)
    assert repository.changed_paths(tree.head, commit) == ["tea.py"]


def test_an_ignored_file_that_is_tracked_comes_along(root: Root, tmp_path: Path) -> None:
    tree = WorkTree.create(tmp_path / "tea", _gitignore="*.log\nout/\n")
    tree.write({"kept.log": "x", "out/kept": "x", "out/left": "x"})
    tree.git("add", "-f", "kept.log", "out/kept")
    tree.git("commit", "-q", "-m", "Two")
    repository, commit = bring_folder(root, tree.path)
    assert paths(repository, commit) == [".gitignore", "kept.log", "out/kept"]


def test_the_same_folder_is_staged_once(root: Root, tmp_path: Path) -> None:
    (tmp_path / "tea").mkdir()
    (tmp_path / "tea" / "a").write_text("a")
    names = {stage_folder(tmp_path / "tea", root.staged, BOUNDS) for _ in range(2)}
    assert len(names) == 1
    assert len(list(root.staged.iterdir())) == 1


def test_a_folder_of_nothing_and_none_are_refused(root: Root, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError, match=r"there is no file in it, or \.gitignore names"):
        stage_folder(tmp_path / "empty", root.staged, BOUNDS)
    with pytest.raises(ConfigError, match="there is no such folder"):
        stage_folder(tmp_path / "none", root.staged, BOUNDS)
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="it is a file, and no folder"):
        stage_folder(tmp_path / "file", root.staged, BOUNDS)
    git(tmp_path, "init", "-q", "--bare", "bare")
    with pytest.raises(ConfigError, match=r"it is a bare repository; .* --repository file:///"):
        stage_folder(tmp_path / "bare", root.staged, BOUNDS)
    assert not list(root.staged.iterdir())


def test_what_is_no_staged_folder_is_refused(root: Root) -> None:
    for name, why in (
        ("staged:../../checkpoints", "not a staged folder"),
        (f"staged:repository-{'1' * 40}.git/tea", "not below the worker's workspaces root"),
        ("tea", "expected an absolute path"),
    ):
        with pytest.raises(ConfigError, match=why):
            fetch_pinned_repository(root, "job", RepositoryStart(folder=name), BOUNDS)


def test_a_folder_within_a_work_tree_heeds_what_is_ignored_above_it(
    root: Root, tmp_path: Path
) -> None:
    tree = WorkTree.create(tmp_path / "tea", _gitignore="*.log\n")
    tree.write({"cups/a": "a", "cups/b.log": "b"})
    repository, commit = bring_folder(root, tree.path / "cups")
    assert paths(repository, commit) == ["a"]


def test_what_git_would_not_call_changed_is_not(root: Root, tmp_path: Path) -> None:
    tree = WorkTree.create(tmp_path / "tea", _gitattributes="*.txt text eol=crlf\n", a_txt="a\n")
    (tree.path / "a.txt").unlink()
    tree.git("checkout", "--", "a.txt")
    assert (tree.path / "a.txt").read_bytes() == b"a\r\n"
    assert bring_folder(root, tree.path)[1] == tree.head


def test_a_submodule_stays_the_commit_that_it_is(root: Root, tmp_path: Path) -> None:
    tree, cup = WorkTree.create(tmp_path / "tea"), WorkTree.create(tmp_path / "cup")
    tree.git("submodule", "--quiet", "add", cup.url, "vendor/cup")
    tree.git("commit", "-q", "-m", "Two")
    tree.write({"new.py": "x\n"})
    repository, commit = bring_folder(root, tree.path)
    listed = git(repository.path, "ls-tree", "-r", commit).splitlines()
    assert [line.split()[0] for line in listed if line.endswith("vendor/cup")] == ["160000"]
    assert repository.changed_paths(tree.head, commit) == ["new.py"]
    # The work tree and its index are unchanged.
    assert tree.git("status", "--porcelain") == "?? new.py\n"


def test_a_large_new_file_is_refused_before_it_is_read(root: Root, tmp_path: Path) -> None:
    tree = WorkTree.create(tmp_path / "tea")
    with (tree.path / "large.bin").open("wb") as large:
        large.truncate(10**12)
    with pytest.raises(ConfigError, match=r"large\.bin has 1,000,000,000,000 bytes"):
        stage_folder(tree.path, root.staged, BOUNDS)


def test_a_repository_within_a_plain_folder_is_named_as_a_submodule(
    root: Root, tmp_path: Path
) -> None:
    plain = tmp_path / "plain"
    cup = WorkTree.create(plain / "cup")
    (plain / "new").mkdir()
    (plain / "new" / "a.txt").write_text("a")
    git(plain / "new", "init", "-q")
    (plain / "tea.md").write_text("tea")
    repository, commit = bring_folder(root, plain)
    listed = git(repository.path, "ls-tree", "-r", commit).splitlines()
    assert [line.split()[3] for line in listed] == ["cup", "tea.md"]
    assert listed[0].split()[:3] == ["160000", "commit", cup.head]
    assert repository.origin is not None
    assert repository.origin.notes == [
        "Submodules are not fetched, their folders are missing: cup."
    ]


def test_a_pattern_takes_back_one_of_another_folder(root: Root, tmp_path: Path) -> None:
    for path, text in {
        ".gitignore": "*.log\nbuild/\n",
        "sub/.gitignore": "!keep.log\n",
        "sub/keep.log": "x",
        "sub/other.log": "x",
        "tools/.gitignore": "!build/\n",
        "tools/build/tool": "x",
        "build/out": "x",
        "caf\udce9.md": "a name that is not UTF-8",
    }.items():
        (tmp_path / "plain" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "plain" / path).write_text(text)
    repository, commit = bring_folder(root, tmp_path / "plain")
    listed = git(repository.path, "ls-tree", "-r", "--name-only", commit).splitlines()
    assert listed == [
        ".gitignore",
        '"caf\\351.md"',
        "sub/.gitignore",
        "sub/keep.log",
        "tools/.gitignore",
        "tools/build/tool",
    ]
