"""Adding entries to a tree and removing them, along with folders that become empty."""

from activities.checkpoints import Files
from activities.checkpoints.entries import with_entry, without_entry
from activities.checkpoints.object_store import ObjectStore


def paths(files: Files) -> list[str]:
    return [entry.path for entry in files.walk()]


def test_a_file_gives_way_to_the_folder_that_is_there_now(store: ObjectStore) -> None:
    late = Files.empty(store).write("a", b"x")
    raw = late.tree_entry(("a",))
    assert paths(with_entry(late, "a/b/c", raw)) == ["a/b/c"]
    assert paths(with_entry(late, "a/b/c", None)) == []
    assert with_entry(late, "b/c", None) == late
    assert paths(with_entry(Files.empty(store).write("a/b", b"x"), "a", raw)) == ["a"]


def test_only_folders_that_go_and_are_empty_go_along(store: ObjectStore) -> None:
    files = Files.empty(store).write("a/b/c/d", b"x").write("a/kept", b"x")
    assert paths(without_entry(files, "a/b/c/d", lambda path: True)) == ["a/kept"]
    assert paths(without_entry(files, "a/b/c/d", lambda path: path != "a/b")) == ["a/b", "a/kept"]
    assert paths(without_entry(files, "a/b/c/d", lambda path: False)) == ["a/b/c", "a/kept"]
