"""The parts of the comparison that need no further packages: driver, endpoint, figures, page."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from benchmarks.compare import comparison_figures
from benchmarks.compare.adapter_process import run_adapter
from benchmarks.compare.adapter_task import (
    AdapterGauge,
    AdapterTask,
    Outcome,
    failed_adapter_outcome,
    task_tool,
)
from benchmarks.compare.adapters import ADAPTERS
from benchmarks.compare.comparison_bench import ComparisonPlan, measure_comparison
from benchmarks.compare.comparison_page import comparison_page_markdown, update_comparison_page
from benchmarks.compare.fake_endpoint import Behaviours, Endpoint
from benchmarks.drifting_model import drifting_file_content, drifting_file_path
from rehearsal import Reply
from tests.soak import SOAK

OWN = {"type": "function", "function": {"name": "write_file", "parameters": {"properties": {}}}}
DEEP = {
    "type": "function",
    "function": {"name": "write_file", "parameters": {"properties": {"file_path": {}}}},
}


@pytest.mark.skipif(not SOAK, reason="make soak")
async def test_one_run_measures_each_runner_at_the_same_endpoint() -> None:
    plan = ComparisonPlan(["plain", "longhaul", "dbos"], steps=12, seeds=0, rate=0.2, cap=60)
    comparison = await measure_comparison(plan)
    plain, job = comparison["runners"]["plain"], comparison["runners"]["longhaul"]
    assert comparison["runners"]["dbos"] == {"missing": "dbos"}
    for one in (plain, job):
        assert one["steps"]["ended"] == "finished", one["steps"]["error"]
        assert one["steps"]["first_ms"] > 0
    assert (plain["steps"]["files"], plain["steps"]["calls"]) == (12, 13)
    # Planning and closing todos are model calls as well.
    # The additional file is `output/completion.json`, the job's own.
    assert job["steps"]["files"] == 12 + 1
    assert job["steps"]["calls"] > 13
    assert plain["steps"]["bytes_all"] == 0
    assert 300 < job["steps"]["bytes_last"] < 10_000
    page = comparison_page_markdown(comparison)
    assert "| Longhaul |" in page
    assert "the end: 12 files, 13 calls" in page
    assert "Not measured: DBOS with SQLite, for want of `dbos`." in page


async def test_a_drifting_model_ends_a_plain_loop(tmp_path: Path) -> None:
    log = tmp_path / "calls.jsonl"
    with Endpoint(Behaviours(), calls_log=log) as endpoint:
        task = AdapterTask(endpoint.base_url, "drift-0.2-plain-1", "Seed 1.", str(tmp_path), 60)
        outcome = await run_adapter("plain", task)
    calls = comparison_figures.read_call_arrivals(log, task.model)
    drift = comparison_figures.drift_comparison_figures([(outcome, len(calls))])
    assert outcome.ended == "finished"
    assert 0 < drift.made < 60
    assert drift.calls == len(calls) > drift.made


def test_tenths_are_of_what_was_recorded_and_of_when_calls_came() -> None:
    # Step n of 20 takes n ms and records n bytes.
    calls = [(sum(range(n)) / 1000, 100 * n) for n in range(1, 22)]
    recorded = [(n, sum(range(n + 1))) for n in range(21)]
    steps = comparison_figures.adapter_step_figures(
        Outcome("finished", recorded=recorded, store=7), calls
    )
    assert steps.first_ms == pytest.approx(1.5)
    assert steps.last_ms == pytest.approx(19.5)
    assert (steps.bytes_first, steps.bytes_last) == (1.5, 19.5)
    assert steps.bytes_all == 210 + 7
    assert steps.prompt_last == 2100


def test_a_run_without_a_call_has_figures_too() -> None:
    steps = comparison_figures.adapter_step_figures(Outcome("stopped", "X: y"), [])
    assert (steps.calls, steps.ms, steps.bytes_all) == (0, 0.0, 0)


def test_items_count_only_with_what_they_should_hold() -> None:
    contents = {drifting_file_path(1): drifting_file_content(1), drifting_file_path(2): "done"}
    runs = [(Outcome("stopped", "Boom: no", made=contents), 3), (Outcome("time", made={}), 5)]
    drift = comparison_figures.drift_comparison_figures(runs)
    assert (drift.made, drift.least, drift.whole, drift.calls) == (0.5, 0, 0, 4)
    assert drift.ends == {"Boom": 1, "time": 1}


def test_the_model_speaks_the_words_of_the_tool_it_is_offered() -> None:
    model = Behaviours()
    request = {"model": "drift-0-a", "messages": [{"role": "user", "content": "Seed 1."}]}
    assert model({**request, "tools": [OWN]}) == Reply(
        calls=[("write_file", {"path": drifting_file_path(1), "content": drifting_file_content(1)})]
    )
    done = {"role": "tool", "content": f"Updated file /{drifting_file_path(1)}"}
    answer = model({**request, "messages": [*request["messages"], done], "tools": [DEEP]})
    assert answer == Reply(
        calls=[
            (
                "write_file",
                {"file_path": "/" + drifting_file_path(2), "content": drifting_file_content(2)},
            )
        ]
    )


def test_the_tool_stays_in_its_folder(tmp_path: Path) -> None:
    write_file = task_tool(AdapterTask("", "", "", str(tmp_path), 1))
    assert write_file("output/a.md", "one") == "Wrote 3 characters to output/a.md."
    assert "outside" in write_file("../b.md", "two")
    assert not (tmp_path / "b.md").exists()


def test_a_gauge_sees_what_is_still_in_the_log(tmp_path: Path) -> None:
    database = tmp_path / "store.sqlite"
    gauge = AdapterGauge(database, every=2)
    with closing(sqlite3.connect(database)) as open_:
        open_.execute("PRAGMA journal_mode=WAL")
        open_.execute("CREATE TABLE kept (value TEXT)")
        for _ in range(4):
            open_.execute("INSERT INTO kept VALUES (?)", ("x" * 20_000,))
            open_.commit()
            gauge.called()
    (step, before), (then, after) = gauge.recorded
    assert (step, then) == (2, 4)
    assert 40_000 <= after - before < 60_000


def test_the_innermost_cause_names_what_stopped_a_run() -> None:
    try:
        try:
            raise ValueError("too large")
        except ValueError as cause:
            raise RuntimeError("the run failed") from cause
    except RuntimeError as error:
        assert failed_adapter_outcome(error).error == "ValueError: too large"


def test_the_page_keeps_what_people_wrote(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    marked = "<!-- measured: {} -->\n{}\n<!-- end -->\n"
    page.write_text("Before\n" + marked.format("steps", "old") + marked.format("scenarios", "kept"))
    update_comparison_page(page, "steps", "new\n")
    assert page.read_text() == (
        "Before\n" + marked.format("steps", "new") + marked.format("scenarios", "kept")
    )
    with pytest.raises(ValueError, match="has no <!-- measured: drift -->"):
        update_comparison_page(page, "drift", "new\n")


def test_each_adapter_has_its_module() -> None:
    folder = Path(comparison_figures.__file__).parent / "adapters"
    assert {file.stem for file in folder.glob("*.py")} - {"__init__"} == set(ADAPTERS)
