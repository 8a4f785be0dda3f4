"""Traces in both databases."""

from typing import Any

from activities.steps.store_traces import trace_row_to_store
from activities.stores import stored_traces as rows
from activities.stores.relational_store import RelationalStore
from protocol.trace_requests import StoreTracesRequest
from tests.activities.traces.noting import trace

REQUEST = StoreTracesRequest(root="r", agent="generalist", task="Mend")


def row(number: int, **details: Any) -> dict[str, Any]:
    return trace_row_to_store("job", REQUEST, trace(number, **details))


def test_each_key_is_kept_once_and_what_is_shown_is_counted(store: RelationalStore) -> None:
    assert store.run(lambda c: rows.insert_traces(c, [row(1), row(2)])) == 2
    assert store.run(lambda c: rows.insert_traces(c, [row(2), row(3, why="nul \0 byte")])) == 1
    traces = store.run(lambda c: rows.job_traces(c, "job"))
    assert [each.key for each in traces] == ["run.1", "run.2", "run.3"]
    store.run(lambda c: rows.increment_trace_retrievals(c, [traces[0].id]))
    counted = store.run(lambda c: rows.job_traces(c, "job"))
    assert [each.retrieved for each in counted] == [1, 0, 0]


def test_embeddings_are_kept_by_model(store: RelationalStore) -> None:
    store.run(lambda c: rows.insert_traces(c, [row(1), row(2)]))

    def lacking(project: str = "", agent: str = "generalist") -> list[int]:
        traces = store.run(lambda c: rows.traces_without_vector(c, "m", project, agent, 10))
        return [each.id for each in traces]

    second, first = lacking()
    store.run(lambda c: rows.store_trace_vectors(c, "m", {first: b"\0\1"}))
    assert store.run(lambda c: rows.read_stored_trace_vectors(c, "m", 0)) == {first: b"\0\1"}
    assert store.run(lambda c: rows.read_stored_trace_vectors(c, "m", 1)) == {}
    assert lacking() == [second]
    assert lacking(agent="coder") == lacking(project="shop") == []
    store.run(lambda c: rows.make_stored_trace_universal(c, second))
    assert lacking(agent="coder") == lacking(project="shop") == [second]


def test_a_trace_that_was_made_universal_is_among_the_newest(store: RelationalStore) -> None:
    store.run(lambda c: rows.insert_traces(c, [row(1)]))
    assert store.run(lambda c: rows.newer_traces(c, 5000)) == []
    assert store.run(lambda c: rows.make_stored_trace_universal(c, 1))
    assert [each.scope for each in store.run(lambda c: rows.newer_traces(c, 5000))] == ["universal"]
