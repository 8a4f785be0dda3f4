import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from activities.checkpoints import folder_io
from activities.checkpoints.object_store import ObjectStore
from activities.checkpoints.sharded_tree import EXECUTABLE, FILE, LINK, TreeEntry


@pytest.fixture
def fd(tmp_path: Path) -> Iterator[int]:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("text")
    (tmp_path / "to-folder").symlink_to("folder")
    (tmp_path / "to-file").symlink_to("file")
    os.mkfifo(tmp_path / "pipe")
    opened = os.open(tmp_path, os.O_RDONLY)
    yield opened
    os.close(opened)


@pytest.mark.parametrize("name", [b"to-folder", b"file", b"pipe", b"none"])
def test_only_a_real_folder_is_opened_as_one(fd: int, name: bytes) -> None:
    with pytest.raises(OSError), folder_io.open_folder(fd, name):
        pass
    with folder_io.open_folder(fd, b"folder") as inner:
        assert folder_io.list_folder_names(inner) == []


@pytest.mark.parametrize("name", [b"to-file", b"folder", b"pipe", b"none"])
def test_only_a_regular_file_is_opened_as_one(fd: int, name: bytes) -> None:
    with pytest.raises(OSError):
        folder_io.open_file(fd, name)
    os.close(folder_io.open_file(fd, b"file"))


def test_what_holds_an_entry(fd: int, store: ObjectStore) -> None:
    def holds(name: bytes, mode: int, content: bytes) -> bool:
        return folder_io.folder_entry_has_content(
            store, fd, name, TreeEntry(mode, store.write_blob(content))
        )

    assert holds(b"file", FILE, b"text")
    assert holds(b"file", EXECUTABLE, b"text")
    assert holds(b"to-file", LINK, b"file")
    assert not holds(b"file", LINK, b"text")
    assert not holds(b"to-file", FILE, b"file")
    assert not holds(b"to-file", FILE, b"text")
    assert not holds(b"file", FILE, b"TEXT")
    assert not holds(b"pipe", FILE, b"")


def test_a_file_is_never_made_over_another(fd: int, store: ObjectStore) -> None:
    raw = TreeEntry(FILE, store.write_blob(b"x"))
    for name in (b"file", b"to-file", b"folder"):
        with pytest.raises(FileExistsError):
            folder_io.create_folder_entry(store, raw, fd, name)


def test_what_the_user_may_not_do_is_said_with_its_path() -> None:
    with pytest.raises(PermissionError) as caught, folder_io.full_path_in_io_errors((b"notes",)):  # noqa: SIM117
        with folder_io.full_path_in_io_errors((b"notes", b"a\xff.md")):
            raise PermissionError(13, "Permission denied", b"a\xff.md")
    assert str(caught.value) == r"[Errno 13] Permission denied: 'notes/a\udcff.md'"
