"""Each gate refuses for one reason at a time, and the reason says what to fix."""

import json
from typing import Any

import pytest

from activities.job.plan_and_todo_files import parse_agent_todo_file
from protocol.endings import GateFacts
from protocol.job_state import JobState
from protocol.limits import JobLimits
from protocol.phase import Purpose
from protocol.scope_ledger import ScopeItem, sync_plan_steps
from protocol.tools import ToolRoute
from tests.workflows.records import state
from workflows.rules.approved_contract import rule_on_drops
from workflows.rules.gates import NextPhase, Refusal, completion_gate, phase_gate
from workflows.rules.tool_rules import phase_tool_rule, unknown_tool_refusal

LIMITS = JobLimits()
GOOD: list[Any] = [{"id": n, "content": f"Do step {n}"} for n in range(1, 6)]


def facts(todos: Any = GOOD, **other: Any) -> GateFacts:
    """Return facts of a valid workspace with these changes; `todos` as YAML would contain it."""
    text = todos if isinstance(todos, bytes) else json.dumps({"todos": todos}).encode()
    parsed = parse_agent_todo_file(text)
    base: dict[str, Any] = {
        "todos_file": parsed.status,
        "todos_error": parsed.error,
        "todos_count": parsed.count,
        "todos": parsed.todos,
        "plan_phases": 2,
        "plan_open": 1,
    }
    return GateFacts(**base | other)


def follows(outcome: NextPhase | Refusal) -> str:
    """Return the purpose of the next phase, or the reason of the refusal."""
    return outcome.purpose if isinstance(outcome, NextPhase) else outcome.reason


def test_a_good_list_begins_the_next_tactical_phase() -> None:
    for purpose in ("bootstrap", "transition", "rewind"):
        assert follows(phase_gate(state(purpose), facts(), LIMITS)) == "work"
    longest = facts([{"id": n, "content": "x"} for n in range(20)])
    assert follows(phase_gate(state(), longest, LIMITS)) == "work"


def test_a_correction_after_the_last_phase_of_the_plan_is_not_padded() -> None:
    one = GOOD[:1]
    assert "5 to 20" in follows(phase_gate(state(), facts(one), LIMITS))
    assert follows(phase_gate(state(), facts(one, plan_open=0), LIMITS)) == "work"


def with_first(**changed: Any) -> list[Any]:
    return [{**GOOD[0], **changed}, *GOOD[1:]]


REFUSALS: dict[str, tuple[GateFacts, list[str]]] = {
    "missing": (GateFacts(plan_phases=2, plan_open=1), ["does not exist", "todo_write", "5 to 20"]),
    "no YAML": (facts(b"todos: [1,"), ["not valid YAML", "todo_write"]),
    "not UTF-8": (facts(b"\xff\xfe"), ["not valid YAML"]),
    "no list": (facts(b"todos: {1: a}"), ["no list under the key todos"]),
    "no mapping": (facts(b"- a"), ["no list under the key todos"]),
    "empty": (facts([]), ["holds 0 todos", "5 to 20", "merge"]),
    "too few": (facts(GOOD[:4]), ["holds 4 todos", "5 to 20", "merge"]),
    "too many": (
        facts([{"id": n, "content": "x"} for n in range(21)]),
        ["holds 21 todos", "5 to 20", "split"],
    ),
    "far too many": (facts([{"id": n, "content": "x"} for n in range(200)]), ["holds 200"]),
    "id a boolean": (facts(b"todos: [%s]" % b",".join([b"{id: true, content: a}"] * 5)), ["id of"]),
    "id a text": (facts(with_first(id="1")), ["id of entry 1", "whole number"]),
    "id a float": (facts(with_first(id=1.0)), ["id of entry 1", "whole number"]),
    "no id": (facts([{"content": "a"}, *GOOD[1:]]), ["id of entry 1"]),
    "huge id": (facts(with_first(id=10**30)), ["under a million"]),
    "no mappings": (facts(["a", "b", "c", "d", "e"]), ["id of entry 1"]),
    "id twice": (facts(with_first(id=2)), ["id 2 is used twice"]),
    "content empty": (facts(with_first(content="")), ["content of todo 1"]),
    "content blank": (facts(with_first(content=" \n ")), ["content of todo 1"]),
    "content a number": (facts(with_first(content=7)), ["content of todo 1"]),
    "items unknown": (
        facts(unknown_items=["todo 1: S9"]),
        ["do not exist: todo 1: S9", "S1, S2"],
    ),
    "done_when wrong": (
        facts(with_first(done_when={"matches": {"path": "a.md", "pattern": "("}})),
        ["done_when of todo 1", "not valid RE2"],
    ),
    "not done": (facts(unmet="There is no a.md."), ["There is no a.md."]),
    "phase without a box": (facts(plan_unboxed=["Harvest"]), ["Harvest", "- [ ] first step"]),
    "phase that is none": (
        facts(plan_unread=["## Phase II: x"]),
        ["## Phase II: x", "## Phase 2:"],
    ),
    "plan without phases": (facts(plan_phases=0, plan_open=0), ["no phase", "## Phase 1: name"]),
    "workspace.md too long": (facts(workspace_tokens=4001), ["4,001", "4,000", "notes/"]),
    "bad arguments": (facts(arguments_error="notes: too long"), ["notes: too long"]),
}


@pytest.mark.parametrize("why", REFUSALS)
def test_the_hand_over_is_refused(why: str) -> None:
    gate_facts, expected = REFUSALS[why]
    outcome = phase_gate(state(), gate_facts, LIMITS)
    assert isinstance(outcome, Refusal)
    for words in expected:
        assert words in outcome.reason
    assert len(outcome.reason) < 2000


def test_a_job_that_was_done_at_once_is_told_how_it_ends() -> None:
    outcome = phase_gate(state("bootstrap"), GateFacts(plan_phases=1), LIMITS)
    assert isinstance(outcome, Refusal)
    assert outcome.reason.endswith("If all of the plan is done, call job_complete instead.")


def test_items_of_the_scope_may_be_named() -> None:
    assert follows(phase_gate(state(), facts(with_first(items=["S1", "S2"])), LIMITS)) == "work"
    assert follows(phase_gate(state(), facts(with_first(items="S2")), LIMITS)) == "work"


def test_limits_are_the_configurations() -> None:
    limits = JobLimits(min_todos=1, max_todos=2)
    assert follows(phase_gate(state(), facts(GOOD[:1]), limits)) == "work"
    assert isinstance(phase_gate(state(), facts(GOOD[:3]), limits), Refusal)


@pytest.mark.parametrize(("purpose", "expected"), [("transition", "final"), ("rewind", "final")])
def test_a_plan_that_is_done_leads_to_the_final_phase(purpose: Purpose, expected: Purpose) -> None:
    done = GateFacts(plan_phases=2, plan_open=0)
    assert follows(phase_gate(state(purpose), done, LIMITS)) == expected


def test_a_plan_that_is_done_and_not_ticked_is_told_so() -> None:
    outcome = phase_gate(state("transition"), GateFacts(plan_phases=2, plan_open=1), LIMITS)
    assert isinstance(outcome, Refusal)
    for words in ("plan.md has 1 open phase.", "drop_item(ids", "todo_write (5 to 20 todos)"):
        assert words in outcome.reason


def test_what_was_asked_for_has_its_place_before_work_begins() -> None:
    lacking = facts(GOOD, unplaced=["B2 Write a summary", "B3 Name the sources"])
    for purpose in ("bootstrap", "rewind", "fork"):
        outcome = phase_gate(state(purpose), lacking, LIMITS)
        assert isinstance(outcome, Refusal)
        assert "B2 Write a summary, B3 Name the sources. Name each by its id" in outcome.reason
    assert follows(phase_gate(state("transition"), lacking, LIMITS)) == "work"


def test_a_bootstrap_never_leads_to_the_final_phase() -> None:
    outcome = phase_gate(state("bootstrap"), GateFacts(plan_phases=2, plan_open=0), LIMITS)
    assert isinstance(outcome, Refusal)
    assert "todos.yaml does not exist" in outcome.reason


def test_a_list_handed_over_wins_over_a_plan_that_is_done() -> None:
    assert follows(phase_gate(state(), facts(plan_open=0), LIMITS)) == "work"


def test_the_final_phase_ends_only_by_job_complete() -> None:
    outcome = phase_gate(state("final"), GateFacts(plan_phases=2), LIMITS)
    assert isinstance(outcome, Refusal)
    assert "job_complete" in outcome.reason
    # Work found before the end is handed over like any other, even a single todo.
    assert follows(phase_gate(state("final"), facts(GOOD[:1]), LIMITS)) == "work"


def test_a_tactical_phase_ends_when_its_last_todo_is_done() -> None:
    assert follows(phase_gate(state("work"), GateFacts(), LIMITS)) == "transition"
    idle = phase_gate(state("work"), GateFacts(idle=True), LIMITS)
    assert isinstance(idle, Refusal)
    assert "Nothing was done in this phase" in idle.reason
    undone = GateFacts(unmet="There is no a.md.")
    assert phase_gate(state("work"), undone, LIMITS) == Refusal("There is no a.md.")


def without_scope() -> JobState:
    return state("bootstrap").model_copy(update={"scope": []})


def test_a_single_list_ends_the_work_unless_its_plan_goes_on() -> None:
    single, work = JobLimits(single_list=True), state("work")
    assert follows(phase_gate(work, facts(), single)) == "final"
    assert follows(phase_gate(work, facts(plan_ahead=True), single)) == "transition"


def test_a_list_names_only_items_that_exist() -> None:
    outcome = phase_gate(state(), facts(unknown_items=["todo 1: P3"]), LIMITS)
    assert isinstance(outcome, Refusal)
    assert "do not exist: todo 1: P3 (there are S1, S2)." in outcome.reason


def test_a_plan_has_no_more_boxes_than_can_be_kept_account_of() -> None:
    outcome = phase_gate(state(), facts(plan_steps=501), LIMITS)
    assert isinstance(outcome, Refusal)
    assert "501 boxes, at most 500" in outcome.reason


def covered(*open_ids: str) -> JobState:
    """Return a job whose scope is completed except for these items."""
    job = state("final")
    for item in job.scope:
        item.status = "open" if item.id in open_ids else "completed"
    return job


DONE = GateFacts(plan_phases=2)
OPEN = GateFacts(plan_phases=2, plan_open=1)


def refused(job: JobState, gate_facts: GateFacts, rewinds: int = 0) -> str:
    refusal = completion_gate(job, gate_facts, rewinds)
    assert isinstance(refusal, Refusal)
    assert len(refusal.reason) < 2000
    return refusal.reason


@pytest.mark.parametrize(
    ("gate_facts", "expected"),
    [
        (GateFacts(missing_deliverables=["a.md: does not exist"]), ["a.md: does not exist"]),
        (
            GateFacts(plan_open=1),
            ["1 open phase.", "todo_write", "job_complete again", "todo_rewind"],
        ),
        (GateFacts(plan_open=3), ["3 open phases"]),
        (
            GateFacts(plan_open=1, plan_boxes=["Brew", "Pour"]),
            ["1 open phase (such as Brew; Pour)."],
        ),
        (
            GateFacts(amiss=["B1: output/a.md does not exist"]),
            ["What was asked for is not there: B1: output/a.md does not exist."],
        ),
        (GateFacts(plan_unread=["## Phase II: x"]), ["## Phase II: x", "as `## Phase 2: name`"]),
        (GateFacts(arguments_error="confidence: at most 1"), ["confidence: at most 1"]),
    ],
)
def test_completion_is_refused(gate_facts: GateFacts, expected: list[str]) -> None:
    for rewinds in (0, 1):
        gate_facts.unexplained_phases = ["Phase 2: Brew"] if gate_facts.plan_open else []
        reason = refused(covered(), gate_facts, rewinds)
        assert all(words in reason for words in expected if rewinds == 0 or words != "todo_rewind")


def test_a_refusal_names_all_that_is_in_the_way() -> None:
    gate_facts = GateFacts(
        plan_phases=2, plan_open=1, missing_deliverables=["a.md: does not exist"]
    )
    both = refused(covered("S2"), gate_facts)
    assert both.startswith("These deliverables cannot be accepted: a.md: does not exist.")
    assert "1 open phase, and 1 scope item is open: S2 water" in both
    gate_facts = GateFacts(plan_phases=2, plan_open=1, handoff=["There is no file out.json."])
    gate_facts.unstored = ["2 writes wait"]
    both = refused(covered("S2"), gate_facts)
    assert all(why in both for why in ("2 writes wait", "no file out.json", "1 open phase", "S2"))
    nothing = state("bootstrap")
    nothing.scope = []
    gate_facts = GateFacts(missing_deliverables=["a.md: does not exist"])
    assert "## Phase 1" in refused(nothing, gate_facts)


def test_what_a_project_lacks_is_told_with_what_is_open() -> None:
    refusal = refused(covered("S2"), GateFacts(plan_phases=1, handoff=["There is no a.md."]))
    assert "There is no a.md." in refusal
    assert "S2" in refusal
    lacking = GateFacts(plan_phases=1, handoff=["There is no a.md."])
    assert refused(covered(), lacking).endswith("Mend this, then call job_complete again.")


def test_what_a_store_lacks_is_never_given_up() -> None:
    lacking = GateFacts(plan_phases=2, unstored=["2 writes wait, since the store is away"])
    for rewinds in (0, 1):
        assert "2 writes wait, since the store is away" in refused(covered(), lacking, rewinds)


def test_a_store_that_is_away_is_not_the_models_to_mend() -> None:
    lacking = GateFacts(plan_phases=2, unstored=["the store is away"], store_unavailable=True)
    assert completion_gate(covered(), lacking, 0) is None
    assert "the store is away" not in refused(covered("S2"), lacking)


def test_a_text_that_is_not_covered_is_never_given_up() -> None:
    left = ["12 of 63 sentences that say must or should are neither cited nor set aside."]
    for rewinds in (0, 1):
        refusal = refused(covered(), GateFacts(plan_phases=2, uncovered=left), rewinds)
        assert refusal.startswith(
            f"The text is not covered: {left[0]} Cite each with add_requirement"
        )
        assert refusal.endswith("Then call job_complete again.")


def test_a_planning_phase_is_sent_to_hand_over_a_list_for_what_is_not_covered() -> None:
    facts = GateFacts(plan_phases=2, uncovered=["12 sentences are left."])
    planning, working = covered(), covered()
    planning.phase.kind, working.phase.kind = "strategic", "tactical"
    assert "hand over a list" in refused(planning, facts)
    assert "hand over a list" not in refused(working, facts)


def test_of_what_was_read_badly_somebody_has_to_say_so() -> None:
    refusal = refused(covered(), GateFacts(plan_phases=2, badly_read=["documents/a.pdf: a scan"]))
    assert "that no requirement is from: documents/a.pdf: a scan. Say in `unresolved`" in refusal


def test_completion_passes() -> None:
    assert completion_gate(covered(), DONE, 0) is None


def test_what_nobody_has_planned_is_not_complete() -> None:
    job = covered()
    assert completion_gate(job, GateFacts(), 0) is None
    job.scope = []
    refusal = completion_gate(job, GateFacts(), 0)
    assert refusal
    assert "## Phase 1" in refusal.reason
    assert completion_gate(job, DONE, 0) is None
    assert completion_gate(job, GateFacts(), 1) is None


def test_an_open_item_keeps_the_job_from_ending() -> None:
    reason = refused(covered("S2"), DONE)
    assert "1 scope item is open: S2 water" in reason
    assert "drop_item" in reason
    both = refused(covered("S1", "S2"), OPEN)
    assert "1 open phase, and 2 scope items are open: S1 tea; S2 water" in both


def test_a_dropped_item_does_not() -> None:
    job = covered("S2")
    job.drop_items(["S2"], "There is none of it.")
    assert completion_gate(job, DONE, 0) is None


def test_a_small_correction_is_completed_on_the_spot() -> None:
    worked = GateFacts(plan_phases=1, plan_open=1, worked=True)
    assert completion_gate(covered("S1", "S2"), worked, 0) is None
    assert completion_gate(covered("S1"), GateFacts(plan_phases=1), 0) is not None
    many = covered("S1", "S2")
    for text in ("cups", "spoons"):
        many.add_item(text)
    assert "4 scope items are open" in refused(many, worked)
    assert "4 open phases" in refused(covered(), GateFacts(plan_open=4, worked=True))
    # As many as it changed files.
    assert completion_gate(many, worked.model_copy(update={"files_changed": 4}), 0) is None


def test_a_box_that_names_only_settled_items_is_done_with_them() -> None:
    job = covered()
    job.scope = [*job.scope, *sync_plan_steps([], [(1, "Write S1 and S2")])]
    assert completion_gate(job, OPEN, 0) is None
    job.scope = [*covered("S2").scope, *job.scope[-1:]]
    assert "S2 water" in refused(job, OPEN)
    # What was dropped is owed by no box either.
    job.drop_items(["S2"], "There is none of it.")
    assert completion_gate(job, OPEN, 0) is None


def own_list(**details: Any) -> JobState:
    """Return a job whose list ends with the todo to end it."""
    job = state("work", ends_job=True, **details)
    job.scope = sync_plan_steps([], [(1, "Make it")])
    return job


def test_a_list_that_ends_the_job_ends_by_job_complete_alone() -> None:
    ending = own_list(done=2)
    assert ending.phase.is_ending
    single = JobLimits(single_list=True)
    assert "calling job_complete" in follows(phase_gate(ending, GateFacts(), single))
    # A phase that somebody added to the plan comes first.
    assert follows(phase_gate(ending, GateFacts(plan_ahead=True), single)) == "transition"
    assert completion_gate(ending, GateFacts(plan_phases=1, plan_open=1, worked=True), 0) is None


def test_what_such_a_list_leaves_undone_needs_neither_a_rewind_nor_a_reason_for_each_step() -> None:
    facts = GateFacts(plan_phases=1, plan_open=1)
    assert "todo_rewind" in refused(own_list(), facts)
    assert completion_gate(own_list(), facts.model_copy(update={"gives_up": True}), 0) is None


def test_what_is_open_is_given_up_only_after_a_rewind() -> None:
    assert "only after that" in refused(covered("S2"), DONE)
    assert "only after that" in refused(covered(), OPEN)
    assert completion_gate(covered("S2"), OPEN, 1) is None


def test_what_is_open_needs_a_reason_each() -> None:
    reason = refused(covered("S1", "S2"), GateFacts(unexplained_items=["S2"]), 1)
    assert (
        "entry of its own in `unresolved`, with its id and the reason in some words: S2." in reason
    )
    named = GateFacts(plan_open=1, unexplained_phases=["Phase 2: Brew"])
    assert "in some words: Phase 2: Brew." in refused(covered("S1"), named, 1)


def test_a_deferred_write_that_its_store_refuses_is_open_like_an_item() -> None:
    gate_facts = GateFacts(
        plan_phases=2, refused_writes=["m/REQ-001: not held."], unexplained_writes=["m/REQ-001"]
    )
    refusal = refused(covered(), gate_facts)
    assert "refused by their store: m/REQ-001: not held." in refusal
    assert "only after that" in refusal
    assert "in some words: m/REQ-001." in refused(covered(), gate_facts, 1)
    gate_facts.unexplained_writes = []
    assert completion_gate(covered(), gate_facts, 1) is None


def test_of_many_open_items_a_refusal_names_the_first() -> None:
    job = covered()
    for n in range(300):
        job.add_item(f"thing {n} " + "x" * 400)
    reason = refused(job, GateFacts(unexplained_items=[f"A{n}" for n in range(1, 31)]), 1)
    assert "300 scope items are open" in reason
    assert "and 290 more" in reason


def test_a_tool_of_the_other_kind_of_phase_is_named_with_its_phase() -> None:
    route = ToolRoute(name="todo_write", phases=["strategic"], local=True, seconds=1)
    assert phase_tool_rule(route, "strategic") is None
    assert "todo_write belongs to strategic phases" in str(phase_tool_rule(route, "tactical"))


@pytest.mark.parametrize(
    ("tool", "offered", "expected"),
    [
        ("Bash", ["edit_file"], "no shell in this phase. read_file and search_files look at"),
        ("bash", ["run_command"], "run_command runs a command."),
        ("apply_patch", ["edit_file", "write_file"], "here it is edit_file or write_file."),
        ("TodoWrite", ["todo_complete"], "here it is todo_complete."),
    ],
)
def test_a_tool_of_another_agent_is_answered_with_ours(
    tool: str, offered: list[str], expected: str
) -> None:
    assert expected in unknown_tool_refusal(tool, offered)


def test_an_unknown_tool_is_answered_with_those_there_are() -> None:
    assert unknown_tool_refusal("rm", ["read_file", "wait"]) == (
        "There is no tool 'rm'. The tools are: read_file, wait."
    )


def test_of_many_tools_an_unknown_one_is_answered_with_the_first() -> None:
    refusal = unknown_tool_refusal("rm", [f"tool_{n}" for n in range(1, 101)])
    assert refusal.endswith("tool_29, tool_30 and 70 more, each with a page in tools/.")


@pytest.mark.parametrize(
    ("dropped", "act"), [({"B1"}, "pass"), ({"A1"}, "pass"), ({"B1", "A1"}, "ask"), ({"B2"}, "ask")]
)
def test_what_people_told_and_what_an_item_stands_for_count_against_the_drops(
    dropped: set[str], act: str
) -> None:
    items = [ScopeItem(id=f"B{n}", text="tea", source="brief") for n in range(1, 5)]
    items[1].weight = 5
    items += [ScopeItem(id="A1", text="told", source="told"), ScopeItem(id="A2", text="own")]
    items[-1].source, items[-1].status = "added", "dropped"
    for item in items[:-1]:
        item.status = "dropped" if item.id in dropped else "completed"
    limits = JobLimits(drop_share=0.2, drops_beyond="ask")
    assert rule_on_drops(items, limits, [], frozen=False).act == act
