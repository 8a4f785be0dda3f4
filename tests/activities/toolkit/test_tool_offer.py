"""With few tools all are offered, with many the core: what the model is sent shrinks with it."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from activities.model.prompt import job_prompt_body
from activities.phases.orientation import orientation_messages
from activities.text.tokens import count_tokens
from activities.toolkit.registry import REGISTRY, UnknownTool, select_registered_tools
from activities.toolkit.tool_offer import (
    ENDING,
    MAX_OFFERED,
    deferred_tool_advice,
    offer_tools,
    offerable_tools,
)
from activities.tools.tool_search import tools_for_list
from config.agent_files import agent_names, load_agent
from config.schema.agent import AgentConfig
from protocol.job_state import JobState
from protocol.phase import PhaseKind
from tests.activities.standing import Standing
from tests.activities.tools.plenty import GROUPS, plenty

KINDS: tuple[PhaseKind, PhaseKind] = ("strategic", "tactical")


@pytest.fixture
def office() -> Iterator[list[str]]:
    with plenty() as names:
        yield names


def agent(*tools: str, **limits: int) -> AgentConfig:
    limit_settings: dict[str, object] = {f"limits.{name}": value for name, value in limits.items()}
    return load_agent("generalist", {"tools": list(tools), **limit_settings})


def sent(job: Standing) -> list[dict[str, Any]]:
    """Return the tools sent in a model call."""
    snapshot = job.open()
    body = json.loads(job_prompt_body(snapshot, snapshot.config.model, None))
    tools: list[dict[str, Any]] = body["tools"]
    return tools


def names(tools: list[dict[str, Any]]) -> list[str]:
    return [entry["function"]["name"] for entry in tools]


def system(job: Standing) -> str:
    text: str = orientation_messages(job.open(), "", "")[0]["content"]
    return text


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", agent_names())
def test_shipped_agents_are_offered_all_they_have(
    tmp_path: Path, name: str, kind: PhaseKind
) -> None:
    job = Standing.begin(tmp_path, agent=name, kind=kind)
    config = load_agent(name)
    had = [e for e in select_registered_tools(config.tools) if e.name != "cite_web"]
    # One list of work, with commands or its own end, or without todos shown: completed anywhere.
    ends_there = config.plain or config.todos.work_calls_job_complete
    is_single = config.todos.work and (ends_there or any(e.name == "run_command" for e in had))
    anywhere = {e.name for e in had if is_single} - {"todo_write"}
    working = {"wait", "move_file", "generate_workspace_summary"} if is_single else set[str]()
    offer = offer_tools(config, kind)
    found = [entry for entry in offer.offered + offer.deferred if entry.name != "search_tools"]
    due = [e.name for e in had if kind in e.phases or e.name in anywhere]
    due = [name for name in due if kind == "tactical" or name not in working]
    assert sorted(e.name for e in found) == sorted(due)
    may_call = [e.name for e in offerable_tools(config) if e.name != "search_tools"]
    assert may_call == [e.name for e in had]
    assert "\n\n\n" not in system(job)
    assert ("search_tools" in system(job)) is (name in ("creator", "validator"))


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_list_needs_is_offered_from_its_beginning(tmp_path: Path, kind: PhaseKind) -> None:
    state = Standing.begin(tmp_path, agent="creator", kind=kind).open().state
    config = load_agent("creator")
    first, second, _ = state.phase.todos
    first.content = "Verify output/requirements.json with collect_requirements."
    second.content = "Identify the candidates of documents/law.pdf, and formulate requirements."
    needed = tools_for_list(config, state)
    assert needed[0] == "collect_requirements"
    assert ("identify_requirement_candidates" in needed) is (kind == "tactical")
    assert len(needed) <= 5
    assert tools_for_list(load_agent("generalist"), state) == []


def test_a_core_with_too_many_tools_defers_what_few_phases_need() -> None:
    strategic, tactical = (offer_tools(load_agent("creator"), kind) for kind in KINDS)
    assert "delete_file" in {entry.name for entry in strategic.deferred}
    assert "write_file" in {entry.name for entry in strategic.offered}
    assert "delete_file" in {entry.name for entry in tactical.offered}
    assert "add_requirement" in {entry.name for entry in tactical.deferred}


def test_the_limit_is_the_last_number_at_which_all_are_offered(office: list[str]) -> None:
    tactical_names = [
        entry.name for entry in select_registered_tools(GROUPS) if "tactical" in entry.phases
    ]
    at_limit = offer_tools(agent(*GROUPS, tools_offered=len(tactical_names)), "tactical")
    assert sorted(entry.name for entry in at_limit.offered) == sorted(tactical_names)
    assert at_limit.deferred == []
    over = offer_tools(agent(*GROUPS, tools_offered=len(tactical_names) - 1), "tactical")
    core = {entry.name for entry in over.offered}
    assert core == set(tactical_names) - set(office) | {"search_tools"}
    assert [entry.name for entry in over.deferred] == office


def test_each_kind_of_phase_counts_for_itself(office: list[str]) -> None:
    strategic = len(
        [entry for entry in select_registered_tools(GROUPS) if "strategic" in entry.phases]
    )
    config = agent(*GROUPS, tools_offered=strategic - 1)
    assert offer_tools(config, "strategic").deferred
    assert not offer_tools(config, "tactical").deferred
    assert "search_tools" in {entry.name for entry in offerable_tools(config)}


def test_what_is_offered_since_others_are_unused_may_be_called(office: list[str]) -> None:
    tactical_names = [
        entry.name for entry in select_registered_tools(GROUPS) if "tactical" in entry.phases
    ]
    config, unused = agent(*GROUPS, tools_offered=len(tactical_names) - 1), [tactical_names[0]]
    assert not offer_tools(config, "tactical", unused=unused).deferred
    assert deferred_tool_advice(config, "tactical", [], unused, office[0]) is None
    assert "search_tools" in (deferred_tool_advice(config, "tactical", [], [], office[0]) or "")


def test_a_core_over_the_limit_is_offered_whole() -> None:
    config = agent("files", "todos", "job", "discovery", tools_offered=3)
    core = [
        entry
        for entry in select_registered_tools(["files", "todos", "job"])
        if "strategic" in entry.phases
    ]
    assert sorted(offer_tools(config, "strategic").offered, key=core.index) == core
    assert "search_tools" not in {entry.name for entry in offerable_tools(config)}


def test_an_agent_may_name_the_group_all_the_same(office: list[str]) -> None:
    config = agent(*GROUPS)
    assert offerable_tools(agent("discovery", *GROUPS)) == offerable_tools(config)
    assert offer_tools(agent("discovery", *GROUPS), "tactical") == offer_tools(config, "tactical")


def test_found_tools_follow_the_core_in_the_order_found(office: list[str]) -> None:
    config = agent(*GROUPS)
    core = offer_tools(config, "tactical").offered
    found_tools = ["merge_tickets", "export_invoices"]
    offer = offer_tools(config, "tactical", [*found_tools, "read_file", "gone_since"])
    assert offer.offered == [*core, REGISTRY["merge_tickets"], REGISTRY["export_invoices"]]
    assert not set(found_tools) & {entry.name for entry in offer.deferred}


def test_the_prompt_names_every_deferred_tool_in_a_line(tmp_path: Path, office: list[str]) -> None:
    wordy = "List\ttickets " + "and more " * 50
    REGISTRY["list_tickets"] = replace(REGISTRY["list_tickets"], summary=wordy)
    job = Standing.begin(tmp_path, kind="tactical", set={"tools": GROUPS})
    lines = [line for line in system(job).splitlines() if line.startswith("- `")]
    assert [line.split("`")[1] for line in lines] == office
    assert "- `export_invoices`: Export invoices as a table into output/." in lines
    assert max(map(len, lines)) < 160
    assert "tools/<name>.md" in system(job)


def test_requests_only_grow_within_a_phase(tmp_path: Path, office: list[str]) -> None:
    job = Standing.begin(tmp_path, kind="tactical", set={"tools": GROUPS})
    before = sent(job)
    job.call("search_tools", query="export_invoices")
    between = sent(job)
    assert between[:-1] == before
    job.call("search_tools", query="list_tickets,assign_meeting")
    job.call("search_tools", query="export_invoices")
    after = sent(job)
    assert after[: len(between)] == between
    assert names(after)[len(before) :] == ["export_invoices", "list_tickets", "assign_meeting"]


def test_what_was_found_is_part_of_the_checkpoint(tmp_path: Path, office: list[str]) -> None:
    job = Standing.begin(tmp_path, kind="tactical", set={"tools": GROUPS})
    earlier = job.commit
    job.call("search_tools", query="export_invoices")
    later = job.commit
    assert job.open(later).state.found_tools == ["export_invoices"]
    job.commit = earlier
    assert "export_invoices" not in names(sent(job))
    job.commit = later
    assert "export_invoices" in names(sent(job))


def test_workflow_memory_does_not_hold_what_was_found(tmp_path: Path) -> None:
    state = Standing.begin(tmp_path).open().state
    larger_state = JobState(**{**state.model_dump(), "found_tools": ["export_invoices"]})
    assert larger_state.without_notes() == state
    assert larger_state.found_tools == ["export_invoices"]


@pytest.mark.parametrize("kind", KINDS)
def test_fifty_tools_cost_a_fifth_of_their_tokens_at_most(
    tmp_path: Path, office: list[str], kind: PhaseKind
) -> None:
    def cost(folder: str, offered: int) -> tuple[int, int, int]:
        settings = {"tools": GROUPS, "limits.tools_offered": offered}
        job = Standing.begin(tmp_path / folder, kind=kind, set=settings)
        tools = sent(job)
        schemas = json.dumps(tools, ensure_ascii=False, separators=(",", ":"))
        return len(tools), count_tokens(schemas), count_tokens(system(job))

    number, whole, prompt = cost("all", MAX_OFFERED)
    _, core, prompt_with_list = cost("core", 30)
    assert 50 <= number <= 60
    assert core + prompt_with_list - prompt <= 0.2 * whole


def test_a_worker_that_lacks_a_tool_of_a_running_job_says_so() -> None:
    with pytest.raises(UnknownTool) as caught:
        select_registered_tools(["files", "counting"])
    assert str(caught.value) == "this worker has no tool or group 'counting': start one that has it"


def test_the_requests_of_all_phases_begin_alike(office: list[str]) -> None:
    """A provider's cache keeps what comes before the first difference."""
    strategic, tactical = (
        [entry.name for entry in offer_tools(agent(*GROUPS), kind).offered]
        for kind in ("strategic", "tactical")
    )
    common = [name for name in strategic if name in tactical and name not in ENDING]
    assert strategic[: len(common)] == tactical[: len(common)] == common
