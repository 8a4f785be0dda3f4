"""Tool calls as activities: bad calls become results the model can act on, never a failure."""

import dataclasses
import errno
import json
import socket
import threading
import time
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from temporalio.exceptions import ApplicationError

from activities.checkpoints import Files
from activities.job.conversation_calls import truncate_result
from activities.steps.gate_facts import gather_gate_facts
from activities.toolkit.registry import REGISTRY
from activities.toolkit.tool_context import ToolContext
from protocol.failure_details import OUTAGE
from protocol.limits import JobLimits
from protocol.requests import ToolReply
from protocol.scope_ledger import sync_plan_steps
from tests.activities.standing import Standing
from tests.soak import patient
from workflows.rules.gates import Refusal, phase_gate

MEGABYTE = "x" * 1_000_000


@pytest.fixture
def job(tmp_path: Path) -> Standing:
    return Standing.begin(tmp_path)


BAD_ARGUMENTS = {
    "broken": '{"path": ',
    "kept as malformed": '{"malformed_arguments": "{\\"path\\": "}',
    "list": "[]",
    "number": "7",
    "null": "null",
    "text": '"notes/a.md"',
    "deep": "[" * 100_000,
    "deep object": '{"a":' * 50_000,
    "huge number": '{"path": ' + "9" * 5000 + "}",
    "unknown field": '{"pathh": "a.md"}',
    "lone surrogate": '{"path": "\\ud800", "content": "\\udfff"}',
    "megabyte": json.dumps({MEGABYTE: MEGABYTE}),
    "wrong type": '{"path": 7, "content": [], "old": {}, "new": null, "todos": "x", "issue": 3}',
}
OF_ITS_OWN = ("megabyte", "unknown field", "wrong type")
"""Each tool checks these itself; the others are refused before the tool is called."""


@pytest.mark.parametrize("name", REGISTRY)
def test_bad_arguments_are_a_result_that_says_what_is_expected(job: Standing, name: str) -> None:
    files = job.open().files
    for why in BAD_ARGUMENTS if name == "write_file" else OF_ITS_OWN:
        result = job.call(name, BAD_ARGUMENTS[why])
        assert result.startswith(f"Error: {name}: "), why
        assert len(result) <= 20_010, why
        assert f"{name}(" in result or "whole characters" in result, why
    assert job.open().files == files


PATHS = ["/etc/passwd", "../x", "notes/../../x", "", ".", "a\\b", "a\nb", "x" * 5000, "a/" * 300]


@pytest.mark.parametrize("path", PATHS, ids=range(len(PATHS)))
def test_paths_that_lead_elsewhere_are_refused(job: Standing, path: str) -> None:
    files = job.open().files
    for name, other in {
        "write_file": {"content": "x"},
        "append_file": {"content": "x"},
        "read_file": {},
        "edit_file": {"old": "a", "new": "b"},
        "delete_file": {},
    }.items():
        assert job.call(name, path=path, **other).startswith("Error: ")
    assert job.call("move_file", old="instructions.md", new=path).startswith("Error: ")
    assert job.open().files == files


def test_write_read_append_edit_move_list_delete(job: Standing) -> None:
    assert job.call("write_file", path="notes/a.md", content="one\ntwo\n") == (
        "Wrote 8 characters to notes/a.md."
    )
    assert job.call("append_file", path="notes/a.md", content="three\n").endswith("now 14.")
    assert job.call("read_file", path="notes/a.md", offset=2, limit=1) == (
        "notes/a.md, lines 2-2 of 3\n     2\ttwo"
    )
    assert job.call("edit_file", path="notes/a.md", old="two", new="2") == (
        "Replaced 1 passage in notes/a.md."
    )
    assert "notes/a.md  12" in job.call("list_files", path="notes")
    assert "notes/a.md" in job.call("list_files", pattern="notes/*.md")
    assert job.call("search_files", query="THREE") == "notes/a.md:3: three"
    assert job.call("search_files", query="^t.*e$", path="notes/a.md", mode="regex") == (
        "notes/a.md:3: three"
    )
    assert job.call("move_file", old="notes/a.md", new="b.md") == "Moved notes/a.md to b.md."
    assert job.text("b.md") == "one\n2\nthree\n"
    assert job.call("delete_file", path="b.md") == "Deleted b.md."
    assert job.call("read_file", path="b.md").startswith("Error: There is no file 'b.md'")


def test_a_missing_file_is_answered_with_those_of_its_name(job: Standing) -> None:
    missing = "Error: There is no file 'policy.md'; list the folder to see what is there."
    assert job.call("read_file", path="policy.md") == missing
    job.write("documents/policy.md", "Tea.")
    found = f"{missing} Files of that name: 'documents/policy.md'."
    assert job.call("read_file", path="policy.md") == found
    assert job.call("extract_document_text", path="policy.md") == found


def test_a_missing_folder_is_answered_with_those_of_its_name(job: Standing) -> None:
    job.write("repo/mako/ext/babel.py", "")
    job.write("repo/mako/ext/cache.py", "")
    for path in ("ext", "mako/ext"):
        answer = job.call("list_files", path=path)
        assert answer.endswith(" Folders of that name: 'repo/mako/ext'.")


def test_no_file_is_made_of_a_path_that_names_a_folder(job: Standing) -> None:
    job.write("notes/a.md", "one")
    files = job.open().files
    for path in ("output/new/", "output/new/."):
        for refused in (
            job.call("write_file", path=path, content="x"),
            job.call("append_file", path=path, content="x"),
            job.call("move_file", old="notes/a.md", new=path),
        ):
            assert refused.startswith(f"Error: '{path}' names a folder. Give the file's name")
    assert job.open().files == files
    assert job.call("move_file", old="notes", new="output/new/").startswith("Moved")
    assert job.call("list_files", path="output/new/").startswith("output/new/a.md")


def test_what_was_a_folder_may_become_a_file_and_back(job: Standing) -> None:
    job.call("write_file", path="a/b.md", content="1")
    job.call("delete_file", path="a")
    assert job.call("write_file", path="a", content="2").startswith("Wrote")
    job.call("delete_file", path="a")
    assert job.call("write_file", path="a/b.md", content="3").startswith("Wrote")
    assert job.call("edit_file", path="a/b.md", old="3", new="4").startswith("Replaced")
    assert job.call("generate_workspace_summary").startswith("Wrote")


def test_a_file_in_place_of_a_folder_is_noted_as_changed_in_its_step(job: Standing) -> None:
    job.call("write_file", path="tea/black.md", content="x")
    snapshot = job.open()
    snapshot.state.step = 7
    before, files = snapshot.files, snapshot.files.delete("tea")
    for files_after, path in ((files.write("tea", b"y"), "tea"), (before, "tea/black.md")):
        snapshot.files, last = files_after, snapshot.files
        assert path in snapshot.record_changes(last)
        assert snapshot.changes.read(path) == b"7"
        assert snapshot.changed_since(6) == [path]


def test_edits_that_fit_nowhere_or_twice(job: Standing) -> None:
    job.write("a.md", "x\nx\n")
    assert "contains that text 2 times" in job.call("edit_file", path="a.md", old="x", new="y")
    assert "does not contain" in job.call("edit_file", path="a.md", old="z", new="y")
    same = job.call("edit_file", path="a.md", old="x", new="x", replace_all=True)
    assert same.startswith("Error: old and new are the same text")
    assert "Replaced 2 passages" in job.call(
        "edit_file", path="a.md", old="x", new="y", replace_all=True
    )
    assert job.text("a.md") == "y\ny\n"


def test_an_edit_of_places_that_overlap_is_refused(job: Standing) -> None:
    job.write("a.md", "----\n----\n----\n")
    result = job.call("edit_file", path="a.md", old="----\n----", new="x")
    assert "contains that text in places that overlap" in result
    assert job.text("a.md") == "----\n----\n----\n"


def test_lines_are_what_editors_count(job: Standing) -> None:
    job.write("a.md", "one\ftwo\u2028three\r\n\r\nfour\rfive\n\n")
    shown = job.call("read_file", path="a.md")
    assert shown == (
        "a.md, lines 1-4 of 4\n     1\tone\ftwo\u2028three\n     2\t\n     3\tfour\rfive\n     4\t"
    )
    assert job.call("search_files", query="four") == "a.md:3: four\rfive"
    edited = job.call("edit_file", path="a.md", old="one\ftwo\u2028three\n\nfour", new="4")
    assert edited.startswith("Replaced 1")
    for content, header in (("\n", "1-1 of 1"), ("\r\n", "1-1 of 1"), ("a\nb", "1-2 of 2")):
        job.write("b.md", content)
        assert job.call("read_file", path="b.md").startswith(f"b.md, lines {header}\n")


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ("one\ntwo", "1\n2", "1\r\n2\r\nthree\r\n"),
        ("one\r\ntwo\n", "1\r\n2\n", "1\r\n2\r\nthree\r\n"),
        ("two", "2\n2b", "one\r\n2\r\n2b\r\nthree\r\n"),
        ("\r\ntwo\r\n", "\n", "one\nthree\r\n"),
    ],
)
def test_an_edit_keeps_the_line_ends_of_the_file(
    job: Standing, old: str, new: str, text: str
) -> None:
    job.write("a.md", "one\r\ntwo\r\nthree\r\n")
    assert job.call("edit_file", path="a.md", old=old, new=new).startswith("Replaced 1")
    assert job.open().files.read("a.md").decode() == text


def test_an_edit_is_refused_when_the_file_changed_since_it_was_read(job: Standing) -> None:
    job.write("a.md", "one\n")
    job.call("read_file", path="a.md")
    job.write("a.md", "one\ntwo\n")
    result = job.call("edit_file", path="a.md", old="one", new="1")
    assert "changed since it was last read" in result
    assert "2\ttwo" in result
    assert job.call("edit_file", path="a.md", old="one", new="1").startswith("Replaced")


def test_an_edit_that_would_fill_the_memory_is_refused(job: Standing) -> None:
    job.write("a.md", "a" * 1_000_000)
    result = job.call("edit_file", path="a.md", old="a", new=MEGABYTE, replace_all=True)
    assert "would have 1,000,000,000,000 characters" in result


@pytest.mark.parametrize(
    ("path", "pattern", "expected"),
    [
        ("", "[an]*.md", ["a.md", "notes/a.md", "notes/deep/b.md"]),
        ("", "**/?.md", ["a.md", "notes/a.md", "notes/deep/b.md"]),
        ("", "notes/**/*.md", ["notes/a.md", "notes/deep/b.md"]),
        ("", "notes/?.md", ["notes/a.md"]),
        ("notes", "a.md", ["notes/a.md"]),
        ("./notes/", "deep/*", ["notes/deep/b.md"]),
        ("notes", "notes/*.txt", ["notes/c.txt"]),
        ("notes", "**/b.md", ["notes/deep/b.md"]),
    ],
)
def test_a_pattern_is_of_the_whole_path_or_of_what_lies_below(
    job: Standing, path: str, pattern: str, expected: list[str]
) -> None:
    for name in ("a.md", "notes/a.md", "notes/deep/b.md", "notes/c.txt"):
        job.write(name, "x")
    listed = job.call("list_files", path=path, pattern=pattern)
    assert [line.split()[0] for line in listed.splitlines()] == expected


def test_files_over_the_limit_are_refused(tmp_path: Path) -> None:
    small = Standing.begin(tmp_path, set={"limits.file_bytes": 1000})
    assert "a file may have 1,000" in small.call("write_file", path="a", content="x" * 1001)
    small.call("write_file", path="a", content="x" * 600)
    assert "a file may have 1,000" in small.call("append_file", path="a", content="x" * 600)


def test_many_hits_are_counted_and_several_lines_not_said_to_be_nowhere(job: Standing) -> None:
    job.write("a.md", "one\ntwo\n" * 11)
    assert job.call("search_files", query="one").endswith("\na.md:21: one\n[11 lines match]")
    assert "searched one by one" in job.call("search_files", query="one\ntwo")


def test_empty_binary_and_wide_files(job: Standing) -> None:
    job.write("empty", "")
    job.write("binary", b"\x00\xff\xfe" * 100)
    job.write("wide", "x" * 3_000_000)
    assert job.call("read_file", path="empty") == "empty, lines 1-0 of 0"
    assert "not a text file" in job.call("read_file", path="binary")
    assert "not a text file" in job.call("append_file", path="binary", content="x")
    result = job.call("read_file", path="wide")
    assert len(result) <= 20_000
    assert "[TRUNCATED" in result
    assert len(job.call("search_files", query="x")) < 2000
    assert "past its end" in job.call("read_file", path="empty", offset=5)


def test_a_hit_in_a_long_line_is_shown(job: Standing) -> None:
    job.write("wide", f"  {'ä' * 30_000}needle{'z' * 30_000}  \n")
    for mode in ("text", "regex"):
        hit = job.call("search_files", query="needle", mode=mode)
        assert hit == f"wide:1 (column 30,003): …{'ä' * 120}needle{'z' * 274}…"
    read = job.call("read_file", path="wide", column=30_003)
    assert read.startswith("wide, lines 1-1 of 1, from column 30,003 on (the longest has 60,010)")
    assert "\tneedlezzz" in read
    assert "[TRUNCATED" in read
    assert (
        job.call("search_files", query="z$", mode="regex")
        == "Nothing in the workspace matches 'z$'."
    )
    assert job.call("search_files", query="z +$", mode="regex") == (
        f"wide:1 (column 60,008): …{'z' * 400}"
    )
    assert job.call("search_files", query="ää") == f"wide:1: {'ä' * 400}…"


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|aa)*b", "(a*)*b", ".*.*.*.*.*x"])
def test_patterns_take_linear_time(job: Standing, pattern: str) -> None:
    job.write("a.txt", "a" * 50_000 + "c\n")
    start = time.process_time()
    assert "a.txt" not in job.call("search_files", query=pattern, mode="regex")
    assert time.process_time() - start < patient(2)


@pytest.mark.parametrize("pattern", ["(", "(?P<x", "\\1", "a{1,100000}", "(?=a)", "[z-a]"])
def test_patterns_that_are_none_are_answered(job: Standing, pattern: str) -> None:
    answer = job.call("search_files", query=pattern, mode="regex")
    assert "not a valid RE2 pattern" in answer
    assert "b'" not in answer


def test_names_no_tool_would_give_can_be_listed_and_searched(job: Standing) -> None:
    odd = ("notes", "caf\udce9\\x\n.md")

    def put(files: Files) -> Files:
        written = files.write("notes/x.md", b"needle\n")
        raw = written.tree_entry(("notes", "x.md"))
        return written.with_tree_entry(odd, raw)

    job.put(put)
    assert "needle" in job.call("search_files", query="needle")
    assert "notes/" in job.call("list_files", path="notes")
    assert job.call("generate_workspace_summary").startswith("Wrote")
    assert job.call("move_file", old="notes", new="memory").startswith("Moved")
    assert job.call("delete_file", path="memory").startswith("Deleted")


def test_todos_are_completed_in_order(job: Standing) -> None:
    assert job.call("todo_complete", notes="fine").startswith("Completed todo 1")
    state = job.open().state
    assert [todo.done for todo in state.phase.todos] == [True, False, False]
    assert state.phase.todos[0].notes == "fine"
    job.call("todo_complete")
    job.call("todo_complete")
    assert "no open todo" in job.call("todo_complete")


@pytest.mark.parametrize(
    ("last", "expected"),
    [
        ({"items": [" P1\n"]}, ""),
        ({"items": ["P3", "P1"]}, "these items do not exist: P3 (those of this job are: P1, P2)."),
        ({"id": 1}, "the id 1 is used twice."),
        ({"id": 1_000_000}, "the id of entry 5 is not a whole number under a million."),
        ({"content": " \n"}, "the content of todo 5 is not a text with words."),
        ({"items": ["P1"] * 501}, "List should have at most 500 items"),
        ({"done_when": {"command": "make test"}}, "done_when: no command can be run here;"),
    ],
)
def test_todo_write_says_what_the_gate_will_say(
    job: Standing, last: dict[str, Any], expected: str
) -> None:
    job.write("plan.md", "## Phase 1: Tea\n\n- [ ] Boil\n- [ ] Steep\n")
    todos = [{"id": n, "content": f"Step {n}."} for n in range(1, 5)]
    todos.append({"id": 5, "content": "Step 5.", **last})
    wrote = job.call("todo_write", phase="A", description="", todos=todos)
    assert expected in wrote
    job.reply(("todo_complete", "{}"))
    standing = job.open()
    outcome = phase_gate(standing.state, gather_gate_facts(standing, 0), JobLimits())
    assert isinstance(outcome, Refusal) is wrote.startswith("Error: ") is bool(expected), outcome
    assert ("todos.yaml" in job.paths()) is not bool(expected)


def test_todo_write_hands_over_a_list_and_refuses_nonsense(job: Standing) -> None:
    todos = [{"content": "Do: it, #1\nnow", "status": "pending"}]
    wrote = job.call("todo_write", phase="A", description="", todos=todos)
    assert wrote.startswith("Error: The list is not accepted: it holds 1 todo, 5 to 20 are needed")
    job.call("write_file", path="plan.md", content="# Plan\n\n## Phase 1: A\n- [ ] a\n- [ ] b\n")
    # A one-phase plan is not padded, ids are assigned, and other agents' fields are accepted.
    wrote = job.call("todo_write", phase="A", description="", todos=todos)
    assert wrote == "Wrote 1 todo for 'A' to todos.yaml."
    # Neither is a correction after the last phase of a longer plan.
    plan = "# Plan\n\n## Phase 1: A\n- [x] a\n\n## Phase 2: B\n- [x] b\n"
    job.call("write_file", path="plan.md", content=plan)
    assert "5 to 20" in job.call("todo_write", phase="A", description="", todos=todos)
    snapshot = job.open()
    snapshot.state.scope = sync_plan_steps([], [(1, "a"), (2, "b")])
    for step in snapshot.state.scope:
        step.status = "completed"
    job.commit = snapshot.save("done", 1)
    job.call("write_file", path="plan.md", content=plan)
    wrote = job.call("todo_write", phase="A", description="", todos=todos)
    assert wrote == "Wrote 1 todo for 'A' to todos.yaml."
    assert "Do: it" in job.text("todos.yaml")
    assert "id: 1\n" in job.text("todos.yaml")
    strange = job.call(
        "todo_write", phase="A", description="", todos=[{**todos[0], "items": ["S9"]}]
    )
    assert "do not exist: S9 (those of this job are: " in strange
    for bad in ([], [{"id": "x", "content": "a"}], [{"id": 1, "content": ""}], [{"id": 1}], ["a"]):
        result = job.call("todo_write", phase="A", description="", todos=bad)
        assert result.startswith("Error: ")
    vague = [{"content": "a", "done_when": "make test"}]
    result = job.call("todo_write", phase="A", description="", todos=vague)
    assert 'todos, entry 1, done_when: expected an object of the form {"file_exists": ' in result


def test_results_are_cut_in_the_middle() -> None:
    assert truncate_result("x" * 500, 500) == "x" * 500
    short = truncate_result("a" * 10_000 + "b" * 10_000, 1000)
    assert len(short) <= 1000
    assert short.startswith("aaa")
    assert short.endswith("bbb")
    assert "[TRUNCATED 19,200 characters" in short


def test_a_long_result_is_not_shown_twice(job: Standing) -> None:
    job.write("long.md", "tea\n" * 500)
    job.write("short.md", "tea\n")
    first = job.call("read_file", path="long.md")
    named = job.call("read_file", path="long.md")
    assert named == (
        'The same result as that of read_file {"path": "long.md"} above, to the letter; nothing of '
        "it has changed."
    )
    job.write("long.md", "tea\n" * 501)
    changed = job.call("read_file", path="long.md")
    assert changed.startswith("long.md, lines 1-500 of 501")
    assert changed != first
    assert job.call("read_file", path="short.md") == job.call("read_file", path="short.md")


def test_a_refused_call_is_recorded(job: Standing) -> None:
    job.reply(("todo_complete", "{}"), ("list_files", "{}"))
    reply = job.run("todo_complete", job.request(refusal="Do the work first."))
    assert (reply.ok, reply.error) == (False, "Do the work first.")
    message = job.open(reply.commit).conversation.messages()[-1]["content"]
    assert message == "Error: Do the work first."


def test_a_denied_call_is_answered(job: Standing) -> None:
    job.reply(("launch", "{}"))
    reply = job.run("deny_call", job.request(refusal="There is no tool 'launch'."))
    assert (reply.ok, reply.error) == (False, "There is no tool 'launch'.")


CHANGING: list[tuple[str, dict[str, Any]]] = [
    ("write_file", {"path": "a.md", "content": "x" * 10_000}),
    ("append_file", {"path": "instructions2.md", "content": "x"}),
    ("move_file", {"old": "plan.md", "new": "b.md"}),
    ("todo_complete", {"notes": "done"}),
    ("generate_workspace_summary", {}),
    ("read_file", {"path": "missing"}),
]


@pytest.mark.parametrize(("name", "arguments"), CHANGING)
def test_the_same_request_gives_the_same_commit_also_at_once(
    job: Standing, name: str, arguments: dict[str, Any]
) -> None:
    job.write("plan.md", "# Plan")
    job.reply((name, json.dumps(arguments)))
    request, start = job.request(), threading.Barrier(2)
    replies: list[ToolReply] = []

    def attempt() -> None:
        start.wait()
        replies.append(job.run(name, request))

    threads = [threading.Thread(target=attempt) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    replies.append(job.run(name, request))
    assert len(replies) == 3
    assert len({reply.model_dump_json() for reply in replies}) == 1


def test_a_result_tells_what_stuck_detection_asks(job: Standing) -> None:
    def reply(name: str, **arguments: Any) -> ToolReply:
        job.reply((name, json.dumps(arguments)))
        outcome = job.run(name, job.request())
        job.commit = outcome.commit
        return outcome

    listed = reply("list_files", path="documents")
    assert (listed.fingerprint, listed.changed) == (
        reply("list_files", path="documents").fingerprint,
        False,
    )
    first = reply("write_file", path="a.md", content="x")
    again = reply("write_file", path="a.md", content="x")
    assert (first.changed, again.changed) == (True, False)
    assert first.fingerprint == again.fingerprint != listed.fingerprint
    one, other = reply("read_file", path="b.md"), reply("read_file", path="c.md")
    assert one.error_fingerprint == other.error_fingerprint != ""
    assert one.fingerprint != other.fingerprint
    assert len(one.model_dump_json(exclude_unset=True)) < 250


def test_a_result_that_differs_where_it_is_cut_is_another(tmp_path: Path) -> None:
    small = Standing.begin(tmp_path, set={"limits.result_characters": 500})
    marks = []
    for letter in "ab":
        small.write("a.md", "x" * 2000 + letter + "x" * 2000)
        small.reply(("read_file", '{"path": "a.md"}'))
        marks.append(small.run("read_file", small.request()).fingerprint)
    assert marks[0] != marks[1]


def test_of_a_polling_tool_whole_seconds_tell_and_workflow_code_knows_it(
    job: Standing, monkeypatch: pytest.MonkeyPatch
) -> None:
    def marks() -> set[str]:
        fingerprints = set()
        for seconds in ("3.2", "4.1"):
            job.write("status.txt", f"running for {seconds} s")
            job.reply(("read_file", '{"path": "status.txt"}'))
            fingerprints.add(job.run("read_file", job.request()).fingerprint)
        return fingerprints

    entry = REGISTRY["read_file"]
    assert entry.route.polling is False
    assert len(marks()) == 1
    polling = dataclasses.replace(entry, polling=True)
    assert polling.route.polling is True
    monkeypatch.setitem(REGISTRY, "read_file", polling)
    assert len(marks()) == 2


def failing(job: Standing, monkeypatch: pytest.MonkeyPatch, run: Any) -> str:
    """Return the failure of a tool that does this, as a person sees it."""
    entry = dataclasses.replace(REGISTRY["read_file"], function=run)
    monkeypatch.setitem(REGISTRY, "read_file", entry)
    job.reply(("read_file", '{"path": "notes/a.md"}'))
    with pytest.raises(ApplicationError) as raised:
        job.run("read_file", job.request(), local=False)
    outage = " (outage)" * (OUTAGE in raised.value.details)
    return f"{raised.value.type}{outage}: {raised.value.message}"


def test_a_tool_whose_connection_is_refused_is_no_trouble_of_the_store(
    job: Standing, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{unused.getsockname()[1]}"
    why = failing(job, monkeypatch, lambda *_, **__: urlopen(address))
    assert why == "Unforeseen: URLError: <urlopen error [Errno 111] Connection refused>"


def test_a_tool_that_meets_a_full_disk_or_a_broken_store_says_so(
    job: Standing, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> str:
        raise OSError(errno.ENOSPC, "No space left on device")

    assert failing(job, monkeypatch, full).startswith(
        "Storage (outage): The workspaces root cannot"
    )
    job.write("notes/a.md", b"x" * 100_000)

    def read(context: ToolContext, **_: Any) -> str:
        def denied(*_: Any, **__: Any) -> None:
            raise PermissionError(errno.EACCES, "Permission denied", "objects")

        with monkeypatch.context() as patch:
            patch.setattr(type(context.files.store), "read", denied)
            return context.files.read("notes/a.md").decode()

    # Raised by a stand-in and passed on by the store.
    assert "Give the worker's user access" in failing(job, monkeypatch, read)
