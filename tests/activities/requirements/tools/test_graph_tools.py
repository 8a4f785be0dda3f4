"""Graph tools: nothing is doubled, and nothing outside the schema gets in."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from activities.requirements.graph import open_graph
from activities.requirements.graph.interface import GraphLimits, GraphQuery
from activities.stores.relational_store import RelationalStore
from tests.activities.standing import Standing
from tests.activities.stores.filling import fill, requirement
from tests.backends import GRAPHS

TOOLS = ["files", "todos", "job", "graph", "validation"]
TEXT = "Every invoice must be kept for ten years."
FULL = {"degree": "full", "evidence": "It has a retention period."}


BOTH = pytest.mark.parametrize("graph_place", GRAPHS, indirect=True)


@pytest.fixture
def job(tmp_path: Path, graph_place: str) -> Standing:
    made = Standing.begin(tmp_path, kind="tactical", set={"tools": TOOLS})
    made.write("documents/a.md", "Invoices are kept.")
    return made


def put(job: Standing, *queries: str) -> None:
    schema = job.open().config.graph_schema
    with open_graph(job.root, schema, limits=GraphLimits()) as graph:
        graph.write(*map(GraphQuery, queries))


@BOTH
def test_what_is_rejected_after_all_is_taken_out_of_the_graph(
    job: Standing, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(RelationalStore(job.root), [requirement(1, TEXT)])
    job.call("take_requirement", count=1)
    reject = {"id": "maker/REQ-001", "status": "rejected", "reasons": "It binds nobody."}
    accept = reject | {"status": "accepted"}
    # A requirement that was never in the graph costs no write.
    assert job.call("decide_requirement", **reject) == "maker/REQ-001 is rejected."
    relate = {"requirement": "maker/REQ-001", "target_kind": "BusinessObject", "target": "invoice"}
    put_there: list[tuple[str, dict[str, Any]]] = [
        ("create_requirement_node", {"id": "maker/REQ-001", "text": TEXT}),
        (
            "create_fulfillment_relationship",
            {**relate, "properties": FULL, "target_name": "Invoice"},
        ),
        ("decide_requirement", accept),
    ]
    for name, arguments in put_there:
        job.call(name, **arguments)
    with monkeypatch.context() as away:
        # The store may still refuse it.
        away.setenv("LONGHAUL_STORE_URL", "postgresql://localhost:1/none")
        assert "in the graph it stays" in job.call("decide_requirement", **reject)
    assert "Requirement: 1" in job.call("count_graph_statistics").splitlines()
    # By then the store has decided.
    again = "Not accepted and still in the graph; decide on them again: maker/REQ-001."
    assert again in job.call("collect_decisions").splitlines()
    answer = job.call("decide_requirement", **reject)
    assert answer == "maker/REQ-001 is rejected.\nIt is out of the graph."
    assert "Requirement: 0" in job.call("count_graph_statistics").splitlines()
    assert "Requirement maker/REQ-001 is in the graph." in job.call("decide_requirement", **accept)
    assert "Requirement: 1" in job.call("count_graph_statistics").splitlines()

    url = os.environ.get("LONGHAUL_GRAPH_URL")
    monkeypatch.setenv("LONGHAUL_GRAPH_URL", "neo4j://localhost:1")
    for name, arguments in put_there:
        job.call(name, **arguments)
    assert "comes out of the graph when that answers" in job.call("decide_requirement", **reject)
    if url:
        monkeypatch.setenv("LONGHAUL_GRAPH_URL", url)
    else:
        monkeypatch.delenv("LONGHAUL_GRAPH_URL")
    assert job.completion().unstored == []
    # Waiting writes are made in their order.
    assert "Requirement: 0" in job.call("count_graph_statistics").splitlines()


@BOTH
def test_a_requirement_and_what_fulfils_it(job: Standing) -> None:
    confirmation = "Requirement REQ-1 is in the graph."
    properties = {"type": "legal", "confidence": 0.9}
    # Twice, as a retry would.
    for _ in range(2):
        assert (
            job.call("create_requirement_node", id="REQ-1", text=TEXT, properties=properties)
            == confirmation
        )
    relate = {"requirement": "REQ-1", "target_kind": "BusinessObject", "target": "invoice"}
    missing = job.call("create_fulfillment_relationship", **relate, properties=FULL)
    assert "There is no BusinessObject invoice" in missing
    for _ in range(2):
        done = job.call(
            "create_fulfillment_relationship", **relate, properties=FULL, target_name="Invoice"
        )
        assert done == "REQ-1 FULFILLED_BY BusinessObject invoice is in the graph."
    counted = job.call("count_graph_statistics").splitlines()
    assert "Requirement: 1" in counted
    assert "  Requirement by type: legal 1" in counted
    assert "BusinessObject: 1" in counted
    assert "(Requirement)-FULFILLED_BY->(BusinessObject): 1" in counted
    shown = job.call("get_entity_relationships", kind="BusinessObject", key="invoice")
    assert '<-FULFILLED_BY- Requirement REQ-1 {"degree": "full"' in shown
    assert job.call("validate_schema_compliance") == "The graph complies with its schema."


def test_what_does_not_fit_the_schema_is_refused(job: Standing) -> None:
    wrong = job.call("create_requirement_node", id="R", text=TEXT, properties={"type": "funny"})
    assert "type: found 'funny', expected one of functional, data" in wrong
    assert "there is no such property" in job.call(
        "create_requirement_node", id="R", text=TEXT, properties={"colour": "red"}
    )
    assert "filled in by the system" in job.call(
        "create_requirement_node", id="R", text=TEXT, properties={"job": "other"}
    )
    relate = {"requirement": "R", "target_kind": "Message", "target": "m"}
    assert "evidence: it is required" in job.call(
        "create_fulfillment_relationship", **relate, properties={"degree": "full"}
    )
    assert "these do: FULFILLED_BY" in job.call(
        "create_fulfillment_relationship", **relate, properties=FULL, relation="CARRIES"
    )
    assert "There is no Requirement R in the graph" in job.call(
        "create_fulfillment_relationship", **relate, properties=FULL, target_name="M"
    )
    # The target was not made either.
    assert "Message: 0" in job.call("count_graph_statistics")


@BOTH
def test_the_id_of_another_jobs_requirement_is_not_taken_over(job: Standing) -> None:
    put(job, "CREATE (:Requirement {id: 'REQ-1', text: 'Tea is green.', job: 'tea'})")
    answer = job.call("create_requirement_node", id="REQ-1", text=TEXT)
    assert "made by the job tea, and says something else: 'Tea is green.'" in answer
    query = "MATCH (n:Requirement) RETURN n.text"
    assert "Tea is green." in job.call("execute_cypher_query", query=query)


@BOTH
def test_names_are_found_exactly_then_by_likeness(job: Standing) -> None:
    put(
        job,
        "CREATE (:BusinessObject {id: 'inv', name: 'InvoiceHeader', aliases: ['Rechnungskopf']})",
        "CREATE (:BusinessObject {id: 'ord', name: 'Purchase order'})",
        "CREATE (:BusinessObject {id: 'tea', name: 'Grüner Tee'})",
    )

    def found(text: str) -> str:
        return job.call("resolve_entity", text=text, kind="BusinessObject")

    assert found("INVOICEHEADER").startswith("exact: BusinessObject inv (InvoiceHeader;")
    assert found("rechnungskopf").startswith("exact: BusinessObject inv")
    assert "1.00: BusinessObject inv" in found("invoice-header")
    assert "BusinessObject ord" in found("purchas ordr").splitlines()[1]
    assert "BusinessObject tea" in found("gruner tee").splitlines()[1]
    assert "No BusinessObject is like 'zzz'" in found("zzz")
    assert "expected one of Requirement, BusinessObject, Message" in job.call(
        "resolve_entity", text="x", kind="Nope"
    )


@BOTH
def test_queries_of_the_models_own(job: Standing, graph_place: str) -> None:
    put(job, *(f"CREATE (:Message {{id: 'm{n}', name: 'M'}})" for n in (2, 3, 1)))

    def asked(query: str, **given: object) -> str:
        return job.call("execute_cypher_query", query=query, parameters=given)

    assert asked("MATCH (m:Message) RETURN m.id") == (
        '3 rows; columns ["m.id"]\n["m1"]\n["m2"]\n["m3"]'
    )
    assert asked("MATCH (m:Message) WHERE m.id > $id RETURN m.id ORDER BY m.id DESC", id="m1") == (
        '2 rows; columns ["m.id"]\n["m3"]\n["m2"]'
    )
    if graph_place == "embedded":
        assert "Table Nope does not exist" in (answer := asked("MATCH (m:Nope) RETURN m"))
    else:
        assert "yntax error" in (answer := asked("MATCH (m:Message RETURN m"))
    assert "Nodes: Requirement(id, text," in answer
    assert "this tool only reads" in asked("MATCH (m:Message) DELETE m")
    many = asked("UNWIND range(1, 5000) AS n RETURN n")
    assert many.startswith("5,000 rows")
    assert "[TRUNCATED to 200 rows" in many


@BOTH
def test_what_does_not_comply_is_listed(job: Standing) -> None:
    put(
        job,
        "CREATE (:Requirement {id: 'R', text: 'x', type: 'funny', confidence: 1.5})",
        "CREATE (:BusinessObject {id: 'b'})",
        "MATCH (a:Requirement), (b:BusinessObject) "
        "CREATE (a)-[:FULFILLED_BY {degree: 'half', evidence: 'e'}]->(b) "
        "CREATE (a)-[:FULFILLED_BY {degree: 'full', evidence: 'e'}]->(b)",
    )
    violations = job.call("validate_schema_compliance").splitlines()
    assert violations[0] == "5 violations:"
    assert any(line.startswith("Requirement.type: expected one of") for line in violations)
    assert "Requirement.confidence: expected at most 1 (1): R, 1.5" in violations
    assert "BusinessObject.name: it is required (1): b, nothing" in violations
    assert "FULFILLED_BY: more than one between the same two (1): R, b, 2" in violations
    assert any(line.startswith("FULFILLED_BY.degree: expected one of") for line in violations)


@BOTH
def test_an_agent_declares_more(tmp_path: Path, graph_place: str) -> None:
    more = {"nodes": {"Law": {"key": "id", "known_by": ["id"], "properties": {
        "id": {"type": "text", "required": True}}}},
        "relations": {"FULFILLED_BY": {"ends": [["Requirement", "Law"]]}}}  # fmt: skip
    job = Standing.begin(tmp_path, kind="tactical", set={"tools": TOOLS, "graph": more})
    answer = job.call("get_database_schema")
    assert "Law (key id)" in answer
    assert "(Requirement)->(Law)" in answer
    put(job, "CREATE (:Law {id: 'GoBD'})")
    assert job.call("resolve_entity", text="gobd", kind="Law") == "exact: Law GoBD"


def test_a_graph_out_of_reach_is_waited_for(job: Standing, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LONGHAUL_GRAPH_URL", "neo4j://longhaul:secret@localhost:1")
    with pytest.raises(ApplicationError) as away:
        job.call("count_graph_statistics")
    assert away.value.type == "Dependency"
    assert "secret" not in str(away.value)


def test_an_own_requirement_is_named_as_in_the_store(job: Standing) -> None:
    node_answer = job.call("create_requirement_node", id="REQ-001", text=TEXT)
    assert node_answer == "Requirement job/REQ-001 is in the graph."
    job.call("create_requirement_node", id="maker/REQ-001", text="Tea is green.")
    relation_answer = job.call(
        "create_fulfillment_relationship",
        requirement="maker/REQ-001",
        target_kind="Requirement",
        target="REQ-001",
        relation="DEPENDS_ON",
    )
    assert relation_answer == "maker/REQ-001 DEPENDS_ON Requirement job/REQ-001 is in the graph."


def test_the_short_id_of_a_taken_requirement_makes_no_second_node(job: Standing) -> None:
    fill(RelationalStore(job.root), [requirement(1, TEXT)])
    job.call("take_requirement", count=1)
    assert job.call("create_requirement_node", id="REQ-001", text=TEXT) == (
        "Error: This job has no requirement REQ-001. The one it has taken is maker/REQ-001."
    )
    assert "Requirement: 0" in job.call("count_graph_statistics").splitlines()


def test_what_is_accepted_is_in_the_graph_as_the_store_has_it(
    job: Standing, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(RelationalStore(job.root), [requirement(1, TEXT)])
    accept = {"id": "maker/REQ-001", "status": "accepted", "reasons": "It binds."}
    # A requirement that another job may hold must not be written.
    assert "not held by this job" in job.call("decide_requirement", **accept)
    job.call("take_requirement", count=1)
    # An id that names no requirement of the store must not be written.
    alone = job.call("decide_requirement", **accept | {"id": "REQ-001"})
    assert "There is no requirement REQ-001" in alone
    # A validator's own citations have ids that mean others in the job that made the requirement.
    properties = {"citations": ["CIT-0007"], "status": "accepted"}
    node_answer = job.call(
        "create_requirement_node", id="maker/REQ-001", text="Keep invoices.", properties=properties
    )
    assert node_answer.endswith(f"\nIts text is that of the store: {TEXT}")
    shown = job.call("get_entity_relationships", kind="Requirement", key="maker/REQ-001")
    node = json.loads(shown.splitlines()[0])
    assert (node["text"], node["citations"], node["status"]) == (TEXT, ["CIT-0001"], "accepted")
    assert job.call("decide_requirement", **accept) == (
        "maker/REQ-001 is accepted.\nRequirement maker/REQ-001 is in the graph."
    )

    def collected() -> dict[str, Any]:
        [decision] = json.loads(job.text("output/decisions.json"))
        assert isinstance(decision, dict)
        return decision

    assert job.call("collect_decisions").splitlines()[2:] == [
        "In the graph and related to nothing: maker/REQ-001.",
        "Drafts left to take: 0.",
    ]
    assert (collected()["in_graph"], collected()["related"]) == (True, [])
    relate = {"requirement": "maker/REQ-001", "target_kind": "BusinessObject", "target": "invoice"}
    job.call("create_fulfillment_relationship", **relate, properties=FULL, target_name="Invoice")
    job.call("create_requirement_node", id="b/REQ-001", text="Keep none.")
    against = {"target_kind": "Requirement", "target": "maker/REQ-001", "relation": "CONTRADICTS"}
    job.call("create_fulfillment_relationship", requirement="b/REQ-001", **against)
    assert "related to nothing" not in job.call("collect_decisions")
    assert collected()["related"] == [
        {"relation": "FULFILLED_BY", "to": "BusinessObject invoice", "job": "job", **FULL},
        {"relation": "CONTRADICTS", "from": "Requirement b/REQ-001", "job": "job"},
    ]
    # An unavailable graph blocks nothing, and is not taken for an empty one.
    monkeypatch.setenv("LONGHAUL_GRAPH_URL", "neo4j://localhost:1")
    assert "The graph does not answer, so what it has is not shown" in job.call("collect_decisions")
    assert "related" not in collected()


def test_what_a_graph_out_of_reach_missed_is_made_up_for(
    job: Standing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LONGHAUL_GRAPH_URL", "neo4j://localhost:1")
    answer = job.call("create_requirement_node", id="REQ-001", text=TEXT)
    assert answer.startswith(
        "Requirement job/REQ-001 comes into the graph when it answers.\nDeferred"
    )
    relate = {"requirement": "REQ-001", "target_kind": "BusinessObject", "target": "invoice"}
    job.call("create_fulfillment_relationship", **relate, properties=FULL, target_name="Invoice")
    job.call("create_fulfillment_relationship", **relate | {"requirement": "b"}, properties=FULL)
    assert len(job.open().state.deferred_writes) == 3
    [why] = job.completion().unstored
    assert why.startswith("3 writes wait, since ")
    # The store is available and does not wait for the graph.
    assert job.call("take_requirement", count=1) == "No draft requirement is left to take."
    monkeypatch.delenv("LONGHAUL_GRAPH_URL")
    answer = job.call("create_requirement_node", id="REQ-002", text="Tea is green.")
    assert "dropped: There is no Requirement b in the graph" in answer
    assert job.open().state.deferred_writes == []
    assert job.completion().unstored == []
    counted = job.call("count_graph_statistics").splitlines()
    assert "Requirement: 2" in counted
    assert "(Requirement)-FULFILLED_BY->(BusinessObject): 1" in counted


def test_the_completion_gate_makes_what_is_deferred_with_what_the_store_says_by_then(
    job: Standing, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(RelationalStore(job.root), [requirement(1, TEXT)])
    monkeypatch.setenv("LONGHAUL_GRAPH_URL", "neo4j://localhost:1")
    job.call("create_requirement_node", id="REQ-001", text=TEXT)
    monkeypatch.delenv("LONGHAUL_GRAPH_URL")
    with monkeypatch.context() as away:
        away.setenv("LONGHAUL_STORE_URL", "postgresql://localhost:1/none")
        answer = job.call("create_requirement_node", id="maker/REQ-001", text="Keep invoices.")
        assert "comes into the graph when it answers.\nDeferred" in answer
    for _ in range(2):
        assert job.completion().unstored == []
    assert "Requirement: 2" in job.call("count_graph_statistics").splitlines()
    shown = job.call("get_entity_relationships", kind="Requirement", key="maker/REQ-001")
    node = json.loads(shown.splitlines()[0])
    assert (node["text"], node["citations"]) == (TEXT, ["CIT-0001"])
