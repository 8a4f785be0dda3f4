"""A project's repository: workspaces in and out, merges, the same commits when it is retried."""

from pathlib import Path

import pytest

from activities.checkpoints import CheckpointMissing, Checkpoints, Files, Root
from activities.projects.merge_conflicts import list_marked_passages
from activities.projects.project_repository import ProjectRepository, project_repository_path

AT = 1_700_000_000


@pytest.fixture
def repository(tmp_path: Path) -> ProjectRepository:
    return ProjectRepository.create(
        project_repository_path(Root.open(tmp_path / "r", create=True), "tea room")
    )


@pytest.fixture
def empty(tmp_path: Path) -> Files:
    checkpoints = Checkpoints.create(Root.open(tmp_path / "r", create=True), "job")
    return Files.empty(checkpoints.store)


def commit(repository: ProjectRepository, *parents: str, **files: str) -> str:
    data = {name.replace("_", "."): text.encode() for name, text in files.items()}
    base = repository.tree_id(parents[0]) if parents else empty_tree(repository)
    tree = repository.with_files(base, data)
    return repository.commit(tree, list(parents), "made", AT)


def empty_tree(repository: ProjectRepository) -> str:
    return str(repository.git.TreeBuilder().write())


def test_a_folder_goes_out_and_comes_back_as_it_was(
    repository: ProjectRepository, empty: Files
) -> None:
    files = empty.write("repo/src/main.py", b"print()\n", executable=True)
    files = files.write("repo/.gitignore", b"*.pyc\n").link("repo/latest", "src/main.py")
    files = files.write("other/notes.md", b"no product\n").make_folder("repo/nothing")
    for n in range(300):
        files = files.write(f"repo/many/{n}.txt", b"x")
    tree = repository.take_from(files, "repo")
    new_commit = repository.commit(tree, [], "made", AT)
    # Git sees an ordinary tree: folders are not sharded and names are not escaped.
    assert repository.read_file(new_commit, ".gitignore") == b"*.pyc\n"
    assert repository.read_file(new_commit, "many/299.txt") == b"x"
    back = repository.put_into(empty.write("repo/old.txt", b"goes"), new_commit, "repo")
    assert back.id == files.delete("repo/nothing").delete("other").id


def test_a_git_folder_of_an_agent_is_left_out(repository: ProjectRepository, empty: Files) -> None:
    files = empty.write("repo/a.txt", b"a").with_tree_entry(
        ("repo", ".git"), empty.write("x", b"x").tree_entry(("x",))
    )
    tree = repository.take_from(files, "repo")
    assert tree == repository.take_from(empty.write("repo/a.txt", b"a"), "repo")


def test_what_git_has_no_name_for_is_left_out(repository: ProjectRepository, empty: Files) -> None:
    files = empty.write("repo/a.txt", b"a")
    for name in ("git~1", "caf\udce9/a.md", "src/GIT~1/b"):
        files = files.write(f"repo/{name}", b"x")
    tree = repository.take_from(files.write("repo/src/c", b"c"), "repo")
    expected = empty.write("repo/a.txt", b"a").write("repo/src/c", b"c")
    assert tree == repository.take_from(expected, "repo")


def test_a_merge_has_both_sides_and_is_the_same_when_it_is_retried(
    repository: ProjectRepository,
) -> None:
    base = commit(repository, readme="tea\n")
    head, other = commit(repository, base, green="g\n"), commit(repository, base, black="b\n")
    merged, conflicts = repository.merge(head, other, "Merge", AT)
    assert conflicts == []
    assert repository.read_file(merged, "green") == b"g\n"
    assert repository.read_file(merged, "black") == b"b\n"
    assert repository.merge(head, other, "Merge", AT) == (merged, [])
    # Merging what is already merged changes nothing.
    assert repository.merge(merged, other, "Merge", AT) == (merged, [])


def test_what_collides_is_marked_and_merges_once_it_is_mended(
    repository: ProjectRepository,
) -> None:
    base = commit(repository, menu_md="tea\n")
    head, other = (
        commit(repository, base, menu_md="green\n"),
        commit(repository, base, menu_md="b\n"),
    )
    marked, conflicts = repository.merge(head, other, "Merge", AT)
    assert conflicts == ["menu.md"]
    text = (repository.read_file(marked, "menu.md") or b"").decode()
    assert text.startswith("<<<<<<< accepted\n")  # markers by which unresolved conflicts are found
    assert "green\n" in text
    assert "b\n" in text
    [passage] = list_marked_passages(repository.git, repository.get_commit(marked))
    assert passage.splitlines()[:3] == ["menu.md:", "     1\t<<<<<<< accepted", "     2\tgreen"]
    assert not list(list_marked_passages(repository.git, repository.get_commit(head)))
    mended = commit(repository, marked, menu_md="green\nb\n")
    merged, conflicts = repository.merge(head, mended, "Merge", AT)
    assert conflicts == []
    assert repository.read_file(merged, "menu.md") == b"green\nb\n"


def test_what_one_side_deletes_and_what_is_no_text_collide_without_marks(
    repository: ProjectRepository,
) -> None:
    base = commit(repository, a="1\n", b="\0one")
    head = commit(repository, base, a="2\n", b="\0two")
    tree = repository.with_files(repository.tree_id(base), {"a": None, "b": b"\0three"})
    other = repository.commit(tree, [base], "made", AT)
    merged, conflicts = repository.merge(head, other, "Merge", AT)
    assert conflicts == [
        "a (deleted or renamed on one side; what is there is what others had accepted)",
        "b (what others had accepted; yours is b~yours)",
    ]
    assert repository.read_file(merged, "a") == b"2\n"
    assert repository.read_file(merged, "b") == b"\0two"
    assert repository.read_file(merged, "b~yours") == b"\0three"


@pytest.mark.parametrize(
    ("before", "end"),
    # Git searches the first 8,000 bytes for a zero byte.
    [(b"\0one", b""), (b"one", b"tea\n" * 2000 + b"\0tea\n")],
)
def test_a_file_that_was_no_text_or_is_none_further_on_collides_without_marks(
    repository: ProjectRepository, before: bytes, end: bytes
) -> None:
    first = repository.with_files(empty_tree(repository), {"b": before})
    base = repository.commit(first, [], "made", AT)
    head, other = (
        repository.commit(repository.with_files(first, {"b": text + end}), [base], "made", AT)
        for text in (b"two\n", b"three\n")
    )
    merged, conflicts = repository.merge(head, other, "Merge", AT)
    assert conflicts == ["b (what others had accepted; yours is b~yours)"]
    assert repository.read_file(merged, "b") == b"two\n" + end
    assert repository.read_file(merged, "b~yours") == b"three\n" + end


@pytest.mark.parametrize(
    ("mine", "other", "reason", "beside"),
    [
        ("repo/x", "repo/x/y", "the file of the other is x~accepted", "x~accepted"),
        ("repo/x/y", "repo/x", "the file of the other is x~yours", "x~yours"),
    ],
)
def test_a_file_where_the_other_side_has_a_folder_is_kept_beside_it(
    repository: ProjectRepository, empty: Files, mine: str, other: str, reason: str, beside: str
) -> None:
    base = commit(repository, readme="tea\n")
    head, theirs = (
        repository.commit(repository.take_from(empty.write(path, b"x"), "repo"), [base], "made", AT)
        for path in (mine, other)
    )
    merged, [conflict] = repository.merge(head, theirs, "Merge", AT)
    assert reason in conflict
    assert repository.read_file(merged, "x/y") == b"x"
    assert repository.read_file(merged, beside) == b"x"


@pytest.mark.parametrize("renamed_by", ["accepted", "yours"])
def test_a_file_renamed_to_what_is_a_folder_on_the_other_side_is_kept_beside_it(
    repository: ProjectRepository, empty: Files, renamed_by: str
) -> None:
    tea = empty.write("repo/tea", b"tea\n" * 9)
    base, renamed, filled = (
        repository.take_from(files, "repo")
        for files in (tea, empty.write("repo/x", b"tea\n" * 9), tea.write("repo/x/y", b"y"))
    )
    first = repository.commit(base, [], "made", AT)
    sides = [renamed, filled] if renamed_by == "accepted" else [filled, renamed]
    head, theirs = (repository.commit(tree, [first], "made", AT) for tree in sides)
    merged, conflicts = repository.merge(head, theirs, "Merge", AT)
    assert conflicts == [f"x (a folder on one side; the file of the other is x~{renamed_by})"]
    assert repository.read_file(merged, "x/y") == b"y"
    assert repository.read_file(merged, f"x~{renamed_by}") == b"tea\n" * 9
    assert repository.read_file(merged, "tea") is None


def test_links_collide_without_marks(repository: ProjectRepository, empty: Files) -> None:
    base = commit(repository, readme="tea\n")
    head, other = (
        repository.commit(
            repository.take_from(empty.link("repo/x", to), "repo"), [base], "made", AT
        )
        for to in ("green", "black")
    )
    merged, conflicts = repository.merge(head, other, "Merge", AT)
    assert conflicts == ["x (what others had accepted; yours is x~yours)"]
    assert repository.read_file(merged, "x") == b"green"
    assert repository.read_file(merged, "x~yours") == b"black"


def test_a_branch_moves_whatever_a_killed_worker_left(repository: ProjectRepository) -> None:
    first = commit(repository, a="1")
    (repository.path / "refs/heads/main.lock").parent.mkdir(parents=True, exist_ok=True)
    (repository.path / "refs/heads/main.lock").touch()
    for target in (first, commit(repository, first, a="2")):
        repository.set_branch("main", target)
        assert str(repository.git.references["refs/heads/main"].target) == target
    repository.set_branch("jobs/no..name", first)
    assert list(repository.git.branches) == ["main"]


def test_what_is_not_there_is_said_to_be_missing(
    repository: ProjectRepository, tmp_path: Path
) -> None:
    with pytest.raises(CheckpointMissing):
        repository.tree_id("0" * 40)
    with pytest.raises(CheckpointMissing):
        ProjectRepository(tmp_path / "none.git")
