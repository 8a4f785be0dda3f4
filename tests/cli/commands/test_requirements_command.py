"""The requirement store for people: list, search, export, withdraw and restore."""

import csv
import json
import shlex
from pathlib import Path

import pytest

from activities.checkpoints import Root
from activities.requirements.graph import open_graph
from activities.requirements.graph.cypher import put_node_cypher
from activities.requirements.graph.interface import GraphQuery
from activities.requirements.requirement import Citation, Requirement
from activities.stores.relational_store import RelationalStore
from cli.signals.signal_sending import signal_sender_name
from config.agent_files import load_agent
from tests.activities.stores.filling import decide, fill, requirement, take
from tests.cli.conftest import Starter
from tests.docs.reading import blocks, page


@pytest.fixture
def root(workspaces: Path) -> Root:
    made = Root.open(workspaces, create=True)
    place = {"label": "iv", "section": "2.1 Keeping"}
    first = requirement(1, "Invoices must be kept | for ten years.", job="policy")
    cited = [each.model_copy(update=place) for each in first.citations]
    fill(RelationalStore(made), [placed(first, cited), requirement(2, job="policy")], job="policy")
    fill(
        RelationalStore(made),
        [requirement(1, "=SUM(A1) is to be shown.", job="zoo")],
        at=1,
        job="zoo",
    )
    take(RelationalStore(made), "judge")
    decide(RelationalStore(made), "judge", "policy/REQ-001")
    return made


def placed(original: Requirement, citations: list[Citation]) -> Requirement:
    return original.model_copy(update={"citations": citations, "force": "must not"})


LINE = (
    "policy/REQ-001 · accepted · must not · a.md, page 1 (iv), 2.1 Keeping · "
    "Invoices must be kept | for ten years."
)


def test_they_are_listed_searched_and_shown(root: Root, offline: Starter) -> None:
    lines = offline("requirements").out.splitlines()
    assert lines[0] == LINE
    assert [line.partition(" ")[0] for line in lines[1:]] == ["policy/REQ-002", "zoo/REQ-001"]
    assert offline("requirements", "list", "--status", "accepted").out == LINE + "\n"
    assert offline("requirements", "--job", "zoo", "--document", "b.md").out == ""
    hits = offline("requirements", "search", "kept", "invoices").out.splitlines()
    assert hits[0] == LINE
    assert all("SUM" not in line for line in hits)
    shown = offline("requirements", "show", "policy/REQ-001").out
    assert "> Invoices must be kept | for ten years.\n  documents/a.md, page 1 (iv), 2.1" in shown
    assert "Accepted by judge: Because." in shown
    [record] = json.loads(offline("requirements", "show", "policy/REQ-001", "--json").out)
    assert (record["ref"], record["force"], record["decided_by"]) == (
        "policy/REQ-001", "must not", "judge",
    )  # fmt: skip


def test_a_persons_word_is_in_store_and_graph(root: Root, offline: Starter) -> None:
    def graph() -> str:
        return offline("graph", "MATCH (r:Requirement) RETURN r.id, r.status").out

    names = ["policy/REQ-002", "zoo/REQ-001"]
    assert offline("requirements", "accept", *names, "--by", "ann").out.splitlines() == [
        "policy/REQ-002 is accepted",
        "zoo/REQ-001 is accepted",
    ]
    assert '["zoo/REQ-001", "accepted"]' in graph()
    why = ("--by", "ann", "--reason", "It is a formula.")
    offline("requirements", "reject", "zoo/REQ-001", *why)
    assert "zoo/REQ-001" not in graph()
    assert "policy/REQ-002" in graph()
    shown = offline("requirements", "show", "zoo/REQ-001").out
    assert "Rejected by ann: It is a formula." in shown
    offline("requirements", "assign", "policy/REQ-002", "--by", "bob")
    assert "Owner: bob" in offline("requirements", "show", "policy/REQ-002").out


def test_they_are_exported(root: Root, offline: Starter, tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    assert "3 requirements in" in offline("requirements", "export", "--to", str(path)).err
    rows = list(csv.DictReader(path.open(encoding="utf-8", newline="")))
    assert (rows[0]["id"], rows[0]["force"], rows[0]["section"], rows[0]["label"]) == (
        "policy/REQ-001", "must not", "2.1 Keeping", "iv",
    )  # fmt: skip
    # Text from a document is not a formula.
    assert rows[2]["text"] == "'=SUM(A1) is to be shown."
    table = offline("requirements", "export", "--format", "markdown", "--job", "policy").out
    assert table.splitlines()[2] == (
        "| policy/REQ-001 |  | must not | documents/a.md | 2.1 Keeping | 1 "
        "| Invoices must be kept \\| for ten years. | accepted |"
    )
    exported = json.loads(offline("requirements", "export", "--format", "json").out)
    assert exported[0]["citations"][0]["quote"] == "Invoices must be kept | for ten years."
    reqif = offline("requirements", "export", "--format", "reqif").out
    assert reqif.count("<SPEC-OBJECT ") == 4  # one for the section
    outcome = offline("requirements", "export", "--to", str(tmp_path / "none" / "x.csv"))
    assert (outcome.code, "No such file" in outcome.error) == (2, True)


def test_what_is_withdrawn_is_gone_from_lists_and_graph(root: Root, offline: Starter) -> None:
    schema = load_agent("validator").graph_schema
    values = {"id": "policy/REQ-001", "text": "Invoices must be kept."}
    with open_graph(root, schema) as graph:
        graph.write(put_node_cypher(schema, "Requirement", values, "judge"))
    command = ("requirements", "withdraw", "policy/REQ-001", "--reason", "It is repealed.")
    assert offline(*command).out == "policy/REQ-001 is withdrawn\n"
    assert "policy/REQ-001" not in offline("requirements").out
    assert "policy/REQ-001 · withdrawn" in offline("requirements", "--withdrawn").out
    shown = offline("requirements", "show", "policy/REQ-001").out
    assert shown.startswith("policy/REQ-001 · withdrawn")
    assert shown.endswith(f"Withdrawn by {signal_sender_name()}: It is repealed.\n")
    with open_graph(root, schema) as graph:
        assert graph.read(GraphQuery("MATCH (r:Requirement) RETURN r.id"))[0].rows == []
    outcome = offline(*command)
    assert (outcome.code, "is withdrawn already" in outcome.error) == (2, True)


def test_what_was_withdrawn_by_mistake_is_restored_to_be_judged_anew(
    root: Root, offline: Starter
) -> None:
    named = ("policy/REQ-001", "policy/REQ-002")
    offline("requirements", "withdraw", *named, "--reason", "It is repealed.")
    command = ("requirements", "restore", *named, "--reason", "The wrong law.")
    assert offline(*command).out == (
        "policy/REQ-001 is restored: draft\npolicy/REQ-002 is restored: draft\n"
    )
    assert LINE.replace("accepted", "draft") in offline("requirements").out.splitlines()
    shown = offline("requirements", "show", "policy/REQ-001").out
    assert "Accepted" not in shown
    assert shown.endswith(
        f"Withdrawn by {signal_sender_name()}: It is repealed.\n"
        f"Restored by {signal_sender_name()}: The wrong law.\n"
    )
    [record] = json.loads(offline("requirements", "show", "policy/REQ-002", "--json").out)
    assert (record["withdrawn"], record["restored_why"]) == (False, "The wrong law.")
    again = offline(*command)
    assert (again.code, "policy/REQ-001 is not withdrawn" in again.error) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("show", "name one or more, such as job-1/REQ-001"),
        ("show policy/REQ-009", "there is no requirement policy/REQ-009"),
        ("withdraw policy/REQ-001", "give --reason"),
        ("withdraw policy/REQ-009 --reason x", "there is no requirement policy/REQ-009"),
        ("restore policy/REQ-001", "give --reason"),
        ("restore", "name one or more, such as job-1/REQ-001"),
        ("restore policy/REQ-009 --reason x", "nothing is restored: there is no requirement"),
        ("search", "give the words to look for"),
        ("list policy/REQ-001", "takes no names"),
        ("export --format xml", "xml"),
        ("--format html", "--format belongs to an export"),
        ("list --to a.csv", "--to belongs to an export"),
    ],
)
def test_mistakes_are_told(root: Root, offline: Starter, arguments: str, expected: str) -> None:
    ran = offline("requirements", *arguments.split())
    assert ran.code == 2
    assert expected in ran.error


def test_the_commands_of_the_documentation_run(
    root: Root, offline: Starter, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    begin = "python starter.py requirements"
    lines = [
        line
        for block in blocks(page("requirements.md"), "sh")
        for line in block.splitlines()
        if line.startswith(begin)
    ]
    assert len(lines) >= 5
    monkeypatch.chdir(tmp_path)
    for line in lines:
        assert offline(*shlex.split(line)[2:]).code == 0, line
    assert (tmp_path / "requirements.csv").is_file()
