"""A deferred write that its store refuses once it answers is lost to nobody's surprise."""

import socket
import time
from pathlib import Path

import pytest

from activities.requirements import store_sync
from activities.requirements.graph.graph_writes import NODE
from activities.steps.close_job import close_job
from activities.stores.outbox import (
    Call,
    OutboxWriter,
    attempt_outbox_writes,
    flush_outbox,
    write_or_defer,
)
from activities.stores.relational_store import RelationalStore
from activities.stores.store_errors import StoreRefusedError, StoreUnavailableError
from activities.tools.trace_tools import KIND
from protocol.endings import CloseReply, CloseRequest
from protocol.job_state import DeferredWrite
from tests.activities.standing import AT, JOB, Standing, environment
from tests.activities.stores.filling import fill, requirement
from tests.soak import patient

AWAY = "postgresql://127.0.0.1:1/db"
TOOLS = ["files", "todos", "job", "validation", "requirements"]


@pytest.fixture
def judge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Standing:
    """Return a job with a deferred decision on a requirement that its maker has changed since."""
    judge = Standing.begin(tmp_path, kind="tactical", set={"tools": TOOLS})
    judge.write("documents/a.md", "The system shall keep record number 1.")
    fill(RelationalStore(judge.root), [requirement(1)])
    judge.call("take_requirement", count=1)
    monkeypatch.setenv("LONGHAUL_STORE_URL", AWAY)
    judge.call("decide_requirement", id="maker/REQ-001", status="accepted", reasons="Yes.")
    monkeypatch.delenv("LONGHAUL_STORE_URL")
    fill(RelationalStore(judge.root), [requirement(1, "It says something else now.")], at=9)
    return judge


@pytest.fixture
def job(tmp_path: Path) -> Standing:
    return Standing.begin(tmp_path)


async def cancelled(job: Standing) -> list[str]:
    """Cancel the job and return the unresolved entries of its result."""
    request = CloseRequest(
        root=job.root.id, commit=job.commit, at=AT, step=job.step, status="cancelled"
    )
    closed: CloseReply = await environment(local=False).run(close_job(job.root), request)
    return closed.result.unresolved


async def test_a_store_that_hangs_holds_up_no_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = Standing.begin(tmp_path, kind="tactical", set={"tools": TOOLS})
    monkeypatch.setattr(store_sync, "RELEASE_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"postgresql://me@127.0.0.1:{silent.getsockname()[1]}/db"
        monkeypatch.setenv("LONGHAUL_STORE_URL", url)
        began = time.monotonic()
        assert await cancelled(job) == []
        assert time.monotonic() - began < patient(10)


def test_it_is_open_until_it_is_explained(judge: Standing) -> None:
    for _ in range(2):
        facts = judge.completion()
        [why] = facts.refused_writes
        assert why.startswith("maker/REQ-001: ")
        assert "not held by this job" in why
        assert facts.unexplained_writes == ["maker/REQ-001"]
        assert facts.unstored == []
    facts = judge.completion(unresolved=["maker/REQ-001: its text was changed meanwhile"])
    assert len(facts.refused_writes) == 1
    assert facts.unexplained_writes == []


def test_the_next_call_to_the_store_tells_the_model_and_forgets_it(judge: Standing) -> None:
    answer = judge.call("take_requirement", count=1)
    assert "deferred write was dropped" in answer
    assert "not held by this job" in answer
    assert judge.completion().refused_writes == []


def test_it_comes_up_again_where_another_store_is_away(
    judge: Standing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LONGHAUL_GRAPH_URL", "neo4j://localhost:1")
    snapshot = judge.open()
    data = {"values": {"id": "maker/REQ-001", "text": "x"}, "unread": False}
    node = DeferredWrite(kind=NODE, key="k", at=1, about="maker/REQ-001", data=data)
    snapshot.state.deferred_writes = [*snapshot.state.deferred_writes, node]
    call = Call(JOB, "key", 10)
    writer = OutboxWriter(judge.root, call, snapshot.files, snapshot.state, snapshot.config)
    with pytest.raises(StoreUnavailableError):
        flush_outbox(writer)
    assert [entry.kind for entry in snapshot.state.deferred_writes] == ["decision", NODE]


def test_what_the_store_does_not_take_is_refused_as_well(job: Standing) -> None:
    lacking = DeferredWrite(kind=KIND, key="k", at=1, about="a trace", data={"key": "k"})
    snapshot = job.open()
    writer = OutboxWriter(
        job.root, Call(JOB, "key", 10), snapshot.files, snapshot.state, snapshot.config
    )
    with pytest.raises(StoreRefusedError, match="does not take this"):
        write_or_defer(writer, lacking)
    assert snapshot.state.deferred_writes == []
    snapshot.state.deferred_writes = [lacking]
    _, [(entry, _)] = attempt_outbox_writes(writer)
    assert entry is lacking


def test_requirements_that_the_store_does_not_take_are_open_until_explained(tmp_path: Path) -> None:
    maker = Standing.begin(tmp_path, kind="tactical", agent="creator")
    quote = "Every invoice must be kept for ten years."
    maker.write("documents/a.md", quote)
    maker.write("documents/a.md.txt", f"[page 1]\n{quote}\n")
    maker.call("cite_document", path="documents/a.md", page=1, quote=quote)
    refuse = "CREATE TRIGGER refuse BEFORE INSERT ON citations BEGIN SELECT RAISE(ABORT, 'no'); END"
    RelationalStore(maker.root).run(lambda c: c.exec_driver_sql(refuse))
    answer = maker.call(
        "add_requirement",
        text=quote,
        type="legal",
        citations=["CIT-0001"],
        reasoning="It says so.",
        confidence=0.9,
    )
    assert "Not in the store" in answer
    assert maker.open().state.deferred_writes == []
    facts = maker.completion()
    assert facts.unstored == []
    assert facts.unexplained_writes == ["the requirements"]
    [why] = facts.refused_writes
    assert "does not take this" in why
    facts = maker.completion(unresolved=["the requirements: the store refuses them"])
    assert facts.unexplained_writes == []


def test_a_rewind_tells_people(judge: Standing) -> None:
    [notice] = environment(local=False).run(
        store_sync.update_store_after_rewind, judge.root, judge.open()
    )
    assert "deferred write was dropped" in notice


async def test_a_cancelled_job_tells_it_in_its_result(judge: Standing) -> None:
    [lost] = await cancelled(judge)
    assert "not held by this job" in lost


async def test_and_what_could_not_even_be_tried(
    judge: Standing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LONGHAUL_STORE_URL", AWAY)
    [lost] = await cancelled(judge)
    assert lost.startswith("1 write waits, since ")
