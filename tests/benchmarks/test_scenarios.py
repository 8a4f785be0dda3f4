"""The scenarios of the comparison: what is counted, how it is shown, and that each runs."""

import json
from pathlib import Path

import pytest

from benchmarks.compare.adapter_task import AdapterTask, Outcome
from benchmarks.compare.fake_endpoint import Behaviours
from benchmarks.compare.scenario_page import scenario_page_markdown
from benchmarks.compare.scenarios import (
    SCENARIOS,
    ScenarioRun,
    measure_scenarios,
    scenario_figures,
)
from rehearsal import Reply
from tests.soak import SOAK

FIGURES = {
    "ended": "finished",
    "error": "",
    "lost": 0,
    "begun": 2,
    "version": "",
    "done": 2,
    "done_again": 0,
    "cut": 3,
    "cut_again": 3,
}


@pytest.mark.skipif(not SOAK, reason="make soak")
async def test_each_scenario_runs_with_a_plain_loop() -> None:
    names = [name for name in SCENARIOS if name != "long"]
    figures = (await measure_scenarios(["plain"], names))["runners"]["plain"]
    assert [figures[name]["ended"] for name in names] == ["finished"] * len(names)
    assert (figures["cut"]["cut_again"], figures["reply"]["done_again"]) == (1, 2)
    assert figures["recovery"]["begun"] == 3
    assert figures["prompt"]["version"] == "prompt and tool"


def test_calls_are_counted_as_answered_or_under_way_at_the_kill(tmp_path: Path) -> None:
    run = ScenarioRun("plain", AdapterTask("", "", "", str(tmp_path), 1))
    # Of calls 1 to 3, the first had ended at 5; it and the second begin again, the third never.
    log = [(1, "began", 1), (2, "ended", 1), (3, "began", 2), (4, "began", 3), (6, "began", 1)]
    log += [(7, "began", 2), (8, "ended", 2)]
    events = [
        {"at": at, "kind": kind, "number": number, "version": "B" if at > 5 else ""}
        for at, kind, number in log
    ]
    (tmp_path / "events.jsonl").write_text("\n".join(map(json.dumps, events)))
    figures = scenario_figures(run, 5.0, Outcome("time"))
    assert (figures["done"], figures["done_again"]) == (1, 1)
    assert (figures["cut"], figures["cut_again"]) == (2, 1)
    assert (figures["begun"], figures["version"]) == (5, "B")


def test_the_model_calls_for_as_long_as_its_name_says_and_names_the_version_it_sees() -> None:
    model = Behaviours()
    request = {"model": "calls-1+2_3-x", "messages": [], "tools": [{"name": "tool_of_b"}]}
    first = model(request)
    assert isinstance(first, Reply)
    assert [call[1] for call in first.calls] == [
        {"number": 1, "seconds": 1.0, "version": "tool"},
        {"number": 2, "seconds": 2.0, "version": "tool"},
    ]
    asked = {"tool_calls": [{"function": {"name": "work"}}] * 2}
    second = model({**request, "messages": [asked], "tools": []})
    assert isinstance(second, Reply)
    assert second.calls == [("work", {"number": 3, "seconds": 3.0, "version": ""})]
    last = model({**request, "messages": [asked, asked, asked], "tools": []})
    assert last == Reply("All calls were made.")


def test_a_cell_says_how_the_run_ended_or_that_it_was_not_measured() -> None:
    stands = FIGURES | {"ended": "time", "error": "Nondeterminism: a | b"}
    measured = {
        "long": FIGURES | {"begun": 1},
        "cut": FIGURES | {"ended": "stopped", "error": "Boom"},
        "reply": FIGURES | {"lost": 2},
        "prompt": FIGURES | {"version": "prompt"},
        "loop": stands | {"with_a": "finished"},
    }
    runners = {
        "plain": measured,
        "longhaul": {"prompt": FIGURES, "loop": FIGURES | {"done_again": 1}},
        "dbos": {"long": {"missing": "for want of `dbos`"}},
    }
    page = scenario_page_markdown({"date": "2026-01-01", "machine": "m", "runners": runners})
    rows = [[cell.strip() for cell in line.split("|")[3:-1]] for line in page.splitlines()[4:]]
    assert rows[0] == [
        "begun once; it ends",
        "begun 2 times; it stops: `Boom`",
        "0 of 2 answered calls made twice, 3 of 3 under way begun again, 2 lost; it ends",
        "not measured",
        "goes on with B's prompt; it ends",
        "it stands still: `Nondeterminism: a / b`; ends once A is back",
    ]
    assert rows[1][-2:] == ["goes on with A's prompt and tools; it ends", "begins anew; it ends"]
    assert rows[2][0] == "not measured: for want of `dbos`"
