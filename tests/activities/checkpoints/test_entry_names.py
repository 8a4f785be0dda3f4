import re
import subprocess

import pygit2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from activities.checkpoints import Files, unescape_name
from activities.checkpoints.entry_names import entry_name
from activities.checkpoints.object_store import ObjectStore
from activities.checkpoints.packing import pack_journal

LOOK_ALIKES = [
    ".git", ".GIT", ".Git", "git~1", "GIT~1", ".g\u200cit", "\u200d.git", ".git\u200f", ".git ",
    ".git.", ".git::$INDEX_ALLOCATION", ".gitmodules", "gitmod~1", "gi7eba~1", ".gitattributes",
    "a\\b", "C:", "%", "%2E", "%s0", "%n257", "tab\there", "\x7f", "\ufeffbom", "\udcff\udc80",
    "\x85", "con", "trailing ", "trailing.", "…", "é", "e\u0301",
]  # fmt: skip


@settings(deadline=None)
@given(st.binary(min_size=1, max_size=60).filter(lambda raw: not {0, 47} & set(raw)))
def test_any_file_name_comes_back(raw: bytes) -> None:
    name = raw.decode("utf-8", "surrogateescape")
    if name in {".", ".."}:
        return
    entry = entry_name(name)
    assert unescape_name(entry) == name
    entry.decode()  # valid UTF-8
    assert re.fullmatch(rb"(?:[^%]|%[0-9A-F]{2})*", entry, re.DOTALL)


@settings(deadline=None)
@given(st.lists(st.binary(min_size=1, max_size=4), unique=True, max_size=30))
def test_different_names_have_different_entries(raws: list[bytes]) -> None:
    names = {raw.decode("utf-8", "surrogateescape") for raw in raws}
    assert len({entry_name(name) for name in names}) == len(names)


def test_two_spellings_of_the_same_bytes_are_one_entry() -> None:
    assert entry_name("\udcc3\udca9") == entry_name("é")


@pytest.mark.parametrize("entry", [b"..", b"%2E%2E", b"a/b", b"%2Fetc", b"", b".", b"a%00"])
def test_an_entry_that_is_no_file_name_is_refused(entry: bytes) -> None:
    with pytest.raises(ValueError, match="not a file name"):
        unescape_name(entry)


def test_git_accepts_every_look_alike(store: ObjectStore) -> None:
    files = Files.empty(store)
    for index, name in enumerate(LOOK_ALIKES):
        files = files.with_tree_entry(
            (name, name), files.write("x", b"%d" % index).tree_entry(("x",))
        )
    store.flush()
    pack_journal(store.path)
    author = pygit2.Signature("a", "a@b", 1, 0)
    commit = store.git.create_commit("refs/heads/checked", author, author, "m", files.id, [])
    checked = subprocess.run(
        ["git", "-c", "core.protectHFS=true", "-c", "core.protectNTFS=true", "-C", str(store.path),
         "fsck", "--strict", "--no-dangling", str(commit)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (checked.returncode, "error" in checked.stderr) == (0, False), checked.stderr
    assert {entry.path for entry in files.walk()} == {f"{name}/{name}" for name in LOOK_ALIKES}
