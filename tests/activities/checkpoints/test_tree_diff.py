from hypothesis import given, settings
from hypothesis import strategies as st

from activities.checkpoints import Change, Files, diff_files
from activities.checkpoints.object_store import ObjectStore
from activities.checkpoints.sharded_tree import FILE, FOLDER, TreeEntry, build_tree
from tests.soak import soak

PATHS = ["a", "a/b", "a/b/c", "a/d", "a.x", "e/f", "e", ".git/x", "g/h/i/j", "\udcff"]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["write", "run", "folder", "delete", "link"]), st.sampled_from(PATHS)
    ),
    max_size=15,
)


def applied(files: Files, steps: list[tuple[str, str]]) -> Files:
    for verb, path in steps:
        try:
            if verb == "folder":
                files = files.make_folder(path)
            elif verb == "delete":
                files = files.delete(path)
            elif verb == "link":
                files = files.link(path, "a")
            else:
                files = files.write(path, verb.encode(), executable=verb == "run")
        except ValueError:
            continue
    return files


def brute_force(old: Files | None, new: Files) -> list[Change]:
    """Compare every leaf of both sides; a folder that stays a folder is no change."""
    before = {entry.path: entry for entry in old.walk()} if old else {}
    after = {entry.path: entry for entry in new.walk()}

    def stays_folder(path: str) -> bool:
        sides = [side.tree_entry(tuple(path.split("/"))) if side else None for side in (old, new)]
        return all(side is not None and side.mode == FOLDER for side in sides)

    paths = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    order = sorted(
        (path for path in paths if not stays_folder(path)),
        key=lambda path: path.encode("utf-8", "surrogateescape").split(b"/"),
    )
    return [Change(path, before.get(path), after.get(path)) for path in order]


@settings(max_examples=soak(40, 150), deadline=None)
@given(STEPS, STEPS, st.booleans())
def test_it_finds_what_brute_force_finds(
    store: ObjectStore,
    one: list[tuple[str, str]],
    other: list[tuple[str, str]],
    related: bool,
) -> None:
    old = applied(Files.empty(store), one)
    new = applied(old if related else Files.empty(store), other)
    assert list(diff_files(old, new)) == brute_force(old, new)
    assert list(diff_files(None, new)) == brute_force(None, new)
    assert list(diff_files(new, new)) == []


def test_it_crosses_the_sharding_limit(store: ObjectStore) -> None:
    blob = store.write_blob(b"x")

    def folder(count: int) -> Files:
        raw = TreeEntry(
            FOLDER,
            build_tree(store, {b"f%03d" % index: TreeEntry(FILE, blob) for index in range(count)}),
        )
        return Files.empty(store).with_tree_entry(("big",), raw)

    sharded, flat = folder(300), folder(250)
    removed_paths = [change.path for change in diff_files(sharded, flat)]
    assert removed_paths == [f"big/f{index:03}" for index in range(250, 300)]
    changed = sharded.write("big/f100", b"new")
    assert [change.path for change in diff_files(sharded, changed)] == ["big/f100"]
