"""What a call has changed meets what a person has changed meanwhile."""

from collections.abc import Callable
from pathlib import Path

import pytest

from activities.checkpoints import Files, merge_files
from tests.activities.standing import Standing

Change = Callable[[Files], Files]


@pytest.fixture
def base(tmp_path: Path) -> Files:
    store = Standing.begin(tmp_path).open().files.store
    return Files.empty(store).write("d/a", b"base").write("d/b", b"base").write("f", b"base")


def write(path: str, text: str = "person") -> Change:
    return lambda files: files.write(path, text.encode())


def folder_to_file(files: Files) -> Files:
    return files.delete("d").write("d", b"tool")


def file_to_folder(files: Files) -> Files:
    return files.delete("f").write("f/x", b"tool").write("f/y", b"tool")


@pytest.mark.parametrize(
    ("tool", "person", "kept"),
    [
        (folder_to_file, write("d/c"), ["d"]),
        (folder_to_file, write("d/a"), ["d"]),
        (file_to_folder, write("f"), ["f"]),
        (write("new", "tool"), write("new/x"), ["new"]),
        (write("new/x", "tool"), write("new"), ["new/x"]),
        (write("d/a", "tool"), write("d/a"), ["d/a"]),
        (write("d/a", "tool"), folder_to_file, ["d/a"]),
        (write("d/a", "tool"), lambda files: files.delete("d"), ["d/a"]),
    ],
)
def test_what_both_changed_stays_whole_as_the_person_left_it(
    base: Files, tool: Change, person: Change, kept: list[str]
) -> None:
    present = person(base)
    merged = merge_files(base, tool(base), present)
    assert (merged.files, merged.kept) == (present, kept)


@pytest.mark.parametrize(
    ("tool", "person"),
    [
        (folder_to_file, write("f")),
        (file_to_folder, write("d/a")),
        (write("d/a", "tool"), write("d/b")),
        (write("d/c", "tool"), lambda files: files.delete("d/a")),
        (lambda files: files.make_folder("e"), write("e/x")),
        (folder_to_file, folder_to_file),
        (lambda files: files.move("d", "deep/e"), write("f")),
        (lambda files: files.write("e/g/h", b"tool").delete("d"), write("f")),
    ],
)
def test_other_changes_of_both_are_there(base: Files, tool: Change, person: Change) -> None:
    merged = merge_files(base, tool(base), person(base))
    assert (merged.files, merged.kept) == (person(tool(base)), [])
