"""Documents are read whole or refused with a line that names them; nothing hangs or fills up."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from activities.checkpoints import Files, Root, open_checkpoints
from activities.documents.pages import Quality, name_unread_pages, parse_pages
from activities.job.input_documents import read_input_documents
from activities.job.result_cache import ResultCache
from activities.tools.workspace_documents import read_workspace_document
from config.schema.agent import ConfigError
from tests.conftest import Real
from tests.http_server import Handler, served

LIMIT = 10_000
PNG = b"\x89PNG\r\n\x1a\n" + bytes(99)


class Pages(Handler):
    """Serves text at any path, except /missing and /huge."""

    def do_GET(self) -> None:
        # Requests ask for encodings that can be unpacked, whatever else the client supports.
        accepts_gzip = self.headers["Accept-Encoding"] == "gzip, deflate"
        self.send_response(404 if self.path == "/missing" else 200 if accepts_gzip else 406)
        self.end_headers()
        if self.path != "/huge":
            self.wfile.write(b"Green tea.\n")
            return
        try:
            while True:
                self.wfile.write(b"x" * 65_536)
        except OSError:
            self.close_connection = True


@pytest.fixture(scope="module")
def web() -> Iterator[str]:
    with served(Pages) as address:
        yield address


def nothing(root: Root) -> Files:
    return Files.empty(open_checkpoints(root, "job", create=True).store)


def refused(root: Root, source: str) -> str:
    with pytest.raises(ConfigError) as problem:
        read_input_documents(root, [source], LIMIT)
    message = str(problem.value)
    assert message.startswith("document ")
    assert "\n" not in message
    return message


def test_a_document_comes_with_its_text(root: Root, tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_text("Green tea.")
    (document,) = read_input_documents(root, [str(path)], LIMIT)
    assert (document.name, document.data) == ("a.md", b"Green tea.")
    assert document.text == "[page 1]\nGreen tea.\n"
    assert document.notices() == []
    # Plain text needs no extracted copy.
    files = document.put_into(nothing(root))
    assert [entry.path for entry in files.walk("documents")] == ["documents/a.md"]


def test_what_is_to_be_said_of_a_document_is_said_to_people_and_kept_beside_it(
    root: Root, tmp_path: Path
) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes("Записи должны храниться десять лет. Отдел отвечает.".encode("koi8-r"))
    cache = ResultCache(tmp_path / "project")
    cache.folder.parent.mkdir()
    for _ in range(2):  # the second time from the cache
        (document,) = read_input_documents(root, [str(path)], LIMIT, cache=cache)
        warning = "It declares no encoding; it was taken for koi8-u, a guess."
        assert [str(each) for each in document.notices()] == [f"document a.txt: {warning}"]
        files = document.put_into(nothing(root))
        assert b"\xd0\x97\xd0\xb0\xd0\xbf" in files.read("documents/a.txt.txt")
        record = Quality.from_json(files.read("documents/a.txt.reading.json").decode())
        assert record == document.quality == Quality([warning])


def test_files_that_cannot_be_taken(root: Root, tmp_path: Path) -> None:
    (tmp_path / "big.txt").write_bytes(b"x" * (LIMIT + 1))
    (tmp_path / "empty.txt").touch()
    (tmp_path / "a\\b.txt").write_text("x")
    (tmp_path / ("n" * 253)).write_text("x")
    os.mkfifo(tmp_path / "pipe")
    assert "larger than 10,000 bytes" in refused(root, str(tmp_path / "big.txt"))
    assert "no text" in refused(root, str(tmp_path / "empty.txt"))
    assert "cannot read it (No such file" in refused(root, str(tmp_path / "missing"))
    assert "Is a directory" in refused(root, str(tmp_path)) or "regular" in refused(
        root, str(tmp_path)
    )
    assert "not a regular file" in refused(root, "/dev/zero")
    assert "not a regular file" in refused(root, str(tmp_path / "pipe"))
    assert "name cannot be used" in refused(root, str(tmp_path / "a\\b.txt"))
    assert "name cannot be used" in refused(root, str(tmp_path / ("n" * 253)))
    assert "not a path" in refused(root, "a\0b")


def test_staged_documents_stay_in_the_staging_folder(root: Root, tmp_path: Path) -> None:
    (root.staged / "x").mkdir(parents=True)
    (root.staged / "x" / "a.txt").write_text("tea")
    (tmp_path / "secret.txt").write_text("s")
    assert read_input_documents(root, ["staged:x/a.txt"], LIMIT)[0].data == b"tea"
    for source in ("staged:../../../secret.txt", "staged:/etc/passwd", "staged:", "staged:x/../y"):
        assert "not a staged document" in refused(root, source)


def test_what_was_staged_on_another_root_says_which_one_the_worker_has(root: Root) -> None:
    message = refused(root, "staged:x/a.txt")
    assert str(root.path) in message
    assert "LONGHAUL_WORKSPACES" in message


def test_names_are_kept_apart_also_from_the_texts(root: Root, tmp_path: Path) -> None:
    for folder in ("1", "2"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.md").write_text(folder)
    (tmp_path / "1" / "a.md.txt").write_text("named as the text of a.md")
    sources = [str(tmp_path / name) for name in ("1/a.md", "2/a.md", "1/a.md.txt")]
    for order in (sources, sources[::-1]):
        names = [document.name for document in read_input_documents(root, order, LIMIT)]
        assert len({*names, *(f"{name}.txt" for name in names)}) == 6


def test_documents_from_the_web(root: Root, web: str) -> None:
    for path, name in {
        "/a.md": "a.md",
        "/": "document",
        "/x/..": "document",
        "/a%5Cb%00c.txt": "a-b-c.txt",
        f"/{'n' * 300}.txt?v=1": f"{'n' * 96}.txt",
    }.items():
        (document,) = read_input_documents(root, [f"{web}{path}"], LIMIT)
        assert (document.name, document.data) == (name, b"Green tea.\n")


def test_what_the_web_does_not_give(root: Root, web: str) -> None:
    assert "404" in refused(root, f"{web}/missing")
    assert "larger than" in refused(root, f"{web}/huge")
    assert "cannot be fetched" in refused(root, "http://127.0.0.1:1/a.md")
    assert "cannot be fetched" in refused(root, "http://[::1/a.md")
    assert "cannot be fetched" in refused(root, "http:///a.md")


def test_a_project_extracts_each_content_once(tmp_path: Path) -> None:
    root = Root.open(tmp_path / "root", create=True)
    cache = ResultCache(tmp_path / "project")
    cache.folder.parent.mkdir()
    for name in ("a.md", "b.md"):
        (tmp_path / name).write_text("Keep invoices for ten years.\n")
    sources = [str(tmp_path / "a.md"), str(tmp_path / "b.md")]
    first, second = read_input_documents(root, sources, 1000, cache=cache)
    [cached_file] = cache.folder.iterdir()
    assert json.loads(cached_file.read_text())["text"] == first.text == second.text
    cached_file.write_text('{"text": "what was kept", "quality": {}}')
    assert read_input_documents(root, sources[:1], 1000, cache=cache)[0].text == "what was kept"


def test_a_picture_is_a_document_for_a_model_that_can_look_at_it(
    root: Root, tmp_path: Path
) -> None:
    path = tmp_path / "plate.png"
    path.write_bytes(PNG)
    assert "model.vision: true" in refused(root, str(path))
    (document,) = read_input_documents(root, [str(path)], LIMIT, can_view=True)
    files = document.put_into(nothing(root))
    assert files.read("documents/plate.png") == PNG
    assert "view_image shows" in document.notices()[0].text
    # Nothing can be complete of what has no text.
    reading = read_workspace_document(files, "documents/plate.png")
    assert name_unread_pages(reading.pages) == " Could not be read: page 1."
    assert reading.quality.is_unreliable


def test_a_scan_has_a_page_for_each_of_its_pictures(root: Root, tmp_path: Path, real: Real) -> None:
    path = tmp_path / "scan.pdf"
    path.write_bytes(real("pypdf-7.1.0/resources/git.pdf"))
    with pytest.raises(ConfigError, match=r"a scan, .*model\.vision"):
        read_input_documents(root, [str(path)], 10**7)
    (document,) = read_input_documents(root, [str(path)], 10**7, can_view=True)
    assert [page.unread for page in parse_pages(document.text)] == [True]
