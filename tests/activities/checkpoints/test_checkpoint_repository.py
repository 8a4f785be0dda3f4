import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pygit2
import pytest

from activities.checkpoints import (
    CheckpointMissing,
    Checkpoints,
    Files,
    LogEntry,
    Root,
    open_checkpoints,
)
from tests.full_disk import files_of_at_most

LOST = "00" * 19 + "01"


def story(checkpoints: Checkpoints, steps: int) -> list[str]:
    """Commit ids of a chain, the newest last."""
    commits: list[str] = []
    for step in range(steps):
        files = Files.empty(checkpoints.store).write("a.md", b"%d" % step)
        commits.append(checkpoints.commit(files.id, commits[-1:], f"step {step}", 1000 + step))
    return commits


def test_a_commit_is_a_function_of_its_arguments_and_moves_no_ref(checkpoints: Checkpoints) -> None:
    commits = story(checkpoints, 3)
    assert story(checkpoints, 3) == commits
    assert list(checkpoints.store.git.references) == []
    assert checkpoints.files(checkpoints.tree_id(commits[1])).read("a.md") == b"1"


def test_the_log_goes_back_along_first_parents(checkpoints: Checkpoints) -> None:
    commits = story(checkpoints, 4)
    log = checkpoints.log(commits[-1], 2)
    assert log == [
        LogEntry(commits[3], 1003, "step 3", checkpoints.tree_id(commits[3])),
        LogEntry(commits[2], 1002, "step 2", checkpoints.tree_id(commits[2])),
    ]
    assert [entry.id for entry in checkpoints.log(commits[-1], 99)] == commits[::-1]


def test_git_itself_reads_the_story(checkpoints: Checkpoints) -> None:
    commits = story(checkpoints, 2)
    checkpoints.pack()
    shown = subprocess.run(
        ["git", "-C", str(checkpoints.path), "log", "--format=%s %ae %at %ct", commits[-1]],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert shown.stdout.splitlines() == [
        "step 1 longhaul@localhost 1001 1001",
        "step 0 longhaul@localhost 1000 1000",
    ]


def test_a_commit_is_the_one_that_git_makes(checkpoints: Checkpoints) -> None:
    [parent] = story(checkpoints, 1)
    checkpoints.pack()
    git, tree = checkpoints.store.git, checkpoints.tree_id(parent)
    who = pygit2.Signature("longhaul", "longhaul@localhost", 1234, 0)
    for parents in ([], [parent], [parent, parent]):
        for text in ("one ü", "a\n\nb\n", ""):
            git_commit = git.create_commit(None, who, who, text, tree, parents)
            assert checkpoints.commit(tree, parents, text, 1234) == str(git_commit)


def test_a_message_may_hold_anything(checkpoints: Checkpoints) -> None:
    tree = Files.empty(checkpoints.store).id
    commit = checkpoints.commit(tree, [], "write \udcff\0 ü\n\nmore", 1)
    assert checkpoints.log(commit, 1)[0].message == "write \\udcff\\0 ü\n\nmore"


@pytest.mark.parametrize("commit", [LOST, "no id", ""])
def test_a_commit_that_is_lost_is_a_typed_failure(checkpoints: Checkpoints, commit: str) -> None:
    for attempt in (
        lambda: checkpoints.tree_id(commit),
        lambda: checkpoints.log(commit, 1),
        lambda: checkpoints.tag("t", commit),
    ):
        with pytest.raises(CheckpointMissing) as missing:
            attempt()
        assert missing.value.commit == commit


def test_a_lost_object_is_a_typed_failure_everywhere(checkpoints: Checkpoints) -> None:
    empty = Files.empty(checkpoints.store)
    for attempt in (
        lambda: checkpoints.commit(LOST, [], "m", 1),
        lambda: checkpoints.commit(empty.id, [LOST], "m", 1),
        lambda: checkpoints.files(LOST).children(),
        lambda: checkpoints.files(LOST).read("a"),
    ):
        with pytest.raises(CheckpointMissing) as missing:
            attempt()
        assert missing.value.commit == LOST


def test_a_repository_that_is_lost_is_a_typed_failure(root: Root, checkpoints: Checkpoints) -> None:
    with pytest.raises(CheckpointMissing):
        open_checkpoints(root, "other")
    [commit] = story(checkpoints, 1)
    shutil.rmtree(checkpoints.path)
    assert not checkpoints.is_intact(commit)
    with pytest.raises(CheckpointMissing):
        open_checkpoints(root, "job")
    with pytest.raises(CheckpointMissing):
        open_checkpoints(root, "job", create=True).tree_id(commit)


def test_a_repository_that_finds_no_room_leaves_nothing(root: Root) -> None:
    for most in (0, 50, 150):
        with files_of_at_most(most), pytest.raises((OSError, pygit2.GitError)):
            open_checkpoints(root, "job", create=True)
        assert list(root.repository("job").parent.iterdir()) == []
    assert story(open_checkpoints(root, "job", create=True), 1)


def test_what_killed_processes_left_half_made_is_swept(root: Root) -> None:
    under_way, left = (root.repository("job").with_name(f".new-{name}") for name in "ab")
    for draft in (under_way, left):
        draft.mkdir()
        (draft / "HEAD").touch()
    os.utime(left, (0, 0))
    open_checkpoints(root, "job", create=True)
    assert not left.exists()
    assert under_way.exists()


def test_a_damaged_object_is_made_anew(checkpoints: Checkpoints) -> None:
    [commit] = story(checkpoints, 1)
    [file] = (checkpoints.path / "journal").iterdir()
    file.write_bytes(file.read_bytes().replace(b"step 0", b"step X"))
    with pytest.raises(CheckpointMissing):
        checkpoints.tree_id(commit)
    story(checkpoints, 1)
    assert checkpoints.tree_id(commit)
    checkpoints.store.reload()
    assert checkpoints.tree_id(commit)


def test_a_large_file_is_stored_as_git_would(checkpoints: Checkpoints) -> None:
    data = b"line of text\n" * 200_000
    files = Files.empty(checkpoints.store).write("large", data)
    assert files.children()[0].id == str(pygit2.hash(data))
    for _ in range(2):
        assert files.write("large", data) == files
        assert Checkpoints(checkpoints.path).files(files.id).read("large") == data
        checkpoints.pack()
    checked = subprocess.run(
        ["git", "-C", str(checkpoints.path), "fsck", "--full"], capture_output=True, check=False
    )
    assert checked.returncode == 0


def test_a_checkpoint_is_whole_or_not(checkpoints: Checkpoints) -> None:
    first, second = story(checkpoints, 2)
    blob = checkpoints.files(checkpoints.tree_id(first)).children()[0].id
    [file] = (checkpoints.path / "journal").iterdir()
    stored = file.read_bytes()
    offset = stored.index(bytes.fromhex(blob))
    file.write_bytes(stored[:offset] + b"x" + stored[offset + 1 :])
    for handle in (checkpoints, Checkpoints(checkpoints.path)):
        intact = [handle.is_intact(commit) for commit in (first, second, LOST)]
        assert intact == [False, True, False]
    file.unlink()
    assert not checkpoints.is_intact(second)
    assert story(checkpoints, 2) == [first, second]
    assert checkpoints.is_intact(second)


def test_a_file_damaged_in_its_pack_is_missed_and_once_made_again_found(
    checkpoints: Checkpoints, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = random.Random(1).randbytes(4000)
    files = Files.empty(checkpoints.store).write("a", data)
    commit = checkpoints.commit(files.id, [], "made", 1)
    checkpoints.pack()
    [path] = (checkpoints.path / "objects" / "pack").glob("*.pack")
    stored = path.read_bytes()
    offset = stored.index(data[1000:1100])
    path.chmod(0o644)
    path.write_bytes(stored[:offset] + b"x" * 100 + stored[offset + 100 :])

    assert not Checkpoints(checkpoints.path).is_intact(commit)
    again = Checkpoints(checkpoints.path)
    again.store.write_blob(data)
    again.pack()
    [other] = set(path.parent.glob("*.pack")) - {path}
    os.utime(other, (1, 1))  # of several packs, the newest is searched first
    assert again.store.read_stored(bytes.fromhex(files.children()[0].id)) == data
    for _ in range(3):
        assert Checkpoints(checkpoints.path).is_intact(commit)
    # Without room to check packs one by one, no object is reported missing.
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "full"))
    with pytest.raises(FileNotFoundError, match="full"):
        Checkpoints(checkpoints.path).is_intact(commit)


def test_a_mistake_in_settings_for_git_stops_nothing(root: Root, tmp_path: Path) -> None:
    (tmp_path / ".gitconfig").write_text("[core")
    script = "from activities.checkpoints import *; from pathlib import Path; import sys; "
    script += (
        "open_checkpoints(Root.open(Path(sys.argv[1]), create=False), 'new', create=True).tags()"
    )
    subprocess.run(
        [sys.executable, "-c", script, str(root.path)],
        env=os.environ | {"HOME": str(tmp_path)}, check=True,
    )  # fmt: skip


@pytest.mark.parametrize(
    "part", ["refs/tags", "refs/tags/phase", "refs/tags/phase/0001", "objects/pack", "the pack"]
)
def test_what_cannot_be_opened_is_not_taken_for_missing(
    checkpoints: Checkpoints, part: str
) -> None:
    [commit] = story(checkpoints, 1)
    checkpoints.tag("phase/0001", commit)
    checkpoints.pack()
    [pack] = (checkpoints.path / "objects" / "pack").glob("*.pack")
    victim = pack if part == "the pack" else checkpoints.path / part
    victim.rename(victim.with_name("away"))
    # Even root cannot read this.
    victim.symlink_to(victim)
    again = Checkpoints(checkpoints.path)
    with pytest.raises(OSError, match=victim.name):
        again.tags() if part.startswith("refs") else again.tree_id(commit)
    victim.unlink()
    victim.with_name("away").rename(victim)
    assert Checkpoints(checkpoints.path).tree_id(commit)
    assert Checkpoints(checkpoints.path).tags() == {"phase/0001": commit}


def test_tags_replace_and_survive_what_a_killed_writer_left(checkpoints: Checkpoints) -> None:
    first, second = story(checkpoints, 2)
    checkpoints.tag("phase-001", first)
    (checkpoints.path / "refs" / "tags" / "phase-001.lock").write_text("half")
    (checkpoints.path / "refs" / "tags" / "phase-002.lock").write_text("half")
    assert checkpoints.tags() == {"phase-001": first}
    checkpoints.tag("phase-001", second)
    checkpoints.tag("phase-002", first)
    assert checkpoints.tags() == {"phase-001": second, "phase-002": first}
    assert not list((checkpoints.path / "refs").rglob("*.lock"))
    (checkpoints.path / "refs" / "tags" / "phase-003").write_text("")
    assert list(checkpoints.tags()) == ["phase-001", "phase-002"]
    with pytest.raises(ValueError, match="name of a tag"):
        checkpoints.tag("../x", first)


def test_a_tag_that_finds_no_room_is_named_and_stays_as_it_was(checkpoints: Checkpoints) -> None:
    first, second = story(checkpoints, 2)
    checkpoints.tag("phase/0001", first)
    with files_of_at_most(10), pytest.raises(OSError, match=r"tags/phase/0001\.lock"):
        checkpoints.tag("phase/0001", second)
    assert checkpoints.tags() == {"phase/0001": first}
    checkpoints.tag("phase/0001", second)
    assert checkpoints.tags() == {"phase/0001": second}


def test_a_handle_belongs_to_its_thread_and_few_are_kept(root: Root) -> None:
    mine = open_checkpoints(root, "job", create=True)
    assert open_checkpoints(root, "job") is mine
    others: list[Checkpoints] = []
    thread = threading.Thread(target=lambda: others.append(open_checkpoints(root, "job")))
    thread.start()
    thread.join()
    assert others[0] is not mine
    for number in range(64):
        open_checkpoints(root, f"job {number}", create=True)
    assert open_checkpoints(root, "job") is not mine


@pytest.mark.parametrize("broken", ["HEAD", "config"])
def test_a_repository_that_git_cannot_open_is_told_with_what_to_do(
    root: Root, checkpoints: Checkpoints, broken: str
) -> None:
    [commit] = story(checkpoints, 1)
    checkpoints.pack(wait=1)
    if broken == "HEAD":
        (checkpoints.path / broken).unlink()
    else:
        (checkpoints.path / broken).write_text("[")
    with pytest.raises(CheckpointMissing, match=r"cannot be opened .* HEAD and config of another"):
        checkpoints.store.reload()
    other = open_checkpoints(root, "other", create=True)
    for name in ("HEAD", "config"):
        shutil.copy(other.path / name, checkpoints.path)
    checkpoints.store.reload()
    assert checkpoints.is_intact(commit)
