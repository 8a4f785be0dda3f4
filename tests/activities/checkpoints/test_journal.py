import errno
import os
import shutil
import signal
from pathlib import Path

import pytest

from activities.checkpoints import Checkpoints
from activities.checkpoints.journal import Journal
from activities.checkpoints.journal_records import BLOB, HEAD, JournalRecord, read_records
from activities.checkpoints.packing import pack_journal
from tests.activities.checkpoints.conftest import Start
from tests.full_disk import files_of_at_most

WRITER = """
import pathlib, sys
from activities.checkpoints.journal import Journal
from activities.checkpoints.journal_records import BLOB, JournalRecord
journal = Journal(pathlib.Path(sys.argv[1]))
print("ready", flush=True)
for number in range(int(sys.argv[2])):
    journal.append([JournalRecord.create(BLOB, b"%b %d %d" % (sys.argv[3].encode(), number, part))
                    for part in range(3)])
print("done", flush=True)
"""
FREEZER = """
import os, pathlib, signal, sys
from activities.checkpoints import journal
from activities.checkpoints.journal_records import BLOB, JournalRecord
stop, name = sys.argv[2:]
mine = journal.Journal(pathlib.Path(sys.argv[1]))
mine.append([JournalRecord.create(BLOB, b"before")])
print("ready", flush=True)

def trace(frame, event, _):
    if frame.f_code.co_name == name and event == stop:
        sys.settrace(None)
        os.kill(os.getpid(), signal.SIGSTOP)
    return trace

sys.settrace(trace)
mine.append([JournalRecord.create(BLOB, b"after")])
print("done", flush=True)
"""


@pytest.fixture
def folder(checkpoints: Checkpoints) -> Path:
    return checkpoints.path / "journal"


def blob(data: bytes) -> JournalRecord:
    return JournalRecord.create(BLOB, data)


def files(folder: Path) -> list[Path]:
    return sorted(folder.iterdir())


def test_what_is_appended_is_found_here_and_elsewhere(folder: Path) -> None:
    journal, other = Journal(folder), Journal(folder)
    records = [blob(b"one"), blob(b""), blob(b"x" * 3_000_000)]
    for record in records:
        journal.append([record])
    other.refresh()
    for reader in (journal, other):
        assert [reader.find(record.id) for record in records] == [r.data for r in records]
        assert [reader.size(record.id) for record in records] == [3, 0, 3_000_000]
    assert journal.find(blob(b"two").id) is None
    assert len(files(folder)) == 1


def test_what_is_there_is_not_appended_again(folder: Path) -> None:
    journal = Journal(folder)
    journal.append([blob(b"one")])
    [file] = files(folder)
    size = file.stat().st_size
    journal.append([blob(b"one")])
    assert file.stat().st_size == size
    file.unlink()
    journal.append([blob(b"one")])
    assert journal.find(blob(b"one").id) == b"one"


def test_a_record_torn_at_any_byte_counts_as_not_there(folder: Path) -> None:
    journal = Journal(folder)
    journal.append([blob(b"kept"), blob(b"torn")])
    [file] = files(folder)
    whole = file.read_bytes()
    for end in range(HEAD.size + 4, len(whole)):
        file.write_bytes(whole[:end])
        other = Journal(folder)
        other.refresh()
        assert (other.find(blob(b"kept").id), other.find(blob(b"torn").id)) == (b"kept", None)
        # Neither its writer nor another one appends after the torn entry.
        for writer, data in ((journal, b"next"), (other, b"more")):
            writer.append([blob(data), blob(b"torn")])
        fresh = Journal(folder)
        fresh.refresh()
        for data in (b"kept", b"torn", b"next", b"more"):
            assert fresh.find(blob(data).id) == data
        for left in files(folder):
            if left != file:
                left.unlink()
        file.write_bytes(whole)


def test_a_writer_in_the_middle_of_a_record_is_waited_for(folder: Path) -> None:
    Journal(folder).append([blob(b"one"), blob(b"two")])
    [file] = files(folder)
    whole = file.read_bytes()
    reader = Journal(folder)
    # Zeros too: a mounted volume may show a file's length before its content.
    for half in (whole[:-2], whole[:-2] + b"\0\0"):
        file.write_bytes(half)
        reader.refresh()
        assert (reader.find(blob(b"one").id), reader.find(blob(b"two").id)) == (b"one", None)
    file.write_bytes(whole)
    reader.refresh()
    assert reader.find(blob(b"two").id) == b"two"


def test_garbled_content_counts_as_not_there_and_hides_nothing(folder: Path) -> None:
    journal = Journal(folder)
    journal.append([blob(b"first"), blob(b"second")])
    [file] = files(folder)
    file.write_bytes(file.read_bytes().replace(b"first", b"Xirst"))
    fresh = Journal(folder)
    fresh.refresh()
    for reader in (journal, fresh):
        assert reader.find(blob(b"first").id) is None
        reader.refresh()
        assert reader.find(blob(b"second").id) == b"second"
        reader.append([blob(b"first")])
        assert reader.find(blob(b"first").id) == b"first"


def test_a_file_that_is_not_as_it_was_left_is_not_continued(folder: Path) -> None:
    journal = Journal(folder)
    journal.append([blob(b"one")])
    [file] = files(folder)
    shutil.copy(file, folder / "other")
    (folder / "other").rename(file)
    with file.open("ab") as longer:
        longer.write(b"somebody else's")
    journal.append([blob(b"two")])
    assert file.read_bytes().endswith(b"somebody else's")
    assert len(files(folder)) == 2
    assert journal.find(blob(b"two").id) == b"two"


def test_a_journal_that_was_away_is_read_again(folder: Path) -> None:
    journal = Journal(folder)
    journal.append([blob(b"one")])
    folder.rename(folder.with_name("away"))
    assert journal.find(blob(b"one").id) is None
    folder.with_name("away").rename(folder)
    journal.refresh()
    assert journal.find(blob(b"one").id) == b"one"


def test_a_bad_sector_is_no_missing_object_and_its_file_is_named(
    checkpoints: Checkpoints, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoints.store.write_blob(b"one")
    checkpoints.store.flush()
    [log] = files(folder)

    def bad(*_: object) -> bytes:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as disk:
        disk.setattr(os, "pread", bad)
        with pytest.raises(OSError, match=log.name):
            checkpoints.store.read_stored(blob(b"one").id)
    with monkeypatch.context() as disk:
        disk.setattr(os, "fsync", bad)
        with pytest.raises(OSError, match=log.name):
            checkpoints.pack()
    assert checkpoints.store.read_stored(blob(b"one").id) == b"one"


def test_processes_append_at_once(folder: Path, start: Start) -> None:
    reader = Journal(folder)
    names = ["a", "b", "c"]
    children = [start(WRITER, str(folder), "200", name) for name in names]
    while any(child.poll() is None for child in children):
        reader.refresh()
    reader.refresh()
    for name in names:
        for number in range(200):
            for part in range(3):
                data = b"%b %d %d" % (name.encode(), number, part)
                assert reader.find(blob(data).id) == data


@pytest.mark.parametrize(
    ("stop", "at"),
    [("call", "_try_lock_journal"), ("return", "_is_same_journal"), ("call", "write_whole")],
)
def test_a_writer_frozen_while_the_journal_is_packed_loses_nothing(
    checkpoints: Checkpoints, folder: Path, start: Start, stop: str, at: str
) -> None:
    """A frozen writer has opened or examined its file, and wakes after the packing."""
    child = start(FREEZER, str(folder), stop, at)
    os.waitid(os.P_PID, child.pid, os.WSTOPPED | os.WNOWAIT)
    checkpoints.store.write_blob(b"mine")
    checkpoints.pack()
    other = Journal(folder)
    other.append([blob(b"meanwhile")])
    child.send_signal(signal.SIGCONT)
    assert child.communicate()[0] == "done\n"
    for _ in range(2):
        fresh = Checkpoints(checkpoints.path)
        fresh.store.reload()
        for data in (b"before", b"after", b"mine", b"meanwhile"):
            assert fresh.store.read(blob(data).id) == data
        checkpoints.pack()
    assert files(folder) == []


def test_a_full_disk_fails_the_write_and_spoils_nothing(folder: Path) -> None:
    journal = Journal(folder)
    journal.append([blob(b"before")])
    [file] = files(folder)
    size = file.stat().st_size
    with files_of_at_most(size + 100), pytest.raises(OSError, match=f"too large.*{file.name}"):
        journal.append([blob(b"small"), blob(b"y" * 1000)])
    assert file.stat().st_size == size
    assert journal.find(blob(b"small").id) is None
    journal.append([blob(b"small")])
    fresh = Journal(folder)
    fresh.refresh()
    assert [fresh.find(blob(data).id) for data in (b"before", b"small")] == [b"before", b"small"]


def test_a_child_of_a_fork_and_its_parent_spoil_nothing_for_each_other(folder: Path) -> None:
    journal = Journal(folder)
    journal.append([blob(b"before")])
    child = os.fork()
    if child == 0:
        journal.append([blob(b"child")])
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    journal.append([blob(b"parent")])
    journal.refresh()
    for data in (b"before", b"child", b"parent"):
        assert journal.find(blob(data).id) == data


def test_what_is_no_journal_ends_the_reading(tmp_path: Path) -> None:
    record = blob(b"one")
    (tmp_path / "file").write_bytes(
        b"".join(record.encoded_parts) + b"no record at all, but long enough"
    )
    assert [entry for _, entry in read_records(tmp_path / "file")] == [record]


def test_packing_takes_what_a_killed_writer_left(checkpoints: Checkpoints, folder: Path) -> None:
    Journal(folder).append([blob(b"whole"), blob(b"torn")])
    [file] = files(folder)
    file.write_bytes(file.read_bytes()[:-1])
    pack_journal(checkpoints.path)
    assert files(folder) == []
    assert checkpoints.store.read(blob(b"whole").id) == b"whole"
