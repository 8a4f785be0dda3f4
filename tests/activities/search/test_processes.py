"""Several processes at one index, killed ones among them; and many files."""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from activities.checkpoints import Files
from activities.search.hybrid_search import search_passages
from activities.search.search_index import SearchIndex, with_search_index
from config.schema.model_settings import Embeddings
from tests.activities.search.endpoint import Endpoint, serving
from tests.activities.standing import JOB, Standing
from tests.soak import patient, soak

PAGES = 400
MANY, MOST_SECONDS = soak((1_000, 0.2), (10_000, 1.0))
"""Number of files, and the most processor time that a search in them may take; other work on the
machine is not measured.
"""


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with serving() as server:
        yield server


def pages(files: Files, count: int, name: str = "page") -> Files:
    for number in range(count):
        path = f"{name}/{number // 100:03d}/{number:05d}.md"
        text = f"# {name} {number}\n\nWord{number} stands here among {'others ' * 20}.\n"
        files = files.write(path, text.encode())
    return files.write(
        f"{name}/law.md", b"Every invoice must be kept for ten years, see ZX-4711.\n"
    )


def searching(job: Standing, commit: str, url: str, *queries: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.activities.search.searcher", str(job.root.path)]
    return subprocess.Popen([*command, commit, url, *queries], stdout=subprocess.PIPE, text=True)


def answers(process: subprocess.Popen[str]) -> list[Any]:
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    return [json.loads(line) for line in out.splitlines()]


def test_what_a_killed_process_embedded_stays_done(tmp_path: Path, endpoint: Endpoint) -> None:
    job = Standing.begin(tmp_path)
    job.put(lambda files: pages(files, PAGES))
    gate = endpoint.gate = threading.Semaphore(4)
    process = searching(job, job.commit, endpoint.url, "storing bills")
    deadline = time.monotonic() + 60
    while len(endpoint.asked) < 5 and time.monotonic() < deadline:
        time.sleep(0.02)
    process.kill()
    process.communicate()
    assert len(endpoint.asked) == 5
    done = {text for batch in endpoint.asked[1:4] for text in batch}
    endpoint.gate = None
    gate.release()
    before = len(endpoint.texts)
    (answer,) = answers(searching(job, job.commit, endpoint.url, "storing bills"))
    assert answer[:2] == ["", "page/law.md"]
    later = endpoint.texts[before:]
    assert len(done) == 3 * 64
    assert not done.intersection(later)
    assert len(done) + len(set(later)) == PAGES + 1 + 1 + 1


def test_processes_that_index_two_trees_at_once_each_find_their_own(
    tmp_path: Path, endpoint: Endpoint
) -> None:
    job = Standing.begin(tmp_path)
    trees = {}
    for name in ("red", "blue"):
        start = job.commit
        job.put(partial(pages, count=PAGES, name=name))
        trees[name], job.commit = job.commit, start
    queries = ["storing bills", "ZX-4711", "word7", "word8", "word9"]
    started = {name: searching(job, trees[name], endpoint.url, *queries) for name in trees}
    for name, process in started.items():
        results = answers(process)
        assert [answer[0] for answer in results] == [""] * len(queries)
        assert [answer[1] for answer in results[:2]] == [f"{name}/law.md"] * 2
        assert [answer[1] for answer in results[2:]] == [
            f"{name}/000/0000{n}.md" for n in (7, 8, 9)
        ]
        others = {path for answer in results for path in answer[1:] if not path.startswith(name)}
        assert others <= {"instructions.md"}


def test_many_files_are_searched_soon(tmp_path: Path, endpoint: Endpoint) -> None:
    job = Standing.begin(tmp_path)
    job.put(lambda files: pages(files, MANY))
    files = job.open().files

    def seconds(query: str) -> float:
        start = time.process_time()
        results = search_passages(
            job.root.repository(JOB) / "search",
            files,
            query,
            embeddings=Embeddings(model="fake", base_url=endpoint.url),
        )
        assert results.note == ""
        assert results.hits[0].path == "page/law.md"
        return time.process_time() - start

    seconds("storing bills")
    # The best of three.
    assert min(seconds("storing bills") for _ in range(3)) < patient(MOST_SECONDS)
    assert min(seconds("ZX-4711") for _ in range(3)) < patient(MOST_SECONDS)


def test_an_index_that_another_process_replaced_meanwhile_is_left_for_the_new_one(
    tmp_path: Path,
) -> None:
    tried = 0

    def use(index: SearchIndex) -> list[tuple[bytes, str]]:
        nonlocal tried
        tried += 1
        if tried == 1:
            (tmp_path / "1.sqlite").unlink()
        index.keep_vectors("m", [b"mark"], np.ones((1, 2), dtype=np.float32))
        return index.without_vector("m", (b"", b"\xff"), 1)

    assert with_search_index(tmp_path, use) == []
    assert tried == 2
    assert [path.name for path in tmp_path.glob("*.sqlite")] == ["2.sqlite"]
