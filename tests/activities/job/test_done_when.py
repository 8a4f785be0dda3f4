"""`done_when`: what holds, what does not, and what a refusal says was found."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from activities.job.done_when import read_done_when, read_done_when_file
from activities.job.plan_and_todo_files import parse_agent_todo_file
from activities.steps.gate_facts import gather_gate_facts
from protocol.todo_list import Todo
from tests.activities.standing import Standing


@pytest.fixture
def job(tmp_path: Path) -> Standing:
    return Standing.begin(tmp_path, kind="tactical")


def condition(job: Standing, value: dict[str, Any], todos: int = 2) -> None:
    """Use this `done_when` for the current todo, in a list of so many."""
    snapshot = job.open()
    snapshot.state.phase.todos = [
        Todo(id=n, content=f"Step {n}.", done_when=read_done_when(value) if n == 1 else None)
        for n in range(1, todos + 1)
    ]
    job.commit = snapshot.save("conditions", 1)


@pytest.mark.parametrize(
    ("value", "phrases"),
    [
        ({"file_exists": "output/tea.md"}, ["no output/tea.md", "beside it", "output/other.txt"]),
        ({"file_exists": "output/*.md"}, ["done when output/*.md exists", "output/other.txt"]),
        ({"file_exists": "nowhere/tea.md"}, ["no nowhere/tea.md", "nothing"]),
        ({"matches": {"path": "output/tea.md", "pattern": "x"}}, ["no file output/tea.md"]),
        (
            {"matches": {"path": "output/other.txt", "pattern": r"^\d+ grams"}},
            ["Nothing in output/other.txt matches", "some grams"],
        ),
    ],
)
def test_a_todo_that_is_not_done_is_refused_with_what_was_found(
    job: Standing, value: dict[str, Any], phrases: list[str]
) -> None:
    job.write("output/other.txt", "some grams")
    condition(job, value)
    answer = job.call("todo_complete")
    assert answer.startswith("Error: Not done yet")
    for words in phrases:
        assert words in answer
    assert job.open().state.phase.todos[0].done is False


SCHEMA = {"type": "array", "items": {"type": "integer"}, "maxItems": 3}


@pytest.mark.parametrize(
    ("path", "content", "complaint"),
    [
        ("output/a.json", "[1, 2]", None),
        ("output/a.yml", "- 1\n- 2\n", None),
        ("output/a.json", '[1, "b", true, 4]', "$[1]: 'b' is not of type 'integer'; $[2]: True"),
        ("output/a.json", "[1, 2, 3, 4]", "too long"),
        ("output/a.json", "[1,\n2", "not valid JSON in line 2"),
        ("output/a.json", "[NaN]", "$[0]: not a finite number"),
        ("output/a.yaml", "[1, 2", "not valid YAML"),
        ("output/a.yaml", "- &a 1\n- *a\n", "aliases (*name) are not read"),
        ("output/a.json", "[" * 100_000, "nested too deeply"),
        ("output/b.json", "", "There is no file output/a.json"),
    ],
)
def test_a_file_is_held_against_its_schema(
    job: Standing, path: str, content: str, complaint: str | None
) -> None:
    job.write(path, content)
    where = "output/a.json" if path == "output/b.json" else path
    condition(job, {"valid": {"path": where, "schema": SCHEMA}})
    answer = job.call("todo_complete")
    if complaint is None:
        assert not answer.startswith("Error")
    else:
        assert answer.startswith(f"Error: Not done yet: it is done when {where} fits its schema.")
        assert complaint in answer


@pytest.mark.parametrize(
    ("schema", "complaint"),
    [
        ({"type": "numbr"}, "schema is not a JSON Schema: $.type"),
        ({"enum": ["x" * 30_000]}, "at most 20,000"),
        ({"$ref": "https://example.com/schema.json"}, None),
    ],
)
def test_a_schema_that_cannot_be_used_is_refused(
    job: Standing, schema: dict[str, Any], complaint: str | None
) -> None:
    value = {"valid": {"path": "output/a.json", "schema": schema}}
    if complaint:
        with pytest.raises(ValueError, match=re.escape(complaint)):
            read_done_when(value)
        return
    job.write("output/a.json", "1")
    condition(job, value)
    assert "refers to what it does not hold" in job.call("todo_complete")


def test_what_lies_beside_is_told_whatever_its_name_holds(job: Standing) -> None:
    job.put(lambda files: files.write("output/caf\udce9", b"x"))
    condition(job, {"file_exists": "output/tea.md"}, todos=1)
    job.reply(("todo_complete", "{}"))
    assert "output/caf?" in str(gather_gate_facts(job.open(), 0).unmet)


@pytest.mark.parametrize(
    "value",
    [
        {"file_exists": "output/tea.md"},
        {"file_exists": "output"},
        {"file_exists": "out*/t?a.md"},
        {"matches": {"path": "output/tea.md", "pattern": r"(?m)^\d+ grams"}},
    ],
)
def test_a_todo_that_is_done_is_completed(job: Standing, value: dict[str, Any]) -> None:
    job.write("output/tea.md", "# Tea\n5 grams\n")
    condition(job, value)
    assert job.call("todo_complete").startswith("Completed todo 1")


def test_the_last_todo_of_a_phase_shows_in_the_facts(job: Standing) -> None:
    condition(job, {"file_exists": "output/tea.md"}, todos=1)
    job.reply(("todo_complete", "{}"))
    assert "output/tea.md" in str(gather_gate_facts(job.open(), 0).unmet)
    job.write("output/tea.md", "tea")
    assert gather_gate_facts(job.open(), 0).unmet is None


WRONG: list[tuple[Any, str]] = [
    ({"command": "make test", "file_exists": "a"}, "give one of"),
    ({}, "give one of file_exists, matches"),
    ({"command": "test -n '\0'"}, "command holds a NUL character"),
    ({"file_exists": "a", "matches": {"path": "a", "pattern": "b"}}, "give one of"),
    ({"command": "true"}, "always ends with 0"),
    ({"command": "make test || true"}, "always ends with 0"),
    ({"file_exists": "../a"}, "holds .."),
    ({"matches": {"path": "a", "pattern": "("}}, "not valid RE2"),
    ({"matches": {"path": "/a", "pattern": "x"}}, "absolute"),
    ({"matches": {"path": "a"}}, "pattern: "),
    ("soon", "an object"),
]


@pytest.mark.parametrize(("value", "complaint"), WRONG)
def test_a_condition_that_cannot_be_used_is_refused_where_it_is_written(
    tmp_path: Path, value: Any, complaint: str
) -> None:
    job = Standing.begin(tmp_path)
    todos = [{"id": 1, "content": "x", "done_when": value}]
    answer = job.call("todo_write", phase="p", description="", todos=todos)
    assert answer.startswith("Error: ")
    assert complaint in answer
    assert "todos.yaml" not in job.paths()
    todo = parse_agent_todo_file(json.dumps({"todos": todos}).encode()).todos[0]
    assert todo.done_when is None
    assert complaint in str(todo.done_when_error)


def test_a_condition_is_handed_over_with_its_todo(tmp_path: Path) -> None:
    job = Standing.begin(tmp_path)
    done_when = {"matches": {"path": "a.md", "pattern": "x+"}}
    job.write("plan.md", "## Phase 1: Tea\n- [ ] x\n")
    todos = [{"id": 1, "content": "x", "done_when": done_when}, {"id": 2, "content": "y"}]
    job.call("todo_write", phase="p", description="", todos=todos)
    first, second = parse_agent_todo_file(job.text("todos.yaml").encode()).todos
    assert first.done_when == read_done_when(done_when)
    assert second.done_when is None
    assert second.done_when_error is None


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: .inf", "$.a: not a finite number"),
        ("a: [1, .nan]", "$.a[1]: not a finite number"),
        ("a: 1\nb: 2\na: 3", "the key 'a' is given twice"),
        ("1: a\n'1': b", "$: the key '1' stands twice"),
        ("[" * 900 + "]" * 900, "nested too deeply"),
        ("a: &x 1\nb: *x", "aliases"),
    ],
)
def test_yaml_is_held_to_the_same_as_json(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=re.escape(problem)):
        read_done_when_file("output/a.yaml", text.encode())
    assert read_done_when_file("a.yml", b"a: 2026-01-02\nb: [1.5]") == {
        "a": "2026-01-02", "b": [1.5],
    }  # fmt: skip
