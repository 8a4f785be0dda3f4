"""Hooks speak the protocol, and one that does anything else denies."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from activities.guards.hooks.processes import run_hook
from tests.activities.guards.hooks.scripts import begin, call, hook, say
from tests.activities.standing import Standing
from tests.soak import patient

DENIAL = {"permissionDecision": "deny", "permissionDecisionReason": "not on Sundays"}
BLOCKING = {
    "exit 2": "print('not on Sundays', file=sys.stderr); sys.exit(2)",
    "deny": say({"permissionDecision": "deny", "permissionDecisionReason": "not on Sundays"}),
    "deny inside": say(
        {
            "hookSpecificOutput": {
                "permissionDecision": "deny",
                "permissionDecisionReason": "not on Sundays",
            }
        }
    ),
    "block": say({"decision": "block", "reason": "not on Sundays"}),
    "block inside": say({"hookSpecificOutput": {"decision": "block", "reason": "not on Sundays"}}),
    "deny beats allow": say(
        {
            "permissionDecision": "allow",
            "hookSpecificOutput": {"decision": "block", "reason": "not on Sundays"},
        }
    ),
    "stop": say({"continue": False, "stopReason": "not on Sundays"}),
    "behind a banner": f"print('Shell ready on host'); {say(DENIAL)}",
    "in a log line": f"print('12:00 hook:', {json.dumps(DENIAL)!r})",
    "after another": f"{say({'status': 'ready'})}; {say(DENIAL)}",
    "before another": f"{say(DENIAL)}; {say({'permissionDecision': 'allow'})}",
    "over several lines": f"print('Ready'); print({json.dumps(DENIAL, indent=2)!r})",
    "in a list": f"print('[' + {json.dumps(DENIAL)!r} + ']')",
}


@pytest.mark.parametrize("body", BLOCKING.values(), ids=BLOCKING)
def test_a_block_denies_with_its_reason(tmp_path: Path, body: str) -> None:
    job = begin(tmp_path, "PreToolUse", body)
    reply, answer = call(job, "write_file", path="a.md", content="x")
    assert (reply.ok, reply.guard, answer) == (False, "h0", "Error: Refused by h0: not on Sundays")
    assert "a.md" not in job.paths()


ALLOWING = {
    "silent": "pass",
    "text": "print('looks good')",
    "allow": say({"permissionDecision": "allow"}),
    "approve": say({"decision": "approve"}),
    "empty": say({}),
    "nulls": say({"decision": None, "updatedInput": None, "hookSpecificOutput": None}),
    "complaint": "print('hm', file=sys.stderr)",
    "two harmless objects": f"{say({'continue': True, 'status': 'ready'})}; {say({})}",
    "text with braces": "print('if (x) {'); print('for ${USER} }')",
    "a banner before": f"print('Shell ready'); {say({'permissionDecision': 'allow'})}",
}


@pytest.mark.parametrize("body", ALLOWING.values(), ids=ALLOWING)
def test_anything_else_that_ends_well_allows(tmp_path: Path, body: str) -> None:
    reply, _ = call(begin(tmp_path, "PreToolUse", body), "write_file", path="a.md", content="x")
    assert reply.ok


FAILING = {
    "exit 1": ("print('oops', file=sys.stderr); sys.exit(1)", "exit code 1"),
    "exit 3": ("sys.exit(3)", "exit code 3"),
    "crash": ("raise RuntimeError('oops')", "RuntimeError: oops"),
    "signal": ("os.kill(os.getpid(), signal.SIGSEGV)", "exit code 139|signal 11"),
    "hang": ("time.sleep(60)", "did not end within 1 s"),
    "hang with children": ("subprocess.run(['sleep', '60'])", "did not end within 1 s"),
    "flood": ("[sys.stdout.write('x' * 1_000_000) for _ in range(100)]", "more than 1,000,000"),
    "half an object": ("print('{\"decision\"')", "no answer can be read in what it printed: {"),
    "half, behind a banner": (
        "print('Shell ready'); print('{\"permissionDecision\": \"deny')",
        "no answer can be read in what it printed: Shell ready / {",
    ),
    "two, one broken": (
        "print('{}'); print('{\"decision\": \"block\",}')",
        "no answer can be read in what it printed: {} / {",
    ),
    "single quotes": ("print('Ready'); print({'decision': 'block'})", "no answer can be read"),
    "no JSON at all": ("print('permissionDecision: deny')", "no answer can be read"),
    "unknown word": (say({"permissionDecision": "perhaps"}), "permissionDecision is 'perhaps'"),
    "wrong input": (say({"updatedInput": "b.md"}), "updatedInput is 'b.md'"),
}


@pytest.mark.parametrize(("body", "why"), FAILING.values(), ids=FAILING)
def test_a_hook_that_fails_denies_and_says_so(tmp_path: Path, body: str, why: str) -> None:
    begun = time.monotonic()
    job = begin(tmp_path, "PreToolUse", body, timeout=1 if "sleep" in body else 60)
    reply, answer = call(job, "write_file", path="a.md", content="x")
    assert (reply.ok, reply.guard) == (False, "h0")
    assert "The hook h0 failed" in answer
    assert any(part in answer for part in why.split("|")), answer
    # The sleeping process was not waited for.
    assert time.monotonic() - begun < patient(45)
    assert "a.md" not in job.paths()


def test_a_missing_hook_denies_and_says_so(tmp_path: Path) -> None:
    hooks = {"PreToolUse": [{"command": "/nowhere/check --all"}]}
    job = Standing.begin(tmp_path, set={"hooks": hooks})
    reply, answer = call(job, "write_file", path="a.md", content="x")
    assert (reply.ok, reply.guard) == (False, "check")
    assert "could not be run (exit code 127)" in answer


def test_one_that_fails_open_lets_pass_and_is_told_of(tmp_path: Path) -> None:
    job = begin(tmp_path, "PreToolUse", "sys.exit(1)", fail="open")
    reply, _ = call(job, "write_file", path="a.md", content="x")
    assert reply.ok
    assert "failed and was passed over" in reply.remarks[0]


def test_nothing_of_a_hook_is_left_running(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    late = f"import time; time.sleep(1); open({str(mark)!r}, 'w')"
    body = f"subprocess.Popen([sys.executable, '-c', {late!r}])"
    reply, _ = call(begin(tmp_path, "PreToolUse", body), "write_file", path="a.md", content="x")
    assert reply.ok
    time.sleep(1.5)
    assert not mark.exists()


def test_what_is_printed_to_error_without_end_is_bounded(tmp_path: Path) -> None:
    body = "[sys.stderr.write('x' * 1_000_000) for _ in range(30)]; sys.exit(2)"
    reply, answer = call(
        begin(tmp_path, "PreToolUse", body), "write_file", path="a.md", content="x"
    )
    assert reply.guard == "h0"
    assert len(answer) < 5000


def test_a_hook_gets_none_of_the_workers_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "the key")
    monkeypatch.setenv("TEAM", "tea")
    ran = run_hook("env", b"", folder=str(tmp_path), seconds=5, variables=["TEAM"])
    assert "TEAM=tea" in ran.out
    assert "PATH=" in ran.out
    assert "the key" not in ran.out


UPDATED = {
    "theirs": {"updatedInput": {"file_path": "notes/b.md"}},
    "ours": {"updatedInput": {"path": "notes/b.md"}},
    "inside": {"hookSpecificOutput": {"updatedInput": {"file_path": "notes/b.md"}}},
    "allowed": {"permissionDecision": "allow", "updatedInput": {"file_path": "notes/b.md"}},
}


@pytest.mark.parametrize("answer", UPDATED.values(), ids=UPDATED)
def test_updated_input_is_what_the_tool_gets(tmp_path: Path, answer: dict[str, Any]) -> None:
    job = begin(tmp_path, "PreToolUse", say(answer))
    reply, tool_answer = call(job, "write_file", path="a.md", content="x")
    assert reply.ok
    assert "h0 rewrote the call: path is 'notes/b.md'" in tool_answer
    assert job.text("notes/b.md") == "x"


def test_an_updated_path_may_be_absolute_in_the_workspace(tmp_path: Path) -> None:
    body = (
        "made = {**event['tool_input'], 'file_path': os.path.join(event['cwd'], 'b.md')}\n"
        "print(json.dumps({'updatedInput': made}))"
    )
    job = begin(tmp_path, "PreToolUse", body)
    assert call(job, "write_file", path="a.md", content="x")[0].ok
    assert job.text("b.md") == "x"


def test_what_a_hook_rewrites_passes_the_guards(tmp_path: Path) -> None:
    secret = "AKIA" + "IOSFODNN7EXAMPLE"
    job = begin(tmp_path, "PreToolUse", say({"updatedInput": {"content": secret}}))
    assert call(job, "write_file", path="a.md", content="x")[0].guard == "secrets"


PATHS = ("file_path", "path")


@pytest.mark.parametrize(
    ("name", "arguments", "tool", "hook_input"),
    [
        ("write_file", {"path": "a", "content": "c"}, "Write", {"file_path": "a", "content": "c"}),
        (
            "edit_file",
            {"path": "a", "old": "o", "new": "n", "replace_all": True},
            "Edit",
            {"file_path": "a", "old_string": "o", "new_string": "n", "replace_all": True},
        ),
        (
            "append_file",
            {"path": "a", "content": "c"},
            "Edit",
            {"file_path": "a", "old_string": "", "new_string": "c"},
        ),
        ("read_file", {"path": "a", "limit": 5}, "Read", {"file_path": "a", "limit": 5}),
        ("search_files", {"query": "q", "path": "b"}, "Grep", {"pattern": "q", "path": "b"}),
        ("list_files", {"pattern": "*.md"}, "Glob", {"pattern": "*.md"}),
        ("delete_file", {"path": "a"}, "delete_file", {"path": "a"}),
    ],
)
def test_the_event_has_the_protocols_names_beside_ours(
    tmp_path: Path, name: str, arguments: dict[str, Any], tool: str, hook_input: dict[str, Any]
) -> None:
    out = tmp_path / "event.json"
    job = begin(tmp_path, "PreToolUse", f"json.dump(event, open({str(out)!r}, 'w'))")
    job.write("a", "o\n")
    call(job, name, **arguments)
    event = json.loads(out.read_text())
    folder = str(job.root.workspace("job"))
    absolute = {k: f"{folder}/{v}" for k, v in hook_input.items() if k in PATHS and tool != name}
    assert (event["tool_name"], event["tool_input"]) == (tool, {**hook_input, **absolute})
    assert (event["tool"], event["arguments"]) == (name, arguments)
    assert (event["hook_event_name"], event["session_id"]) == ("PreToolUse", "job")
    assert event["cwd"] == folder
    assert (Path(event["cwd"]) / "a").read_text() == "o\n"
    assert event["agent"]["name"] == "generalist"
    assert event["agent"]["kind"] == "strategic"


@pytest.mark.parametrize(
    ("matcher", "matched"),
    [
        ("", True),
        ("*", True),
        ("Write", True),
        ("Edit|Write", True),
        ("write_file", True),
        (".*_file", True),
        ("Edit", False),
        ("Writ", False),
        ("write", False),
    ],
)
def test_a_matcher_is_a_pattern_of_the_whole_name(
    tmp_path: Path, matcher: str, matched: bool
) -> None:
    job = begin(tmp_path, "PreToolUse", "sys.exit(2)", matcher=matcher)
    assert call(job, "write_file", path="a.md", content="x")[0].ok is not matched


NOTE = {"path": "a.md", "content": "x"}
QUOTED = 'print(\'he says {"permissionDecision": "allow"}\')'
ASKS = say({"permissionDecision": "ask", "permissionDecisionReason": "Really?"})


def test_a_question_is_neither_run_nor_recorded_and_runs_when_approved(tmp_path: Path) -> None:
    job = begin(tmp_path, "PreToolUse", ASKS)
    job.reply(("write_file", json.dumps({"path": "a.md", "content": "x"})))
    reply = job.run("write_file", job.request(), local=False)
    assert (reply.asks, reply.guard, reply.ok) == ("Really?", "h0", False)
    assert reply.commit == job.commit
    reply = job.run("write_file", job.request(approved=True), local=False)
    assert (reply.ok, reply.asks, reply.guard) == (True, "", "")


@pytest.mark.parametrize(
    ("answer", "ok", "guard"),
    [
        ({"hookSpecificOutput": {"decision": {"behavior": "allow"}}}, True, ""),
        ({"hookSpecificOutput": {"decision": {"behavior": "deny", "message": "no"}}}, False, "p"),
        ({"permissionDecision": "allow"}, True, ""),
        ({}, False, "h0"),
    ],
)
def test_a_hook_may_answer_in_a_persons_place(
    tmp_path: Path, answer: object, ok: bool, guard: str
) -> None:
    hooks = {
        "PreToolUse": [hook(tmp_path / "h0.py", ASKS)],
        "PermissionRequest": [hook(tmp_path / "p.py", say(answer))],
    }
    job = Standing.begin(tmp_path, set={"hooks": hooks})
    job.reply(("write_file", json.dumps({"path": "a.md", "content": "x"})))
    reply = job.run("write_file", job.request(), local=False)
    assert (reply.ok, reply.guard) == (ok, guard)


def test_what_is_quoted_within_a_line_permits_nothing(tmp_path: Path) -> None:
    hooks = {
        "PreToolUse": [hook(tmp_path / "h0.py", ASKS)],
        "PermissionRequest": [hook(tmp_path / "p.py", QUOTED)],
    }
    job = Standing.begin(tmp_path, set={"hooks": hooks})
    reply, _ = call(job, "write_file", **NOTE)
    assert (reply.ok, reply.asks) == (False, "Really?")


def test_nobody_is_asked_about_what_is_refused_once_it_is_rewritten(tmp_path: Path) -> None:
    deny = (
        "if event['arguments']['path'] == 'b.md':\n    print('never', file=sys.stderr); sys.exit(2)"
    )
    moves = say({"updatedInput": {"file_path": "b.md"}})
    reply, answer = call(begin(tmp_path, "PreToolUse", ASKS, moves, deny), "write_file", **NOTE)
    assert (reply.asks, reply.guard, answer) == ("", "h2", "Error: Refused by h2: never")


def test_a_bypass_lets_one_refusal_through_and_says_whose(tmp_path: Path) -> None:
    job = begin(tmp_path, "PreToolUse", "sys.exit(2)")
    job.reply(("write_file", json.dumps({"path": "a.md", "content": "x"})))
    reply = job.run("write_file", job.request(bypass=["h0"]), local=False)
    assert (reply.ok, reply.bypassed_guard) == (True, "h0")
    reply = job.run("write_file", job.request(bypass=["other"]), local=False)
    assert (reply.ok, reply.guard, reply.bypassed_guard) == (False, "h0", "")
