"""Guards at the other points, and those that a person approved or that are only drafts."""

import json
from pathlib import Path
from typing import Any

import pytest

from activities.guards.call_guards import CallGuards
from activities.guards.tool_routes import guarded_route
from activities.steps.judge_ending import judge_ending
from activities.toolkit.registry import REGISTRY
from config.agent_files import load_agent
from config.schema.guards import Guard
from protocol.endings import EndingRequest, EndingVerdict
from protocol.requests import ToolReply
from tests.activities.guards.hooks.scripts import hook, say
from tests.activities.standing import AT, Standing, environment


def rule(**details: Any) -> Guard:
    defaults = {"name": "rule", "point": "before_tool", "decision": "deny", "message": "No."}
    return Guard.model_validate(defaults | details)


def begin(path: Path, *rules: Guard) -> Standing:
    """Return a job with these guards pinned."""
    job = Standing.begin(path)
    job.pin(load_agent("generalist").model_copy(update={"rules": list(rules)}))
    return job


@pytest.mark.parametrize(
    ("match", "denied"),
    [
        ({}, True),
        ({"tool": ["*_file"]}, True),
        ({"tool": ["run_*"]}, False),
        ({"phase": "strategic"}, True),
        ({"phase": "tactical"}, False),
        ({"agent": ["gen*"]}, True),
        ({"not_agent": ["gen*"]}, False),
        ({"arguments": {"content": "^tea$"}}, True),
        ({"arguments": {"contents": ""}}, False),
        ({"content": ["t.a"]}, True),
        ({"content": ["coffee"]}, False),
        ({"longer": 5}, True),
        ({"longer": 14}, True),
        ({"longer": 15}, False),
        ({"longer": 2, "ignoring": ["path"]}, True),
        ({"longer": 3, "ignoring": ["path"]}, False),
        ({"content": ["content|path"]}, False),
        ({"path": ["notes/*"]}, True),
        ({"path": ["output/*"]}, False),
        ({"path": ["notes/*"], "content": ["coffee"]}, False),
    ],
)
def test_all_that_a_match_names_must_hold(
    tmp_path: Path, match: dict[str, Any], denied: bool
) -> None:
    job = begin(tmp_path, rule(match=match))
    result = job.call("write_file", path="notes/./a.md", content="tea")
    assert ("Refused by rule: No." in result) is denied


def test_an_error_of_a_rewritten_call_says_what_was_run(tmp_path: Path) -> None:
    rewrite = {"path": "instructions.md"}
    job = begin(tmp_path, rule(decision="rewrite", rewrite=rewrite, match={"path": ["a.md"]}))
    answer = job.call("write_file", path="a.md", content="x")
    assert answer.startswith("Error: instructions.md is an input of the job")
    assert answer.endswith("\n[rule rewrote the call: path is 'instructions.md']")
    assert "rewrote" not in job.call("write_file", path="instructions.md", content="x")


def test_what_is_rewritten_keeps_the_line_break_at_its_end(tmp_path: Path) -> None:
    rewrite = {"content": "{{ content }}\n"}
    job = begin(tmp_path, rule(decision="rewrite", rewrite=rewrite, match={"tool": ["write_*"]}))
    job.call("write_file", path="a.md", content="tea")
    assert job.text("a.md") == "tea\n"


@pytest.mark.parametrize("stage", ["draft", "experiment", "retired"])
def test_only_an_active_guard_acts(tmp_path: Path, stage: str) -> None:
    job = begin(tmp_path, rule(stage=stage))
    assert job.call("write_file", path="a.md", content="x").startswith("Wrote")


@pytest.mark.parametrize("stage", ["draft", "experiment", "retired"])
def test_the_same_holds_at_the_other_points(tmp_path: Path, stage: str) -> None:
    field = {"path": ["*.json"], "field": "tested"}
    job = begin(
        tmp_path,
        rule(stage=stage, point="reply", match={"content": ["tea"]}),
        rule(stage=stage, point="after_tool", decision="feedback", match={}),
        rule(stage=stage, match={"changes": field}),
    )
    assert CallGuards(job.root, job.open()).judge_reply("tea") is None
    wrote = job.call("write_file", path="a.json", content='{"tested": true}')
    assert wrote.startswith("Wrote")
    assert "[rule]" not in wrote


def test_a_guard_on_trial_is_not_asked_about_what_another_refuses(tmp_path: Path) -> None:
    job = begin(tmp_path, rule(name="new", stage="experiment"), rule(match={"path": ["b.md"]}))
    for path, tried in (("a.md", ["new"]), ("b.md", [])):
        job.reply(("write_file", json.dumps({"path": path, "content": "x"})))
        assert job.run("write_file", job.request()).trials == tried


def test_guards_on_trial_have_their_say_once_of_a_call_that_a_person_approves(
    tmp_path: Path,
) -> None:
    field = {"path": ["*.json"], "field": "tested"}
    job = begin(
        tmp_path,
        rule(decision="ask"),
        rule(name="new", stage="experiment"),
        rule(name="later", stage="experiment", match={"changes": field}),
    )
    arguments = {"path": "a.json", "content": '{"tested": true}'}
    job.reply(("write_file", json.dumps(arguments)))
    for approved, tried in ((False, ["new"]), (True, ["later"])):
        assert job.run("write_file", job.request(approved=approved)).trials == tried


def test_after_a_tool_a_guard_adds_to_the_result(tmp_path: Path) -> None:
    rule_fields = {"point": "after_tool", "decision": "feedback", "message": "Mind the style."}
    job = begin(tmp_path, rule(**rule_fields, match={"tool": ["write_file"], "content": ["Wrote"]}))
    assert job.call("write_file", path="a.md", content="x").endswith("\n\n[rule] Mind the style.")
    assert "Mind" not in job.call("read_file", path="a.md")


def test_a_guard_may_not_accept_a_reply(tmp_path: Path) -> None:
    job = begin(tmp_path, rule(point="reply", match={"content": ["(?i)as an ai"]}))
    guards = CallGuards(job.root, job.open())
    verdict = guards.judge_reply("As an AI I cannot.")
    assert verdict is not None
    assert verdict.name == "rule"
    assert guards.judge_reply("Here is the tea.") is None


def test_one_refusal_of_a_call_is_passed_over_and_not_one_at_each_point(tmp_path: Path) -> None:
    field = {"path": ["*.json"], "field": "tested"}
    job = begin(
        tmp_path,
        rule(name="before", match={"tool": ["write_file"]}),
        rule(name="change", match={"changes": field}),
    )
    job.reply(("write_file", json.dumps({"path": "a.json", "content": '{"tested": true}'})))
    reply = job.run("write_file", job.request(bypass=["before", "change"]))
    assert (reply.ok, reply.bypassed_guard, reply.guard) == (False, "", "change")


def end(job: Standing, tool: str, points: list[str], **details: Any) -> EndingVerdict:
    arguments = {"summary": "s", "deliverables": [], "confidence": 1} if "job" in tool else {}
    job.reply((tool, json.dumps(arguments)))
    base = {"root": job.root.id, "commit": job.commit, "at": AT, "step": job.step, "call": 0}
    request = EndingRequest.model_validate({**base, "points": points, **details})
    ending: EndingVerdict = environment(local=False).run(judge_ending(job.root), request)
    return ending


@pytest.mark.parametrize(
    ("point", "tool", "points"),
    [
        ("todo_complete", "todo_complete", ["todo_complete", "phase_end"]),
        ("phase_end", "todo_complete", ["todo_complete", "phase_end"]),
        ("job_complete", "job_complete", ["job_complete"]),
        ("subagent_end", "job_complete", ["job_complete", "subagent_end"]),
        ("before_tool", "todo_rewind", []),
    ],
)
def test_what_ends_something_can_be_refused(
    tmp_path: Path, point: str, tool: str, points: list[str]
) -> None:
    job = begin(tmp_path, rule(point=point, match={"tool": [tool]}))
    if tool == "todo_rewind":
        job.reply((tool, json.dumps({"issue": "x"})))
        assert guarded_route(job.open().config, REGISTRY[tool]).guarded
        return
    ending = end(job, tool, points)
    assert (ending.guard, ending.refusal) == ("rule", "Refused by rule: No.")
    assert end(job, tool, points, bypass=["rule"]).bypassed_guard == "rule"
    assert guarded_route(job.open().config, REGISTRY[tool]).guarded


def test_a_todo_that_ends_no_phase_is_refused_in_its_own_call(tmp_path: Path) -> None:
    job = begin(tmp_path, rule(point="todo_complete", match={"arguments": {"notes": "maybe"}}))
    assert "Refused by rule" in job.call("todo_complete", notes="maybe done")
    assert job.call("todo_complete", notes="done").startswith("Completed todo 1")


def test_what_ends_something_cannot_be_rewritten(tmp_path: Path) -> None:
    body = "print(json.dumps({'updatedInput': {'notes': 'done'}}))"
    hooks = {"PreToolUse": [hook(tmp_path / "h.py", body, matcher="todo_complete")]}
    ending = end(Standing.begin(tmp_path, set={"hooks": hooks}), "todo_complete", ["phase_end"])
    assert (ending.guard, ending.refusal) == (
        "h",
        "Refused by h: h rewrites what cannot be rewritten",
    )


def test_a_stop_hook_is_told_whether_one_has_blocked_before(tmp_path: Path) -> None:
    body = "print(event['stop_hook_active'], file=sys.stderr); sys.exit(2)"
    job = Standing.begin(tmp_path, set={"hooks": {"Stop": [hook(tmp_path / "h.py", body)]}})
    first = end(job, "job_complete", ["job_complete"])
    assert (first.refusal, first.stopped) == ("Refused by h: False", True)
    again = end(job, "job_complete", ["job_complete"], stop_hook_active=True)
    assert again.refusal == "Refused by h: True"


def test_only_a_hook_of_the_end_counts_as_one_that_has_blocked_it(tmp_path: Path) -> None:
    """Hooks commonly let a second attempt pass: another guard's refusal does not count as the
    first.
    """
    scripts = {"Stop": [hook(tmp_path / "h.py", "pass")]}
    job = Standing.begin(tmp_path, set={"hooks": scripts})
    config = job.open().config
    config.rules = [*config.rules, rule(point="job_complete", match={"tool": ["job_complete"]})]
    job.pin(config)
    ending = end(job, "job_complete", ["job_complete"])
    assert (ending.refusal, ending.stopped) == ("Refused by rule: No.", False)


def test_the_end_of_a_projects_job_is_that_of_a_sub_agent(tmp_path: Path) -> None:
    body = "print(event['hook_event_name'], file=sys.stderr); sys.exit(2)"
    scripts = {event: hook(tmp_path / f"{event}.py", body) for event in ("Stop", "SubagentStop")}
    job = Standing.begin(
        tmp_path, set={"hooks": {event: [script] for event, script in scripts.items()}}
    )
    assert end(job, "job_complete", ["job_complete"]).refusal.endswith(": Stop")
    ending = end(job, "job_complete", ["job_complete", "subagent_end"])
    assert ending.refusal.endswith(": SubagentStop")
    assert guarded_route(job.open().config, REGISTRY["job_complete"]).guarded
    free = begin(tmp_path / "free", rule(point="subagent_end"))
    assert end(free, "job_complete", ["job_complete"]).refusal == ""


def test_without_guards_of_theirs_routes_stay_as_they_are(tmp_path: Path) -> None:
    config = Standing.begin(tmp_path).open().config
    others = {
        name for name, entry in REGISTRY.items() if guarded_route(config, entry) != entry.route
    }
    # Their notes and summaries are kept, so they are searched for credentials.
    assert others == {"todo_complete", "todo_rewind", "job_complete"}


def test_a_call_that_hooks_are_asked_about_is_a_regular_activity(tmp_path: Path) -> None:
    hooks = {"PostToolUse": [{"command": "true", "matcher": "Write"}]}
    config = Standing.begin(tmp_path, set={"hooks": hooks}).open().config
    local = {name for name, entry in REGISTRY.items() if guarded_route(config, entry).local}
    assert "write_file" not in local
    assert {"read_file", "edit_file"} <= local


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, True),
        ({"hooks": {"PreToolUse": [{"command": "true"}]}}, False),
        ({"hooks": {"PreToolUse": [{"command": "true", "matcher": "Write"}]}}, True),
        ({"verifiers": [{"name": "tea", "command": "true"}]}, False),
        ({"tools": ["files", "todos", "job", "shell"]}, False),
    ],
)
def test_checks_of_a_phase_are_bounded_where_no_program_has_a_say(
    tmp_path: Path, settings: dict[str, object], expected: bool
) -> None:
    config = Standing.begin(tmp_path, set=settings).open().config
    bounded = {
        name for name, tool in REGISTRY.items() if guarded_route(config, tool).bounded_checks
    }
    assert bounded == ({"todo_complete"} if expected else set())


def test_what_the_configuration_asks_a_person_about_is_the_call_as_it_would_be_run(
    tmp_path: Path,
) -> None:
    hooks = {
        "PreToolUse": [hook(tmp_path / "moves.py", say({"updatedInput": {"file_path": "b.md"}}))],
        "PermissionRequest": [hook(tmp_path / "p.py", say({"permissionDecision": "allow"}))],
    }
    job = Standing.begin(tmp_path, set={"hooks": hooks, "approve": ["write_file"]})

    def write(content: str, **details: Any) -> ToolReply:
        job.reply(("write_file", json.dumps({"path": "a.md", "content": content})))
        return job.run("write_file", job.request(**details), local=False)

    decision = write("x")
    assert (decision.guard, decision.rewritten_arguments) == ("approve", {"path": "b.md"})
    assert "configuration asks for approval" in decision.asks
    secret = write("AKIA" + "IOSFODNN7EXAMPLE")
    assert (secret.guard, secret.asks) == ("secrets", "")
    assert write("x", approved=True).ok
