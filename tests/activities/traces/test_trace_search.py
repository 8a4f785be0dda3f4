"""Search over past situations: what fits, who may see it, how quick and how short it is."""

import threading
import time
from pathlib import Path
from typing import Any

from sqlalchemy import insert
from temporalio.testing import ActivityEnvironment

from activities.checkpoints import Root
from activities.steps.store_traces import trace_row_to_store
from activities.stores import stored_traces as rows
from activities.stores.relational_store import RelationalStore
from activities.stores.schema import TRACES
from activities.text.tokens import count_tokens
from activities.traces.recall import recall_traces
from activities.traces.trace_search import TraceSearchScope, find_traces
from activities.traces.trace_text import render_trace
from config.schema.model_settings import Embeddings
from protocol.trace_requests import StoreTracesRequest
from tests.activities.search.endpoint import serving
from tests.activities.standing import Standing
from tests.activities.traces.noting import store, trace
from tests.soak import patient

READER = TraceSearchScope("other", "generalist")


def found(root: Root, query: str, reader: TraceSearchScope = READER, **details: Any) -> list[str]:
    return [row.key for row in find_traces(root, reader, query, 5, **details)]


def test_the_trace_that_fits_the_situation_comes_first(root: Root) -> None:
    store(root, trace(1, "deploy.log was read whole"), trace(2, "the table was dropped", why=""))
    assert found(root, "reading logs")[0] == "run.1"
    assert found(root, "dropping tables") == ["run.2"]


def test_what_came_since_the_last_search_is_found(root: Root) -> None:
    store(root, trace(1, "tea"))
    assert found(root, "tea") == ["run.1"]
    store(root, trace(2, "coffee"))
    assert found(root, "coffee") == ["run.2"]


def test_what_was_removed_is_not_found_and_its_number_never_comes_again(
    root: Root,
) -> None:
    store(root, trace(1, "tea"), job="first")
    store(root, trace(2, "coffee"), job="last")
    assert found(root, "coffee") == ["run.2"]
    RelationalStore(root).run(lambda connection: rows.forget_traces(connection, "last"))
    assert found(root, "coffee") == []
    store(root, trace(3, "milk"), job="next")
    assert found(root, "milk") == ["run.3"]
    RelationalStore(root).run(lambda connection: rows.forget_traces(connection, "next"))
    store(root, trace(4, "juice"), job="next")
    assert found(root, "milk") == []
    assert found(root, "juice") == ["run.4"]
    assert found(root, "tea") == ["run.1"]


def test_another_store_in_the_place_of_the_first_is_searched_itself(root: Root) -> None:
    store(root, trace(1, "tea"), trace(2, "coffee"))
    assert found(root, "coffee") == ["run.2"]
    for path in (root.path / ".longhaul").glob("store.sqlite3*"):
        path.unlink()
    # As many traces as before, with the same numbers.
    store(root, trace(3, "milk"), trace(4, "juice"))
    assert found(root, "coffee") == []
    assert found(root, "milk") == ["run.3"]


def test_without_a_project_an_agent_finds_what_its_own_jobs_left(root: Root) -> None:
    store(root, trace(1, "tea"))
    store(root, trace(2, "tea"), agent="coder")
    store(root, trace(3, "tea"), project="shop")
    assert found(root, "tea") == ["run.1"]
    assert found(root, "tea", TraceSearchScope("x", "coder", "shop")) == ["run.3"]


def test_a_universal_trace_is_found_by_all(root: Root) -> None:
    store(root, trace(1, "tea"), project="shop")
    assert found(root, "tea") == []
    RelationalStore(root).run(lambda connection: rows.make_stored_trace_universal(connection, 1))
    assert found(root, "tea") == ["run.1"]


def test_a_job_is_told_of_others_alone_when_a_phase_is_planned(root: Root) -> None:
    store(root, trace(1, "tea"))
    store(root, trace(2, "tea"), job="other")
    assert found(root, "tea", is_wanted=lambda row: row.job != "other") == ["run.1"]


def test_what_is_not_looked_for_takes_no_place_of_what_is(root: Root) -> None:
    store(root, *(trace(n, "tea tea tea") for n in range(2, 200)), job="other")
    store(root, trace(1, "tea, somewhere in a longer sentence"), job="first")
    assert found(root, "tea", is_wanted=lambda row: row.job == "first") == ["run.1"]
    assert len(find_traces(root, READER, "tea", 150)) == 150


def test_words_of_the_search_language_mean_nothing(root: Root) -> None:
    store(root, trace(1, "tea"))
    assert found(root, 'tea" OR * NEAR(') == ["run.1"]
    assert found(root, "-- ''") == []


def test_an_endpoint_that_takes_its_time_keeps_no_other_search_waiting(root: Root) -> None:
    store(root, trace(1, "tea"))
    with serving() as endpoint:
        gate = endpoint.gate = threading.Semaphore(0)
        settings = Embeddings(model="m", base_url=endpoint.url)
        slow: list[str] = []
        asking = threading.Thread(
            target=lambda: slow.extend(found(root, "tea", embeddings=settings))
        )
        asking.start()
        while not endpoint.asked:
            time.sleep(0.01)
        store(root, trace(2, "coffee"))
        begun = time.monotonic()
        assert found(root, "tea") == ["run.1"]
        assert time.monotonic() - begun < patient(5)
        assert asking.is_alive()
        gate.release(100)
        asking.join(30)
        assert slow[0] == "run.1"


def test_an_endpoint_is_sent_only_what_its_agent_may_see(root: Root) -> None:
    store(root, trace(1, "tea"))
    store(root, trace(2, "coffee"), agent="coder")
    store(root, trace(3, "cocoa"), project="shop")
    with serving() as endpoint:
        settings = Embeddings(model="m", base_url=endpoint.url)
        assert found(root, "kettle", embeddings=settings) == []
        query, sent = endpoint.texts
        assert query == "kettle"
        assert "tea" in sent


def test_an_endpoint_whose_model_changes_leaves_no_search_broken(root: Root) -> None:
    store(root, trace(1, "the bill", why="", guard="", tool="", todo=""), task="x")
    with serving() as endpoint:
        settings = Embeddings(model="m", base_url=endpoint.url)
        # Between the query and the traces, whose vectors then cannot be compared with it.
        endpoint.changes_after = 1
        assert found(root, "invoices", embeddings=settings) == []
        assert found(root, "invoices", embeddings=settings) == ["run.1"]
        endpoint.changes_after = None
        assert found(root, "invoices", embeddings=settings) == ["run.1"]


def test_ten_thousand_traces_are_searched_within_a_tenth_of_a_second(root: Root) -> None:
    request = StoreTracesRequest(root=root.id, agent="generalist", task="Mend the server")
    base = trace_row_to_store("job", request, trace(0)) | {"scope": "project", "retrieved": 0}
    trace_rows = [
        base | {"key": str(n), "what_happened": f"read_file was refused: log {n} of host {n % 97}"}
        for n in range(10_000)
    ]
    RelationalStore(root).run(lambda connection: connection.execute(insert(TRACES), trace_rows))
    find_traces(root, READER, "warm", 5)
    durations = []
    for _ in range(5):
        begun = time.process_time()
        hits = find_traces(
            root, READER, "a refused read_file of a log of host 13 in the server", 20
        )
        durations.append(time.process_time() - begun)
        assert len(hits) == 20
    assert min(durations) < 0.1


def test_each_level_of_detail_has_its_size(root: Root) -> None:
    long = "An explanation that goes on and on, with paths such as output/a/b/c.md. " * 5
    store(root, trace(1, long, why=long, what_was_correct=long, guard="g" * 64, tool="t" * 60))
    store(root, trace(2))
    for row in find_traces(root, READER, "explanation refused", 5):
        assert count_tokens(render_trace(row, "metadata")) < 25
        assert count_tokens(render_trace(row, "summary")) <= 100
        assert row.why[:50] in render_trace(row, "full")


def test_before_a_phase_is_planned_nothing_is_told_twice_nor_what_teaches_nothing(
    tmp_path: Path,
) -> None:
    job = Standing.begin(tmp_path, kind="strategic")
    job.write("instructions.md", "Make tea.")
    accepted = {"type": "outcome", "guard": "handoff", "tool": "", "why": ""}
    store(job.root, *(trace(n, "tea was accepted", **accepted) for n in range(2)), job="a")
    # A project's instructions tell what became of its other work.
    refused = {**accepted, "why": "Milk: there is none."}
    store(job.root, trace(17, "tea was not accepted", **refused), job="g")
    store(job.root, *(trace(n, "tea was refused") for n in range(2, 9)), job="b")
    store(job.root, trace(9, "tea was spilled"), trace(12, "tea was spilled"), job="c")
    # A single refusal in another job is not a lesson.
    store(job.root, trace(13, "tea was stolen"), job="c")
    env: Any = ActivityEnvironment()
    lines = env.run(recall_traces, job.root, job.open())
    assert len(lines) == 2, lines
    assert all(any(what in line for line in lines) for what in ("was refused", "was spilled"))
    # A rewind leaves several traces, of which the one that says what to do is enough.
    why = "the tea was cold"
    rewound = trace(14, "the phase was rewound", type="outcome", why=why)
    learned = trace(15, "x", type="outcome", why=why, what_was_correct="Warm the tea cup.")
    completed = trace(16, "it was completed", type="outcome", why=why)
    store(job.root, rewound, learned, completed, job="f")
    lines = env.run(recall_traces, job.root, job.open())
    assert ["Warm the tea cup." in line for line in lines if why in line] == [True]
    # The best match stays first, even if an equal trace belongs to a task that matches poorly.
    store(job.root, trace(10, "the cup was hot"), job="d", task="Make tea, make tea.")
    store(job.root, trace(11, "the cup was hot"), job="e", task=f"Tea, {'something else ' * 50}")
    assert "the cup was hot" in env.run(recall_traces, job.root, job.open())[0]


def test_a_job_that_begins_with_work_is_told_before_it_and_others_are_not(tmp_path: Path) -> None:
    def told(agent: str, number: int) -> int:
        job = Standing.begin(tmp_path / f"{agent}{number}", kind="tactical", agent=agent)
        job.write("instructions.md", "Make tea.")
        store(job.root, *(trace(n, "tea was refused") for n in range(2)), job="b", agent=agent)
        snapshot = job.open()
        snapshot.state.phase.number = number
        env: Any = ActivityEnvironment()
        return len(env.run(recall_traces, job.root, snapshot))

    assert (told("coder", 1), told("tester", 1), told("initializer", 1)) == (1, 1, 1)
    assert (told("coder", 2), told("small", 1)) == (0, 0)
