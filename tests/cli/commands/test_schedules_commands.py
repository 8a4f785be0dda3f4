"""Jobs started on a schedule, on a real server."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from cli.schedules.service_schedules import parse_schedule_interval, schedule_interval_text
from tests.cli.conftest import Engine, Starter, tries


@pytest.fixture
def scheduled(starter: Starter, engine: Engine, request: pytest.FixtureRequest) -> str:
    """Return a schedule that is not due during the test."""
    name = "daily-" + re.sub(r"\W+", "-", request.node.name)[:40]
    done = starter("start", "generalist", "--instructions", "Tea", "--id", name, "--every", "1d")
    assert done.code == 0, done.err
    assert done.out == f"{name}\n"
    assert "first at 20" in done.err
    request.addfinalizer(lambda: starter("schedules", "remove", name))
    return name


def listed(starter: Starter, name: str) -> dict[str, Any]:
    """Return the schedule from the list, where it appears a little later."""
    for _ in tries():
        found = json.loads(starter("schedules", "list", "--json").out)
        if entry := next((e for e in found if e["schedule"] == name), None):
            return dict(entry)
    raise AssertionError(f"{name} is not listed")


def test_it_is_listed_paused_resumed_and_removed(starter: Starter, scheduled: str) -> None:
    entry = listed(starter, scheduled)
    assert (entry["starts"], entry["every"], entry["state"]) == ("Job", "1d", "active")
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT00:00:00Z", entry["next"])
    for command, state in (("pause", "paused"), ("resume", "active")):
        assert starter("schedules", command, scheduled).out == f"{scheduled}: {state}\n"
        assert any(listed(starter, scheduled)["state"] == state for _ in tries())
    assert starter("schedules", "remove", scheduled).code == 0
    outcome = starter("schedules", "pause", scheduled)
    assert (outcome.code, "there is no schedule" in outcome.err) == (2, True)


def test_each_run_is_a_job_of_its_own_and_none_overtakes_another(
    starter: Starter, engine: Engine, scheduled: str
) -> None:
    none_yet = starter("show", scheduled)
    assert (none_yet.code, none_yet.out) == (2, "")
    assert f"{scheduled} is a schedule" in none_yet.err
    assert none_yet.err.endswith("it has started no job yet\n")
    triggered = starter("schedules", "trigger", scheduled)
    assert triggered.code == 0
    first = next(job for _ in tries() if (job := listed(starter, scheduled)["last"]))
    assert first.startswith(f"{scheduled}-20")
    assert triggered.out == f"{scheduled}: started {first}\n"
    assert starter("cancel", scheduled).err.endswith(f"its newest job is {first}\n")
    assert next(s for _ in tries() if (s := engine.status(first)))
    # The job is running, so the next one is skipped.
    skipped = starter("schedules", "trigger", scheduled)
    assert skipped.out == f"{scheduled}: skipped, because {first} is still running\n"
    handle = engine.client.get_schedule_handle(scheduled)
    assert any(engine.do(handle.describe()).info.num_actions_skipped_overlap for _ in tries())
    assert listed(starter, scheduled)["last"] == first
    assert starter("show", first).code == 0


def test_a_name_that_is_in_use_and_an_interval_that_is_none_are_refused(
    starter: Starter, scheduled: str
) -> None:
    start = ("start", "generalist", "--instructions", "Tea", "--id", scheduled)
    again = starter(*start, "--every", "1d")
    assert (again.code, f"schedules remove {scheduled}" in again.err) == (2, True)
    wrong = starter(*start, "--every", "daily")
    assert "--every: found 'daily', expected such as 30m, 6h or 1d\n" in wrong.err
    waits = starter(*start, "--every", "1d", "--wait")
    assert "--wait: goes without --every" in waits.err


def test_a_schedule_of_the_systems_own_is_left_alone(starter: Starter, engine: Engine) -> None:
    assert starter("guards", "--schedule", "6h").code == 0
    done = starter("schedules", "remove", "longhaul-learning")
    assert (done.code, "there is no schedule" in done.err) == (2, True)
    assert starter("guards", "--schedule", "off").code == 0


def test_a_result_schema_goes_with_the_start(
    starter: Starter, engine: Engine, tmp_path: Path
) -> None:
    schema = tmp_path / "schema.yaml"
    schema.write_text("type: object\nrequired: [grams]\n")
    start = ("start", "generalist", "--instructions", "Tea", "--json", "--result-schema")
    job = json.loads(starter(*start, str(schema)).out)["job_id"]
    history = engine.do(engine.client.get_workflow_handle(job).fetch_history())
    started = history.events[0].workflow_execution_started_event_attributes
    data = json.loads(started.input.payloads[0].data)
    assert data["set"]["result_schema"] == {"type": "object", "required": ["grams"]}
    schema.write_text("type: numbr\n")
    wrong = starter(*start, str(schema))
    assert (wrong.code, "not a JSON Schema: $.type" in wrong.out) == (2, True)
    assert "no such file" in starter(*start, str(tmp_path / "none")).out


@pytest.mark.parametrize("text", ["30m", "90m", "6h", "36h", "1d"])
def test_an_interval_reads_as_it_was_typed(text: str) -> None:
    assert schedule_interval_text(parse_schedule_interval(text)) == text
