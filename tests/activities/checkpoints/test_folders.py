"""The sharded form of a folder: a function of its content, cheap to change."""

import time
from pathlib import Path

import pygit2
from hypothesis import given, settings
from hypothesis import strategies as st

from activities.checkpoints import Files
from activities.checkpoints import folders as store
from activities.checkpoints.folders import FILE, Raw

NUMBERS = st.sets(st.integers(0, 400), min_size=0, max_size=400)


def filled(repo: pygit2.Repository, numbers: list[int]) -> bytes:
    blob = bytes(repo.create_blob(b"x").raw)
    return store.build(repo, {b"f%d" % number: Raw(FILE, blob) for number in numbers})


@settings(max_examples=25, deadline=None)
@given(
    start=st.integers(0, 600),
    steps=st.lists(st.tuples(st.booleans(), st.integers(0, 600)), max_size=60),
)
def test_the_id_depends_on_the_content_alone(
    repo: pygit2.Repository, start: int, steps: list[tuple[bool, int]]
) -> None:
    numbers = set(range(start))
    folder = filled(repo, list(numbers))
    blob = Raw(FILE, bytes(repo.create_blob(b"x").raw))
    for add, number in steps:
        folder = store.put(repo, folder, b"f%d" % number, blob if add else None)
        (numbers.add if add else numbers.discard)(number)
    assert folder == filled(repo, sorted(numbers))
    assert set(store.entries(repo, folder)) == {b"f%d" % number for number in numbers}


@settings(max_examples=10, deadline=None)
@given(st.permutations(range(240, 275)), st.permutations(range(240, 275)))
def test_the_order_of_steps_across_the_limit_does_not_matter(
    repo: pygit2.Repository, come: list[int], go: list[int]
) -> None:
    few = filled(repo, list(range(240)))
    blob = Raw(FILE, bytes(repo.create_blob(b"x").raw))
    folder = few
    for number in come:
        folder = store.put(repo, folder, b"f%d" % number, blob)
    assert folder == filled(repo, list(range(275)))
    numbers = set(range(275))
    for number in go:
        folder = store.put(repo, folder, b"f%d" % number, None)
        numbers.discard(number)
        if len(numbers) in {256, 257}:
            assert folder == filled(repo, list(numbers))
    assert folder == few


def test_flat_up_to_the_limit_and_sharded_above(repo: pygit2.Repository) -> None:
    def names(folder: bytes) -> list[str]:
        tree = repo[pygit2.Oid(raw=folder)]
        assert isinstance(tree, pygit2.Tree)
        return [str(entry.name) for entry in tree]

    assert len(names(filled(repo, list(range(256))))) == 256
    sharded = names(filled(repo, list(range(257))))
    assert sharded == ["%n257", *(f"%s{digit:x}" for digit in range(16))]


@settings(max_examples=25, deadline=None)
@given(NUMBERS, NUMBERS)
def test_differences_between_any_two_forms(
    repo: pygit2.Repository, left: set[int], right: set[int]
) -> None:
    found = store.differences(repo, filled(repo, list(left)), filled(repo, list(right)))
    assert sorted(name for name, _, _ in found) == sorted(b"f%d" % n for n in left ^ right)


def test_ten_thousand_files_in_one_folder_are_not_felt(tmp_path: Path) -> None:
    repo = pygit2.init_repository(str(tmp_path / "repo"), bare=True)
    folder = filled(repo, list(range(10_000)))
    files = Files.empty(repo).with_raw(("big",), Raw(store.FOLDER, folder))
    before = stored(tmp_path)
    took = []  # processor time: a busy machine is not what is measured
    for number in range(30):
        start = time.thread_time()
        changed = files.write(f"big/new{number}", b"some text")
        took.append(time.thread_time() - start)
    assert sorted(took)[15] < 0.005
    assert (stored(tmp_path) - before) / 30 < 8 * 1024
    assert len(changed.children("big")) == 10_001


def stored(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
