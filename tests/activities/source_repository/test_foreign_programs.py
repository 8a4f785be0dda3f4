"""No program that a folder names is run, whichever way a job or project comes to it."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from temporalio.exceptions import ApplicationError

from activities.checkpoints import Root
from activities.checkpoints.git_remote import GitRemote
from activities.projects.project_repository import ProjectRepository, project_repository_path
from activities.source_repository.branch_push import push_branch
from activities.source_repository.repository_fetch import fetch_pinned_repository
from activities.source_repository.staged_folder import stage_folder
from config.schema.agent import ConfigError
from protocol.publishing import Publish
from protocol.repository_start import RepositoryStart
from tests.activities.source_repository.origins import BOUNDS, WorkTree, bare_clone

HOOKS = (
    "post-index-change", "pre-commit", "post-checkout", "post-merge", "pre-auto-gc", "post-receive",
    "post-update", "push-to-checkout", "fsmonitor-watchman", "query-watchman",
)  # fmt: skip
"""Hooks that decide nothing about a push."""


def program(tree: WorkTree) -> str:
    """Return a program that leaves a mark where the test looks for it."""
    script = tree.path.parent / "ran.sh"
    script.write_text(f'#!/bin/sh\ntouch "{tree.path.parent}/ran-$(basename "$0")"\ncat\n')
    script.chmod(0o755)
    return str(script)


def put_hooks(folder: Path, tree: WorkTree, *names: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names or HOOKS:
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(program(tree))


def set_up(**settings: str) -> Callable[[WorkTree], None]:
    def apply(tree: WorkTree) -> None:
        for name, value in settings.items():
            text = value.replace("PROGRAM", program(tree))
            tree.git("config", name.replace("__", ".").replace("_", ""), text)
        tree.write({".gitattributes": "* filter=evil diff=evil merge=evil\n"})

    return apply


def hooks_path(tree: WorkTree) -> None:
    put_hooks(tree.path / "h", tree)
    tree.git("config", "core.hooksPath", str(tree.path / "h"))


def include(tree: WorkTree) -> None:
    other = tree.path / "more.config"
    other.write_text(f"[core]\n\tfsmonitor = {program(tree)}\n\thooksPath = {tree.path}/h\n")
    put_hooks(tree.path / "h", tree)
    tree.git("config", "include.path", "../more.config")
    tree.git("config", f"includeIf.gitdir:{tree.path}/.path", "../more.config")


def submodule(tree: WorkTree) -> None:
    """A repository within, which git itself would look into for changes."""
    inner = WorkTree.create(tree.path / "inner")
    tree.write({".gitmodules": '[submodule "i"]\n\tpath = inner\n\turl = x\n\tignore = none\n'})
    tree.git("add", "inner", ".gitmodules")
    tree.git("commit", "-q", "-m", "Two")
    inner.git("config", "core.fsmonitor", program(tree))
    inner.write({"new.py": "x"})
    (inner.path / "tea.py").write_text("changed\n")


def environment_of_alternates(tree: WorkTree) -> None:
    tree.git("config", "core.alternateRefsCommand", program(tree))


ATTACKS: dict[str, Callable[[WorkTree], None]] = {
    "fsmonitor": set_up(core__fsmonitor="PROGRAM"),
    "hooks": lambda tree: put_hooks(tree.path / ".git" / "hooks", tree),
    "hooks path": hooks_path,
    "clean filter": set_up(filter__evil__clean="PROGRAM", filter__evil__required="true"),
    "process filter": set_up(filter__evil__process="PROGRAM"),
    "smudge filter": set_up(filter__evil__smudge="PROGRAM"),
    "textconv": set_up(diff__evil__textconv="PROGRAM", diff__external="PROGRAM"),
    "diff command": set_up(diff__evil__command="PROGRAM", merge__evil__driver="PROGRAM"),
    "include": include,
    "credential helper": set_up(credential__helper="!PROGRAM", core__askPass="PROGRAM"),
    "ssh command": set_up(core__sshCommand="PROGRAM", core__gitProxy="PROGRAM"),
    "pager and editor": set_up(core__pager="PROGRAM", core__editor="PROGRAM"),
    "signing": set_up(gpg__program="PROGRAM", commit__gpgSign="true", push__gpgSign="true"),
    "remote programs": set_up(
        remote__origin__url="ext::PROGRAM", remote__origin__uploadpack="PROGRAM"
    ),
    "promisor": set_up(
        core__repositoryFormatVersion="1",
        extensions__partialClone="origin",
        remote__origin__promisor="true",
        remote__origin__url="ssh://x/y",
        core__sshCommand="PROGRAM",
    ),
    "pack hook": set_up(uploadpack__packObjectsHook="PROGRAM"),
    "work tree elsewhere": set_up(core__worktree="/"),
    "alternates command": environment_of_alternates,
    "submodule": submodule,
}
WAYS = ("folder", "subfolder", "url", "publish", "publish bare", "remote")


class Attack(NamedTuple):
    name: str
    tree: WorkTree


def attacked(tree: WorkTree, attack: str) -> None:
    ATTACKS[attack](tree)
    tree.write({"tea.py": "def brew():\n    return 'oolong'\n", "new/x.py": "x = 1\n"})


def go(way: str, tree: WorkTree, root: Root, tmp_path: Path) -> None:
    """Use the folder in one way; a refusal is as good as work without its programs."""
    if way in ("folder", "subfolder"):
        folder = tree.path if way == "folder" else tree.path / "new"
        start = RepositoryStart(folder=stage_folder(folder, root.staged, BOUNDS))
        fetch_pinned_repository(root, "job", start, BOUNDS)
        return
    if way == "url":
        fetch_pinned_repository(root, "job", RepositoryStart(url=tree.url), BOUNDS)
        return
    mine = WorkTree.create(tmp_path / "mine")
    fetch_pinned_repository(root, "other", RepositoryStart(url=mine.url), BOUNDS)
    repository = ProjectRepository(project_repository_path(root, "other"))
    url = tree.url
    if way == "publish bare":
        (tree.path / ".git").rename(tmp_path / "bare.git")
        url = f"file://{tmp_path}/bare.git"
    if way == "remote":
        GitRemote(url).push_refs("jobs/other", repository.path, None, {"a": mine.head}, {})
        GitRemote(url).list_refs("jobs/other", "a")
        return
    push_branch(repository, Publish(remote=url, branch="longhaul"), mine.head)


@pytest.fixture(scope="module", params=ATTACKS)
def attack(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Attack:
    """Make the folder of an attack, and a copy of it for each way to use it."""
    tree = WorkTree.create(tmp_path_factory.mktemp("attack") / "tea")
    attacked(tree, request.param)
    shutil.copytree(tree.path, tree.path.with_name("made"), symlinks=True)
    return Attack(request.param, tree)


@pytest.mark.parametrize("way", WAYS)
def test_no_program_of_a_folder_is_run(
    attack: Attack, way: str, root: Root, tmp_path: Path
) -> None:
    tree = attack.tree
    shutil.rmtree(tree.path, ignore_errors=True)
    shutil.copytree(tree.path.with_name("made"), tree.path, symlinks=True)
    for mark in tree.path.parent.glob("ran-*"):
        mark.unlink()  # left by the test's own use of git
    try:
        go(way, tree, root, tmp_path)
    except ApplicationError as refusal:
        assert refusal.type == "PublishRefused"
        assert attack.name in ("include", "promisor", "alternates command"), refusal
        assert way.startswith("publish"), refusal
    assert [mark.name for mark in tree.path.parent.glob("ran-*")] == []


@pytest.mark.parametrize("hook", ["pre-receive", "update", "reference-transaction"])
def test_a_push_that_a_program_of_the_folder_decides_on_is_refused(
    hook: str, root: Root, tmp_path: Path
) -> None:
    tree = WorkTree.create(tmp_path / "at" / "tea")
    bare = bare_clone(tree, tmp_path / "bare.git")
    put_hooks(bare / "hooks", tree, hook)
    fetch_pinned_repository(root, "job", RepositoryStart(url=tree.url), BOUNDS)
    repository = ProjectRepository(project_repository_path(root, "job"))
    commit = repository.commit(str(repository.get_commit(tree.head).tree_id), [tree.head], "x", 0)
    with pytest.raises(ApplicationError, match=f"its hook {hook} names a program"):
        push_branch(repository, Publish(remote=f"file://{bare}", branch="new"), commit)
    assert not list(tree.path.parent.glob("ran-*"))


def leads_elsewhere(tree: WorkTree, secret: WorkTree) -> None:
    (tree.path / ".git").rename(tree.path / "old")
    (tree.path / ".git").write_text(f"gitdir: {secret.path}/.git\n")


def link_elsewhere(tree: WorkTree, secret: WorkTree) -> None:
    (tree.path / ".git").rename(tree.path / "old")
    (tree.path / ".git").symlink_to(secret.path / ".git")


def false_work_tree(tree: WorkTree, secret: WorkTree) -> None:
    """A linked work tree whose records, in the folder itself, name another repository."""
    own = tree.path / "worktrees" / "x"
    own.mkdir(parents=True)
    (tree.path / ".git").rename(tree.path / "old")
    (tree.path / ".git").write_text(f"gitdir: {own}\n")
    (own / "gitdir").write_text(f"{tree.path}/.git\n")
    (own / "commondir").write_text(f"{secret.path}/.git\n")
    (own / "HEAD").write_text(f"{secret.head}\n")


def borrow(tree: WorkTree, secret: WorkTree) -> None:
    alternates = tree.path / ".git" / "objects" / "info" / "alternates"
    alternates.write_text(f"{secret.path}/.git/objects\n")
    tree.git("update-ref", "HEAD", secret.head)


def link_objects(tree: WorkTree, secret: WorkTree) -> None:
    objects = tree.path / ".git" / "objects"
    for folder in (secret.path / ".git" / "objects").iterdir():
        if not (objects / folder.name).exists():
            (objects / folder.name).symlink_to(folder)
    tree.git("update-ref", "HEAD", secret.head)


def link_head(tree: WorkTree, secret: WorkTree) -> None:
    head = tree.path / ".git" / "HEAD"
    head.unlink()
    head.symlink_to(secret.path / "secret.txt")


@pytest.mark.parametrize("way", ["folder", "url"])
@pytest.mark.parametrize(
    "change",
    [leads_elsewhere, link_elsewhere, false_work_tree, borrow, link_objects, link_head],
)
def test_what_lies_outside_of_a_folder_does_not_come_along(
    change: Callable[[WorkTree, WorkTree], None], way: str, root: Root, tmp_path: Path
) -> None:
    secret = WorkTree.create(tmp_path / "secret", secret_txt="a secret\n")
    tree = WorkTree.create(tmp_path / "tea")
    change(tree, secret)
    with pytest.raises((ConfigError, AssertionError)) as refusal:
        go(way, tree, root, tmp_path)
    assert refusal.type is ConfigError
    for pack in root.path.rglob("*.pack"):
        assert secret.head not in str(pack)
    assert not list(root.staged.glob("repository-*"))


def test_a_folder_that_the_configuration_names_may_borrow(root: Root, tmp_path: Path) -> None:
    tree = WorkTree.create(tmp_path / "tea")
    tree.git("clone", "-q", "--shared", str(tree.path), str(tmp_path / "shared"))
    shared = WorkTree(tmp_path / "shared")
    with pytest.raises(ConfigError, match=r"outside of it; .* start\.folders"):
        stage_folder(shared.path, root.staged, BOUNDS)
    named = BOUNDS.__class__(1000, 10**6, 10**5, named=(str(tmp_path),))
    assert tree.head in stage_folder(shared.path, root.staged, named)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files to others")
@pytest.mark.parametrize("way", ["folder", "subfolder", "url"])
def test_a_repository_of_another_user_is_refused_unless_named(
    way: str, root: Root, tmp_path: Path
) -> None:
    tree = WorkTree.create(tmp_path / "tea")
    tree.write({"new/x.py": "x = 1\n"})
    os.chown(tree.path, 12345, 12345)
    with pytest.raises(ConfigError, match=r"belongs to another user.*start\.folders"):
        go(way, tree, root, tmp_path)
    named = BOUNDS.__class__(1000, 10**6, 10**5, named=(str(tree.path),))
    start = RepositoryStart(folder=stage_folder(tree.path, root.staged, named))
    fetch_pinned_repository(root, "job", start, named)


def test_git_gets_no_variable_that_it_does_not_need(
    root: Root, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = tmp_path / "seen"
    git = tmp_path / "bin" / "git"
    git.parent.mkdir()
    git.write_text(f'#!/bin/sh\nenv >> {seen}\nexec /usr/bin/git "$@"\n')
    git.chmod(0o755)
    tree = WorkTree.create(tmp_path / "tea")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-worker-secret")
    monkeypatch.setenv("GIT_DIR", "/elsewhere")
    monkeypatch.setenv("PATH", f"{git.parent}:{os.environ['PATH']}")
    go("folder", tree, root, tmp_path)
    GitRemote(tree.url).list_refs("jobs/other", "a")
    assert "sk-worker-secret" not in seen.read_text()
    assert "/elsewhere" not in seen.read_text().replace(str(tmp_path), "")
