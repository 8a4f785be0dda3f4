"""Search by meaning: what is there is found, what is not there never, whatever befell the index."""

import sqlite3
import threading
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from activities.redaction import credentials
from activities.search.embedding import NO_EMBEDDINGS, EmbeddingsFailed, choose_embedder
from activities.search.hybrid_search import search_words
from config.schema.model_settings import Embeddings
from tests.activities.search.endpoint import Endpoint, serving
from tests.activities.standing import JOB, Standing

LOCAL = find_spec("wordllama") is not None
RULE = "Every invoice must be kept for ten years.\n"


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with serving() as server:
        yield server


@pytest.fixture
def job(tmp_path: Path, endpoint: Endpoint) -> Standing:
    standing = Standing.begin(
        tmp_path, set={"embeddings": {"model": "fake", "base_url": endpoint.url}}
    )
    standing.write("notes/law.md", f"# Law\n\n{RULE}")
    standing.write("notes/kitchen.md", "The kettle is made of copper.\n")
    standing.write("documents/wages.md", "Who may see a wage is said in annex B, article 4711.\n")
    return standing


def test_the_index_does_not_hold_the_credentials_in_an_address(tmp_path: Path) -> None:
    with serving() as endpoint:
        address = endpoint.url.replace("://", "://user:hunter2-hunter2@") + "?key=hunter3"
        embeddings = {"model": "fake", "base_url": address}
        job = Standing.begin(tmp_path, set={"embeddings": embeddings})
        job.write("notes/law.md", RULE)
        search(job, "storing bills")
        assert endpoint.asked
        index_bytes = index_of(job).read_bytes()
    assert b"fake http://" in index_bytes
    assert b"hunter" not in index_bytes


def search(job: Standing, query: str, **more: str) -> str:
    return job.call("search_files", query=query, mode="semantic", **more)


def index_of(job: Standing) -> Path:
    (path,) = (job.root.repository(JOB) / "search").glob("*.sqlite")
    return path


def test_a_paraphrase_and_an_exact_term_come_first(job: Standing) -> None:
    assert search(job, "storing bills").startswith("notes/law.md:1: # Law Every invoice")
    assert search(job, "4711").startswith("documents/wages.md:1: ")
    assert "[" not in search(job, "pay")


def test_a_path_narrows_the_search(job: Standing) -> None:
    job.write("notes0/other.md", RULE)
    inside = search(job, "storing bills", path="notes")
    assert "notes/law.md" in inside
    assert "notes0" not in inside
    assert "wages" not in search(job, "wage", path="notes/law.md")
    assert "There is no" in search(job, "wage", path="nowhere")
    job.put(lambda files: files.write("tools/wage.md", b"Asks for a wage."))
    assert "tools/" not in search(job, "wage")
    assert "tools/wage.md" in search(job, "wage", path="tools")


def test_no_credential_of_the_worker_is_sent(
    job: Standing, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEA_TOKEN", "l0ng-leaf-4711")
    credentials.refresh_credential_values()
    job.write("notes/key.md", "The kettle's key is l0ng-leaf-4711.")
    job.call("search_files", query="boiler", mode="semantic")
    assert "The kettle's key is [redacted]." in endpoint.texts


def test_only_what_is_new_is_embedded(job: Standing, endpoint: Endpoint) -> None:
    search(job, "pay")
    before = len(endpoint.texts)
    job.write("notes/new.md", "A boiler.\n")
    search(job, "pay")
    assert endpoint.texts[before:] == ["pay", "A boiler."]


def test_after_a_rewind_only_what_is_there_is_found(job: Standing, endpoint: Endpoint) -> None:
    search(job, "storing bills")
    start, first = job.commit, search(job, "storing bills")
    job.put(lambda files: files.delete("notes").write("output/late.md", b"The bills are stored."))
    later = search(job, "storing bills")
    assert "output/late.md" in later
    assert "law.md" not in later
    job.commit = start
    text_count = len(endpoint.texts)
    assert search(job, "storing bills") == first
    assert endpoint.texts[text_count:] == ["storing bills"]


def test_the_rank_does_not_depend_on_what_was_there_before(job: Standing) -> None:
    start = job.commit
    fresh = search(job, "kettle copper law")
    job.put(lambda files: files.write("many.md", b"kettle copper\n\n" * 3000))
    search(job, "kettle")
    job.commit = start
    assert search(job, "kettle copper law") == fresh


@pytest.mark.parametrize("spoilt", [b"", b"no database", "middle", "rows", "form"])
def test_a_damaged_index_is_made_anew(job: Standing, spoilt: bytes | str) -> None:
    first = search(job, "storing bills")
    path = index_of(job)
    if isinstance(spoilt, bytes):
        path.write_bytes(spoilt)
    elif spoilt == "middle":
        data = bytearray(path.read_bytes())
        data[4096:] = b"\xa5" * (len(data) - 4096)
        path.write_bytes(data)
    else:
        with sqlite3.connect(path) as base:
            base.execute(
                "PRAGMA user_version = 99"
                if spoilt == "form"
                else "UPDATE vectors SET vector=x'00'"
            )
        base.close()
    assert search(job, "storing bills") == first
    assert search(job, "storing bills") == first


def test_a_lost_index_is_made_anew(job: Standing) -> None:
    first = search(job, "storing bills")
    index_of(job).unlink()
    assert search(job, "storing bills") == first


def test_a_write_that_was_never_finished_holds_nobody_up(job: Standing) -> None:
    first = search(job, "storing bills")
    base = sqlite3.connect(index_of(job), isolation_level=None)
    base.execute("BEGIN IMMEDIATE")
    # With nothing new to write, a lock does not block reading.
    assert search(job, "storing bills") == first
    base.close()


def test_without_an_endpoint_that_answers_words_find_it(job: Standing, endpoint: Endpoint) -> None:
    endpoint.fails_after = 0
    answer = search(job, "invoice")
    assert answer.startswith("notes/law.md:1:")
    assert "[Found by words alone: the embeddings endpoint failed: " in answer
    assert "out of service" in answer


def test_an_endpoint_that_fails_half_way_says_so(job: Standing, endpoint: Endpoint) -> None:
    endpoint.fails_after = 1
    assert "[Found by words, and by meaning in part: " in search(job, "invoice")
    endpoint.fails_after = None
    assert "Found by words" not in search(job, "invoice")


@pytest.mark.parametrize(
    "answer", [{"data": []}, {"data": [{"index": 0, "embedding": "?"}]}, {"data": None}, {"x": 1}]
)
def test_an_answer_that_is_none_is_told(
    job: Standing, endpoint: Endpoint, answer: dict[str, object]
) -> None:
    endpoint.answer = answer
    assert "[Found by words alone: the embeddings endpoint" in search(job, "invoice")


def test_an_endpoint_whose_model_changes_leaves_no_search_broken(
    job: Standing, endpoint: Endpoint
) -> None:
    # Between the query and the passages, whose vectors then cannot be compared with it.
    endpoint.changes_after = 1
    assert "changed its model" in search(job, "invoices")
    assert "changed its model" not in search(job, "invoices")
    endpoint.changes_after = None
    assert "Found by words" not in search(job, "invoices")


def test_one_who_has_no_time_asks_an_endpoint_once(endpoint: Endpoint) -> None:
    endpoint.gate = threading.Semaphore(0)
    embedder = choose_embedder(Embeddings(model="m", base_url=endpoint.url), patience=0.2)
    with pytest.raises(EmbeddingsFailed, match="timed out"):
        embedder.embed(["tea"])
    endpoint.gate.release(100)
    assert len(endpoint.asked) == 1


def test_a_key_is_read_as_that_of_a_model_is(
    tmp_path: Path, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = {"model": "fake", "base_url": endpoint.url, "api_key_variable": "TEA_KEY"}
    job = Standing.begin(tmp_path, set={"embeddings": named})
    job.write("notes/law.md", RULE)
    monkeypatch.setenv("TEA_KEY", "one\ntwo")
    assert "the key in TEA_KEY has characters that no key has" in search(job, "storing bills")
    monkeypatch.setenv("TEA_KEY", "k\r\n")
    assert "notes/law.md" in search(job, "storing bills")
    assert endpoint.asked


def test_a_key_that_is_missing_is_named(tmp_path: Path) -> None:
    job = Standing.begin(
        tmp_path, set={"embeddings": {"model": "m", "api_key_variable": "NO_SUCH_KEY"}}
    )
    assert "NO_SUCH_KEY is not set in the worker" in search(job, "tea")


@pytest.mark.skipif(LOCAL, reason="the extra is installed")
def test_without_embeddings_the_answer_says_what_would_help(tmp_path: Path) -> None:
    job = Standing.begin(tmp_path)
    answer = search(job, "tea")
    assert answer.startswith("instructions.md:1: Write about tea.")
    assert NO_EMBEDDINGS in answer


@pytest.mark.skipif(not LOCAL, reason="needs the extra `embeddings`")
def test_the_local_model_finds_a_paraphrase(tmp_path: Path) -> None:
    job = Standing.begin(tmp_path)
    job.write("notes/law.md", RULE)
    job.write("notes/kitchen.md", "The kettle is made of copper.\n")
    answer = search(job, "how long are bills stored")
    assert answer.startswith("notes/law.md:1:")
    assert "Found by words" not in answer


@pytest.mark.parametrize("query", ['"', "a AND NOT (b*", "NEAR(", "???", "^x:y", "x" * 1000, "\0"])
def test_no_query_is_a_mistake(job: Standing, query: str) -> None:
    assert not search(job, query).startswith("Error: ")


def test_odd_files_do_no_harm(job: Standing) -> None:
    odd = ("notes", "caf\udce9\\x\n.md")

    def put(files):
        written = files.write("binary", b"\x00\xff\xfe" * 100).write("wide", b"x" * 300_000)
        return written.with_tree_entry(odd, written.tree_entry(("notes", "law.md"))).write(
            "empty", b""
        )

    job.put(put)
    assert search(job, "storing bills").count("# Law") == 2


@pytest.mark.skipif(not LOCAL, reason="needs the extra embeddings")
@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("the physician", "doctor"),
        ("how long are the bills stored", "law"),
        ("was ist die Frist für Belege", "frist"),
        ("zxqv blorp", ""),
        ("purple monkey dishwasher", ""),
    ],
)
def test_what_has_nothing_to_do_with_a_query_is_not_found(
    tmp_path: Path, query: str, first: str
) -> None:
    job = Standing.begin(tmp_path)
    job.write("notes/kittens.md", "The kittens are the most playful of the animals in the house.\n")
    job.write("notes/doctor.md", "A doctor treats a patient in a hospital.\n")
    job.write("notes/law.md", RULE)
    job.write("notes/frist.md", "Die Aufbewahrungsfrist für Rechnungen ist zehn Jahre.\n")
    found = search(job, query, path="notes")
    if first:
        assert found.startswith(f"notes/{first}.md:1")
    else:
        assert found == f"Nothing in notes matches {query!r}."


def test_stop_words_are_those_of_the_query_s_language() -> None:
    assert search_words("What is the die of a stamp?") == ["die", "stamp"]
    assert search_words("Was ist die Frist für Belege?") == ["frist", "belege"]
    assert search_words("the of and") == ["the", "of", "and"]
