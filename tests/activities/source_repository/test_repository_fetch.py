"""A repository fetched once: its commit pinned, its credentials nowhere, its size bounded."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pygit2
import pytest
from pygit2.enums import ObjectType
from temporalio.exceptions import ApplicationError

from activities.checkpoints import Checkpoints, Files, PathRefused, Root
from activities.projects.project_repository import ProjectRepository, project_repository_path
from activities.redaction import credentials
from activities.source_repository.repository_fetch import fetch_pinned_repository
from config.schema.agent import ConfigError
from protocol.repository_start import RepositoryStart
from tests.activities.source_repository.origins import BOUNDS, WorkTree, bare_clone, git
from tests.activities.standing import environment
from tests.activities.wires import PASSWORD, USER, Web, web


@pytest.fixture
def tree(tmp_path: Path) -> WorkTree:
    return WorkTree.create(tmp_path / "tea")


@pytest.fixture
def served(tree: WorkTree, tmp_path: Path) -> Iterator[Web]:
    (tmp_path / "served").mkdir()
    bare_clone(tree, tmp_path / "served" / "tea.git")
    with web(tmp_path / "served") as served:
        yield served


def test_what_was_fetched_stays_though_its_branch_moves(root: Root, tree: WorkTree) -> None:
    first = fetch_pinned_repository(root, "job", RepositoryStart(url=tree.url), BOUNDS)
    tree.commit("Two", {"more.md": "more\n"})
    again = fetch_pinned_repository(root, "job", RepositoryStart(url=tree.url), BOUNDS)
    assert again == first
    assert first.file_count == 1
    repository = ProjectRepository(project_repository_path(root, "job"))
    assert repository.read_file(first.commit, "tea.py") == b"def brew():\n    return 'tea'\n"


def test_a_draft_that_a_killed_attempt_left_is_swept(root: Root, tree: WorkTree) -> None:
    path = ProjectRepository.create(project_repository_path(root, "job")).path
    (path / "incoming-1" / "objects").mkdir(parents=True)
    fetch_pinned_repository(root, "job", RepositoryStart(url=tree.url), BOUNDS)
    assert not list(path.glob("incoming-*"))


def test_a_branch_a_tag_and_a_commit_are_found(root: Root, tree: WorkTree) -> None:
    first = tree.head
    tree.git("tag", "-a", "v1", "-m", "One")
    tree.git("switch", "-q", "-c", "feature/mint")
    second = tree.commit("Two", {"mint.py": "x = 1\n"})
    tree.git("switch", "-q", "trunk")
    for owner, ref, commit in (
        ("branch", "feature/mint", second),
        ("tag", "v1", first),
        ("commit", second, second),
        ("checked-out", None, first),
    ):
        start = RepositoryStart(url=tree.url, ref=ref)
        assert fetch_pinned_repository(root, owner, start, BOUNDS).commit == commit


def test_no_more_history_is_fetched_than_was_asked_for(root: Root, tree: WorkTree) -> None:
    tree.commit("Two", {"two.md": "two\n"})
    start = RepositoryStart(url=tree.url, depth=1)
    origin = fetch_pinned_repository(root, "job", start, BOUNDS)
    log = git(project_repository_path(root, "job"), "log", "--format=%s", origin.commit)
    assert log.split() == ["Two"]


@pytest.mark.parametrize(
    ("start", "why"),
    [
        ({"ref": "mian"}, "there is no branch or tag mian; it has trunk$"),
        ({"ref": "1" * 7}, "1111111; a commit is named by all 40 digits of its id"),
        ({"ref": "1" * 40}, "no branch or tag of it has the commit 1111"),
        ({"subfolder": "cups"}, "there is no folder cups at"),
        ({"url": "file:///there/is/none"}, "does not appear to be a git repository"),
    ],
)
def test_what_is_not_there_is_named(
    root: Root, tree: WorkTree, start: dict[str, str], why: str
) -> None:
    with pytest.raises(ConfigError, match=why):
        fetch_pinned_repository(root, "job", RepositoryStart(**{"url": tree.url, **start}), BOUNDS)


def test_sizes_are_bounded_with_a_word_on_what_allows_more(root: Root, tree: WorkTree) -> None:
    tree.commit("Two", {"large.txt": "x" * 2000, "other.txt": "y" * 2000})
    start = RepositoryStart(url=tree.url)
    for bounds, why in (
        (replace(BOUNDS, files=2), "more than 2 files; limits.repository_files allows more"),
        (replace(BOUNDS, file_bytes=1000), r"large.txt has 2,000 bytes.*limits.file_bytes"),
        (replace(BOUNDS, bytes=100), "more than 100 bytes; limits.repository_bytes allows more"),
    ):
        with pytest.raises(ConfigError, match=why):
            fetch_pinned_repository(root, "job", start, bounds)
    assert not list(project_repository_path(root, "job").glob("incoming-*"))


def test_submodules_and_lfs_pointers_are_named(root: Root, tree: WorkTree, tmp_path: Path) -> None:
    other = WorkTree.create(tmp_path / "cup")
    tree.git("submodule", "--quiet", "add", other.url, "vendor/cup")
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"
    tree.commit("Two", {".gitattributes": "*.bin filter=lfs diff=lfs\n", "a.bin": pointer})
    origin = fetch_pinned_repository(root, "job", RepositoryStart(url=tree.url), BOUNDS)
    assert origin.notes == [
        "Submodules are not fetched, their folders are missing: vendor/cup.",
        "Git LFS is not followed, these files are pointers only, on which tests may fail "
        "(a clone with their content can be given as a folder): a.bin.",
    ]


def test_a_token_comes_from_a_variable_of_the_worker_and_is_written_nowhere(
    root: Root, tree: WorkTree, served: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEA_ACCESS", PASSWORD)
    url = f"{served.url.replace('://', f'://{USER}@')}/tea.git"
    start = RepositoryStart(url=url, token_variable="TEA_ACCESS")
    origin = fetch_pinned_repository(root, "job", start, BOUNDS)
    assert origin.commit == tree.head
    assert f"{USER}@" not in origin.source
    files = [path for path in project_repository_path(root, "job").rglob("*") if path.is_file()]
    assert not [path for path in files if PASSWORD.encode() in path.read_bytes()]


def test_a_token_that_is_not_taken_is_not_told(
    root: Root, served: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEA_ACCESS", "wrong-4711-password")
    credentials.refresh_credential_values()
    start = RepositoryStart(url=f"{served.url}/tea.git", token_variable="TEA_ACCESS")
    with pytest.raises(ApplicationError) as failed:
        environment().run(fetch_pinned_repository, root, "job", start, BOUNDS)
    assert failed.value.type == "Dependency"
    assert "Authentication failed" in str(failed.value)
    assert "wrong-4711-password" not in str(failed.value)


def test_a_variable_that_the_worker_lacks_is_named(root: Root, served: Web) -> None:
    start = RepositoryStart(url=f"{served.url}/tea.git", token_variable="NO_SUCH")
    with pytest.raises(ConfigError, match="this worker has no variable NO_SUCH; set it"):
        fetch_pinned_repository(root, "job", start, BOUNDS)


@pytest.mark.parametrize("name", [b"..", b".git", b".GIT", b"a\\..\\b/c"])
def test_names_that_lead_out_of_a_folder_are_refused(
    root: Root, tree: WorkTree, name: bytes
) -> None:
    theirs = pygit2.Repository(str(tree.path))
    blob = theirs.create_blob(b"x").raw
    written = theirs.odb.write(ObjectType.TREE, b"100644 %b\0%b" % (name, blob))
    who = pygit2.Signature("x", "x@example.org", 1, 0)
    theirs.create_commit("refs/heads/bad", who, who, "Bad", written, [])
    start = RepositoryStart(url=tree.url, ref="bad")
    with pytest.raises(ConfigError, match="cannot be used in a folder"):
        fetch_pinned_repository(root, "job", start, BOUNDS)


def test_a_link_that_leads_out_is_kept_and_not_followed(root: Root, tree: WorkTree) -> None:
    (tree.path / "out").symlink_to("/etc/passwd")
    (tree.path / "AGENTS.md").symlink_to("/etc/passwd")
    tree.commit("Links", {})
    origin = fetch_pinned_repository(root, "job", RepositoryStart(url=tree.url), BOUNDS)
    assert origin.guidance == ""
    store = Checkpoints.create(root, "job")
    repository = ProjectRepository(project_repository_path(root, "job"))
    files = repository.put_into(Files.empty(store.store), origin.commit, "repo")
    entry = files.entry("repo/out")
    assert entry is not None
    assert entry.kind == "link"
    with pytest.raises(PathRefused, match="leads out of the workspace"):
        files.read("repo/out")
