"""Private folders: brought to a tree, read back into one, and never shared or inherited dirty."""

import contextlib
import errno
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from activities.checkpoints import Files, FilesError, Root, open_checkpoints
from activities.checkpoints.checkin import CheckinLimits
from activities.commands.private_folder import private_folder, remove_private_folders
from tests.soak import patient


@pytest.fixture
def files(root: Root) -> Files:
    store = open_checkpoints(root, "job", create=True).store
    return (
        Files.empty(store)
        .write("notes/a.md", b"a")
        .write("run.sh", b"#!", executable=True)
        .make_folder("empty")
        .link("link", "notes/a.md")
    )


def test_a_folder_nobody_touched_reads_back_as_the_same_tree(root: Root, files: Files) -> None:
    with private_folder(files, root, "job") as private:
        assert (private.path / "notes" / "a.md").read_text() == "a"
        assert (private.path / "link").readlink() == Path("notes/a.md")
        assert os.access(private.path / "run.sh", os.X_OK)
        assert (private.path / "empty").is_dir()
        assert private.read_back() == files


def test_everything_a_command_can_leave_comes_back(root: Root, files: Files) -> None:
    with private_folder(files, root, "job") as private:
        folder = private.path
        (folder / "notes" / "a.md").write_text("edited")
        (folder / "run.sh").unlink()
        (folder / "deep" / "empty").mkdir(parents=True)
        (folder / "tool").write_text("#!")
        (folder / "tool").chmod(0o755)
        (folder / "out").symlink_to("/etc/passwd")
        (folder / "new\nline").write_text("x")
        (folder / os.fsdecode(b"\xff\xfe")).write_text("y")
        subprocess.run(["git", "init", "-q", "repo"], cwd=folder, check=True)
        (folder / "secretive").mkdir()
        (folder / "secretive" / "x").write_text("z")
        (folder / "secretive" / "x").chmod(0)
        (folder / "secretive").chmod(0)

        after = private.read_back()

        assert private.notes == []
    assert after.read("notes/a.md") == b"edited"
    assert after.entry("run.sh") is None
    assert after.entry("repo/.git/HEAD")
    kinds = {entry.path: (entry.kind, entry.executable) for entry in after.walk()}
    assert kinds["deep/empty"] == ("folder", False)
    assert kinds["tool"] == ("file", True)
    assert kinds["out"] == ("link", False)
    assert kinds["new\nline"] == ("file", False)
    assert kinds["\udcff\udcfe"] == ("file", False)
    assert after.read("secretive/x") == b"z"
    with private_folder(after, root, "job") as again:
        assert again.read_back() == after


def test_the_next_attempt_starts_from_its_own_tree(root: Root, files: Files) -> None:
    with private_folder(files, root, "job") as private:
        (private.path / "notes" / "b.md").write_text("b")
        (private.path / "run.sh").unlink()
        private.read_back()
    with private_folder(files, root, "job") as private:
        assert not (private.path / "notes" / "b.md").exists()
        assert (private.path / "run.sh").exists()
        assert private.read_back() == files


def test_what_was_not_read_back_is_not_there_next_time(root: Root, files: Files) -> None:
    with private_folder(files, root, "job") as private:
        first = private.path
        descriptor = os.open(first, os.O_RDONLY)
        (first / "stray").write_text("x")
    with private_folder(files, root, "job") as private:
        # A process that outlived its attempt writes into the folder that was thrown away.
        with pytest.raises(FileNotFoundError):
            os.open("late", os.O_CREAT | os.O_WRONLY, dir_fd=descriptor)
        assert private.path == first
        assert private.read_back() == files
    os.close(descriptor)


@pytest.mark.parametrize("read", [True, False])
def test_a_folder_that_a_command_closed_is_open_again(
    root: Root, files: Files, *, read: bool
) -> None:
    with private_folder(files, root, "job") as private:
        private.path.chmod(0o005)
        if read:
            assert private.read_back() == files
            assert private.path.stat().st_mode & 0o777 == 0o705
            private.path.chmod(0)
    with private_folder(files, root, "job") as private:
        assert private.path.stat().st_mode & 0o700 == 0o700
        assert private.read_back() == files


def test_attempts_at_the_same_time_have_a_folder_each(root: Root, files: Files) -> None:
    with private_folder(files, root, "job") as one, private_folder(files, root, "job") as other:
        assert one.path != other.path
        (one.path / "x").write_text("1")
        assert other.read_back() == files


def test_a_killed_holder_frees_its_folder_and_leaves_nothing(root: Root, files: Files) -> None:
    code = (
        "import sys, time\n"
        "from pathlib import Path\n"
        "from activities.checkpoints import Files, Root, open_checkpoints\n"
        "from activities.commands.private_folder import private_folder\n"
        "root = Root.open(Path(sys.argv[1]), create=False)\n"
        "files = Files(open_checkpoints(root, 'job').store, sys.argv[2])\n"
        "with private_folder(files, root, 'job') as private:\n"
        "    (private.path / 'half').write_text('x')\n"
        "    print(private.path, flush=True)\n"
        "    time.sleep(60)\n"
    )
    files.store.flush()
    holder = subprocess.Popen(
        [sys.executable, "-c", code, str(root.path), files.id], stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout
    path = holder.stdout.readline().strip()
    assert (Path(path) / "half").exists()
    holder.kill()
    holder.wait()
    holder.stdout.close()
    # As after a kill between creating a file and moving it into place.
    drafts = Path(path).with_name("drafts")
    drafts.mkdir(exist_ok=True)
    (drafts / "0").write_text("half a file")
    with private_folder(files, root, "job") as private:
        assert str(private.path) == path
        assert private.read_back() == files


def test_an_edit_that_keeps_size_and_time_is_seen(root: Root, files: Files) -> None:
    with private_folder(files, root, "job") as private:
        path = private.path / "notes" / "a.md"
        was = path.stat()
        path.write_text("b")
        os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))
        assert private.read_back().read("notes/a.md") == b"b"


def test_what_no_tree_holds_is_named_and_gone_next_time(root: Root, files: Files) -> None:
    small = Files(files.store, files.id, limit=10)
    with private_folder(small, root, "job") as private:
        os.mkfifo(private.path / "fifo")
        # The path of a socket is limited to 108 bytes, so it is relative.
        with socket.socket(socket.AF_UNIX) as sock, contextlib.chdir(private.path):
            sock.bind("s")
        (private.path / "notes" / "a.md").write_text("far too long for it")
        (private.path / "errors").mkdir()
        assert private.read_back() == small
        assert [note.split(":")[0] for note in private.notes] == [
            "Left out 'fifo'",
            "Left out 'notes/a.md'",
            "Left out 's'",
            "Left out errors/",
        ]
    with private_folder(small, root, "job") as private:
        assert sorted(p.name for p in private.path.iterdir()) == [
            "empty",
            "link",
            "notes",
            "run.sh",
        ]


def test_more_than_a_checkpoint_takes_is_refused(root: Root, files: Files) -> None:
    with private_folder(files, root, "job", CheckinLimits(new_bytes=100)) as private:
        (private.path / "big").write_bytes(b"x" * 101)
        with pytest.raises(FilesError, match="More than 100 bytes"):
            private.read_back()
    with private_folder(files, root, "job", CheckinLimits(entries=10)) as private:
        for n in range(10):
            (private.path / str(n)).touch()
        with pytest.raises(FilesError, match="more than 10 files"):
            private.read_back()


def test_thousands_of_files_cost_what_changed(root: Root, files: Files) -> None:
    for n in range(3000):
        files = files.write(f"src/{n % 50}/{n}.txt", b"%d" % n)
    with private_folder(files, root, "job") as private:
        first = private.read_back()
    written = _journal_bytes(root)
    began = time.perf_counter()
    with private_folder(files, root, "job") as private:
        (private.path / "src" / "7" / "7.txt").write_text("changed")
        after = private.read_back()
    after.store.flush()
    assert first == files
    assert after.read("src/7/7.txt") == b"changed"
    assert time.perf_counter() - began < patient(2)
    assert _journal_bytes(root) - written < 20_000


def _journal_bytes(root: Root) -> int:
    store = open_checkpoints(root, "job").store
    store.flush()
    return sum(p.stat().st_size for p in store.path.rglob("*") if p.is_file())


def test_a_forgotten_job_has_no_folders(root: Root, files: Files) -> None:
    with private_folder(files, root, "job") as private:
        # A command may leave a folder that even its owner may not open.
        (private.path / "shut").mkdir(mode=0)
        private.read_back()
    remove_private_folders(root, "job")
    assert not private.path.parent.parent.exists()
    remove_private_folders(root, "job")


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("notes", "Is a directory"),
        ("run.sh/report.xml", "Not a directory"),
        ("loop/report.xml", "Too many levels of symbolic links"),
        ("n" * 300, "File name too long"),
        ("missing", "No such file"),
    ],
)
def test_a_path_that_is_not_what_it_was_taken_for_is_no_broken_disk(
    root: Root, files: Files, path: str, why: str
) -> None:
    files = files.link("loop", "loop")
    with (
        pytest.raises(FilesError, match=f"cannot be used: {why}"),
        private_folder(files, root, "job") as private,
    ):
        (private.path / path).read_bytes()


def test_a_broken_disk_is_one(root: Root, files: Files) -> None:
    for error in (OSError(errno.ENOSPC, "No space"), OSError(errno.EACCES, "Denied", "/elsewhere")):
        with pytest.raises(OSError), private_folder(files, root, "job") as private:
            error.filename = error.filename or str(private.path / "notes")
            raise error
