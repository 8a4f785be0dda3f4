"""The sharded form of a folder: a function of its content, cheap to change."""

import time
from pathlib import Path

import pygit2
from hypothesis import given, settings
from hypothesis import strategies as st

from activities.checkpoints import Checkpoints, Files, sharded_tree, tree_diff
from activities.checkpoints.object_store import ObjectStore
from activities.checkpoints.packing import pack_journal
from activities.checkpoints.sharded_tree import FILE, TreeEntry
from tests.soak import patient

NUMBERS = st.sets(st.integers(0, 400), min_size=0, max_size=400)


def filled(store: ObjectStore, numbers: list[int]) -> bytes:
    blob = store.write_blob(b"x")
    return sharded_tree.build_tree(
        store, {b"f%d" % number: TreeEntry(FILE, blob) for number in numbers}
    )


@settings(max_examples=25, deadline=None)
@given(
    start=st.integers(0, 600),
    steps=st.lists(st.tuples(st.booleans(), st.integers(0, 600)), max_size=60),
)
def test_the_id_depends_on_the_content_alone(
    store: ObjectStore, start: int, steps: list[tuple[bool, int]]
) -> None:
    numbers = set(range(start))
    folder = filled(store, list(numbers))
    blob = TreeEntry(FILE, store.write_blob(b"x"))
    for add, number in steps:
        folder = sharded_tree.put_sharded_tree_entry(
            store, folder, b"f%d" % number, blob if add else None
        )
        (numbers.add if add else numbers.discard)(number)
    assert folder == filled(store, sorted(numbers))
    assert set(sharded_tree.list_tree_entries(store, folder)) == {
        b"f%d" % number for number in numbers
    }


@settings(max_examples=10, deadline=None)
@given(st.permutations(range(240, 275)), st.permutations(range(240, 275)))
def test_the_order_of_steps_across_the_limit_does_not_matter(
    store: ObjectStore, come: list[int], go: list[int]
) -> None:
    few = filled(store, list(range(240)))
    blob = TreeEntry(FILE, store.write_blob(b"x"))
    folder = few
    for number in come:
        folder = sharded_tree.put_sharded_tree_entry(store, folder, b"f%d" % number, blob)
    assert folder == filled(store, list(range(275)))
    numbers = set(range(275))
    for number in go:
        folder = sharded_tree.put_sharded_tree_entry(store, folder, b"f%d" % number, None)
        numbers.discard(number)
        if len(numbers) in {256, 257}:
            assert folder == filled(store, list(numbers))
    assert folder == few


def test_flat_up_to_the_limit_and_sharded_above(store: ObjectStore) -> None:
    def names(folder: bytes) -> list[str]:
        store.flush()
        pack_journal(store.path)
        tree = store.git[pygit2.Oid(raw=folder)]
        assert isinstance(tree, pygit2.Tree)
        return [str(entry.name) for entry in tree]

    assert len(names(filled(store, list(range(256))))) == 256
    sharded = names(filled(store, list(range(257))))
    assert sharded == ["%n257", *(f"%s{digit:x}" for digit in range(16))]


@settings(max_examples=25, deadline=None)
@given(NUMBERS, NUMBERS)
def test_differences_between_any_two_forms(
    store: ObjectStore, left: set[int], right: set[int]
) -> None:
    differences = tree_diff.diff_sharded_trees(
        store, filled(store, list(left)), filled(store, list(right))
    )
    assert sorted(name for name, _, _ in differences) == sorted(b"f%d" % n for n in left ^ right)


def test_ten_thousand_files_in_one_folder_are_not_felt(checkpoints: Checkpoints) -> None:
    store = checkpoints.store
    folder = filled(store, list(range(10_000)))
    files = Files.empty(store).with_tree_entry(("big",), TreeEntry(sharded_tree.FOLDER, folder))
    store.flush()
    before = stored(checkpoints.path)
    took = []  # processor time, so that a busy machine does not matter
    for number in range(30):
        start = time.thread_time()
        changed = files.write(f"big/new{number}", b"some text")
        took.append(time.thread_time() - start)
    store.flush()
    assert sorted(took)[15] < patient(0.005)
    assert (stored(checkpoints.path) - before) / 30 < 8 * 1024
    assert len(changed.children("big")) == 10_001


def stored(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
