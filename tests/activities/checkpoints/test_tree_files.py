import pytest

from activities.checkpoints import FileMissing, Files, FilesError, PathRefused
from activities.checkpoints.object_store import ObjectStore


@pytest.fixture
def files(store: ObjectStore) -> Files:
    return Files.empty(store).write("notes/a.md", b"text").write("b.sh", b"#!", executable=True)


def paths(files: Files, path: str = "") -> list[str]:
    return [entry.path for entry in files.walk(path)]


def test_a_change_makes_a_new_handle_and_leaves_the_old_one(files: Files) -> None:
    changed = files.write("notes/a.md", b"new")
    assert (files.read("notes/a.md"), changed.read("notes/a.md")) == (b"text", b"new")
    assert changed.write("notes/a.md", b"text").id == files.id


def test_the_mode_is_kept_unless_told(files: Files) -> None:
    def is_executable(changed: Files) -> bool:
        entry = changed.entry("b.sh")
        assert entry is not None
        return entry.executable

    assert is_executable(files.write("b.sh", b"x"))
    assert not is_executable(files.write("b.sh", b"x", executable=False))


def test_entries(files: Files) -> None:
    entry = files.entry("notes/a.md")
    assert entry is not None
    assert (entry.path, entry.kind, entry.size, entry.executable) == (
        "notes/a.md",
        "file",
        4,
        False,
    )
    folder = files.entry("notes")
    assert folder is not None
    assert (folder.kind, folder.size) == ("folder", 0)
    assert files.entry("nothing") is None
    assert files.entry("b.sh/below") is None


def test_listings_are_sorted_by_bytes_and_empty_folders_are_kept(store: ObjectStore) -> None:
    files = Files.empty(store).make_folder("z/empty")
    for name in ["é", "a.md", "a/x", "B", "\udcff", ".git/HEAD", "ab"]:
        files = files.write(name, b"")
    assert [entry.path for entry in files.children()] == [
        ".git", "B", "a", "a.md", "ab", "z", "é", "\udcff"
    ]  # fmt: skip
    assert paths(files) == [
        ".git/HEAD", "B", "a/x", "a.md", "ab", "z/empty", "é", "\udcff"
    ]  # fmt: skip
    assert files.delete("z/empty").entry("z") is not None


def test_delete_and_move(files: Files) -> None:
    assert paths(files.delete("notes")) == ["b.sh"]
    moved = files.move("notes", "deep/er")
    assert paths(moved) == ["b.sh", "deep/er/a.md"]
    moved_file = files.move("b.sh", "c.sh").entry("c.sh")
    assert moved_file is not None
    assert moved_file.executable
    assert files.move("b.sh", "b.sh") == files


@pytest.mark.parametrize(
    ("attempt", "advice"),
    [
        (lambda files: files.read("notes"), "folder"),
        (lambda files: files.write("notes", b""), "folder"),
        (lambda files: files.write("b.sh/x", b""), "not a folder"),
        (lambda files: files.make_folder("b.sh"), "another name"),
        (lambda files: files.children("b.sh"), "is a file"),
        (lambda files: files.move("notes", "notes/in"), "into itself"),
        (lambda files: files.move("notes", "b.sh"), "delete it first"),
        (lambda files: files.move("b.sh", "notes/a.md"), "delete it first"),
        (lambda files: files.link("notes", "b.sh"), "another name"),
        (lambda files: files.read("no"), "no file 'no'"),
        (lambda files: files.delete("no/no"), "no file"),
        (lambda files: files.move("no", "x"), "no file"),
        (lambda files: files.children("no"), "no file"),
    ],
)
def test_what_does_not_fit_says_what_to_do(files: Files, attempt, advice: str) -> None:
    with pytest.raises(FilesError, match=advice) as failed:
        attempt(files)
    assert str(failed.value).isprintable()
    assert isinstance(failed.value, FileMissing) == ("no file" in advice)


def test_a_file_over_the_limit_is_refused(store: ObjectStore) -> None:
    files = Files(store, Files.empty(store).id, limit=10).write("a", b"x" * 10)
    with pytest.raises(FilesError, match="11 bytes"):
        files.write("b", b"x" * 11)


def test_a_folder_is_not_moved_where_its_paths_would_be_too_long(files: Files) -> None:
    deep = files.write("/".join(["d"] * 150), b"")
    with pytest.raises(PathRefused, match="deep"):
        deep.move("d", "/".join(["e"] * 60))


def test_a_link_to_nothing_is_told_from_a_missing_file(files: Files) -> None:
    linked = files.link("here", "gone.md")
    with pytest.raises(FilesError, match=r"'here' is a link to 'gone\.md', which is not there\."):
        linked.read("here")
    with pytest.raises(FilesError, match="'here' is a link to"):
        linked.children("here")
    with pytest.raises(FilesError, match="There is no file 'gone"):
        linked.read("gone.md")


def test_links_are_followed_inside_the_tree(files: Files) -> None:
    linked = files.link("notes/up", "..").link("here", "notes/up/notes").link("two", "here/a.md")
    assert linked.read("two") == b"text"
    assert linked.read("here/up/two") == b"text"
    assert paths(linked, "here") == ["notes/a.md", "notes/up"]
    entry = linked.entry("two")
    assert entry is not None
    assert entry.kind == "link"
    written = linked.write("two", b"through")
    assert written.read("notes/a.md") == b"through"
    assert linked.link("new", "notes/made").write("new", b"1").read("notes/made") == b"1"
    assert linked.delete("two").read("notes/a.md") == b"text"


@pytest.mark.parametrize("target", ["/etc/passwd", "../x", "notes/../../x", "out", "./out/x"])
def test_links_that_lead_out_or_in_circles_are_refused(files: Files, target: str) -> None:
    linked = files.link("out", target)
    for attempt in (
        lambda: linked.read("out"),
        lambda: linked.write("out", b""),
        lambda: linked.write("out/x", b""),
        lambda: linked.children("out"),
        lambda: linked.delete("out/x"),
        lambda: linked.make_folder("out/x"),
    ):
        with pytest.raises(PathRefused):
            attempt()
    assert linked.delete("out") == files
