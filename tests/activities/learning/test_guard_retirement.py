"""Guards that are of no use, and what acts while a stricter version is on trial: real files."""

import dataclasses
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from activities.checkpoints import Root
from activities.learning.guard_stages import demote_guards
from activities.learning.learning_pass import LearningPass
from activities.steps.learn import learn_activity
from config.learned_guards import LearnedGuards, LearnedRevision
from config.schema.guards import Guard, Match
from tests.activities.standing import AT, Standing, environment
from tests.activities.traces.noting import store, trace


def guard(name: str = "no-scratch", **match: Any) -> Guard:
    conditions = {"tool": ["write_file"], "path": ["scratch/*"], **match}
    return Guard(
        name=name,
        point="before_tool",
        match=Match.model_validate(conditions),
        decision="deny",
        message="No.",
    )


def learned(base_guard: Guard, stage: Any = "active", **details: Any) -> LearnedRevision:
    defaults: dict[str, Any] = {"at": 1, "since": 1, "why": "proposed", "agent": "generalist"}
    return LearnedRevision(
        name=base_guard.name, stage=stage, guard=base_guard, **defaults | details
    )


def completed(path: Path, *jobs: Guard) -> Root:
    """Return a workspaces root with completed jobs that each had such a guard."""
    root = Root.open(path / "root", create=True)
    for number, rule in enumerate(jobs):
        job = Standing.begin(path / f"{number}")
        job.pin(job.open().config.model_copy(update={"rules": [rule]}))
        job.write("output/completion.json", json.dumps({"status": "completed"}))
        job.open().checkpoints.tag("completed", job.commit)
        place = root.repository(f"job-{number}")
        place.parent.mkdir(parents=True, exist_ok=True)
        job.open().checkpoints.path.rename(place)
    return root


@pytest.mark.parametrize("stage", ["active", "experiment"])
def test_a_guard_that_spoke_in_none_of_many_jobs_is_retired(tmp_path: Path, stage: Any) -> None:
    root = completed(tmp_path, *[guard()] * 20, guard(path=["other/*"]))
    guards = LearnedGuards(root.path)
    guards.put_revision(learned(guard(), stage))
    store(root, trace(1))
    [line] = LearningPass(root).learn()
    assert line == f"no-scratch: {stage} -> retired, retired by itself: it spoke in none of 20 jobs"
    assert [one.stage for one in guards.revisions("no-scratch")] == [stage, "retired"]
    [now] = LearningPass(root).guard_statuses()
    assert "spoke in none of 20 jobs" in now.line
    assert guards.rules_for("generalist", "", []) == []
    assert LearningPass(root).learn() == []


@pytest.mark.parametrize(
    ("unused", "after", "stages"),
    [
        (True, 5, ["retired", "experiment"]),
        (True, 4, ["retired"]),
        (False, 5, ["retired"]),
    ],
)
def test_a_retired_guard_is_proposed_again_when_its_mistake_comes_back(
    tmp_path: Path, unused: bool, after: int, stages: list[str]
) -> None:
    root = completed(tmp_path)
    guards = LearnedGuards(root.path)
    name = "generalist.write_file.scratch"
    retired = AT + 10
    guards.put_revision(learned(guard(name), "retired", unused=unused, at=retired))
    trace_fields = {"source": "hook", "guard": "rule.sh", "tool": "write_file", "why": "Not there."}
    for n in range(3 + after):
        moment = AT + n if n < 3 else retired + n
        one = trace(n, "refused", path=f"scratch/{n}.md", at=moment, **trace_fields)
        store(root, one, job=f"job-{n % 2}")
    env, by_the_server = environment(local=False), datetime.fromtimestamp(retired + 99, UTC)
    env.info = dataclasses.replace(env.info, started_time=by_the_server)
    env.run(learn_activity(root))
    revisions = guards.revisions(name)
    assert [one.stage for one in revisions] == stages
    # Traces have the server's time: with the host's, a day apart, the wrong ones would count.
    assert [(one.at, one.since) for one in revisions[1:]] in ([], [(retired + 99, retired + 99)])


def test_one_that_spoke_once_or_was_in_fewer_jobs_stays(tmp_path: Path) -> None:
    root = completed(tmp_path, *[guard()] * 19)
    guards = LearnedGuards(root.path)
    guards.put_revision(learned(guard()))
    assert LearningPass(root).learn() == []
    assert LearningPass(root).guard_statuses()[0].figures.silent_jobs == 19
    # Jobs that completed before its newest revision do not count.
    guards.put_revision(learned(guard(), since=AT + 1))
    assert LearningPass(root).guard_statuses()[0].figures.silent_jobs == 0
    guards.put_revision(learned(guard()))
    store(root, trace(1, guard="no-scratch"))
    assert LearningPass(root).guard_statuses()[0].figures.silent_jobs == 0


def test_a_proposal_gives_way_to_what_was_written_while_it_was_tried(tmp_path: Path) -> None:
    guards = LearnedGuards(tmp_path)
    revision = learned(guard(), "experiment")
    guards.put_as(revision, 1)
    # Two passes at once make one proposal, and a guard that a person retired stays retired.
    guards.put_revision(revision.model_copy(update={"stage": "retired"}))
    for number in (1, 2):
        with pytest.raises(FileExistsError):
            guards.put_as(revision, number)
    assert [one.stage for one in guards.revisions(revision.name)] == ["experiment", "retired"]


def test_while_a_stricter_version_is_on_trial_the_one_before_acts(tmp_path: Path) -> None:
    guards = LearnedGuards(tmp_path)
    guards.put_revision(learned(guard(reads_lines=1000)))
    strict = learned(guard(reads_lines=500), "experiment", stricter_than=1)
    guards.put_revision(strict)
    # The stage belongs to the revision; inside the guard it would make a different guard.
    revisions = [one.data() for one in guards.revisions(strict.name)]
    assert [one["stage"] for one in revisions] == ["active", "experiment"]
    assert not any("stage" in one["guard"] for one in revisions)

    def begun() -> list[tuple[str, int | None]]:
        return [(r.stage, r.match.reads_lines) for r in guards.rules_for("generalist", "", [])]

    assert begun() == [("active", 1000), ("experiment", 500)]
    guards.put_revision(strict.model_copy(update={"stage": "active"}))
    assert begun() == [("active", 500)]


def test_a_stricter_version_that_is_retired_leaves_the_one_before(tmp_path: Path) -> None:
    root = completed(tmp_path)
    guards = LearnedGuards(root.path)
    guards.put_revision(learned(guard(reads_lines=1000)))
    guards.put_revision(learned(guard(reads_lines=500), "experiment", stricter_than=1))
    assert "it acts as it did before" in LearningPass(root).retire_guard("no-scratch")
    [rule] = guards.rules_for("generalist", "", [])
    assert (rule.stage, rule.match.reads_lines) == ("active", 1000)
    assert len(guards.revisions("no-scratch")) == 3


def test_a_stricter_version_takes_the_place_of_the_agents_own_once_it_is_active(
    tmp_path: Path,
) -> None:
    own = [guard("log-reading", reads_lines=1000), guard("secrets")]
    guards = LearnedGuards(tmp_path)
    strict = learned(guard("strict", reads_lines=500), "experiment", replaces="log-reading")
    guards.put_revision(strict)
    names = [rule.name for rule in guards.rules_for("generalist", "", own)]
    assert names == ["log-reading", "secrets", "strict"]
    guards.put_revision(strict.model_copy(update={"stage": "active"}))
    assert [rule.name for rule in guards.rules_for("generalist", "", own)] == ["secrets", "strict"]


def test_a_guard_goes_back_when_an_approval_of_what_it_refused_is_stored(tmp_path: Path) -> None:
    root = completed(tmp_path)
    guards = LearnedGuards(root.path)
    guards.put_revision(learned(guard()))
    refused = [trace(n, guard="no-scratch") for n in range(1, 10)]
    store(root, *refused, trace(10, guard="no-scratch", type="approval", source="person"))
    # One bypass in nine refusals is more than 10 %.
    assert [one.stage for one in guards.newest_revisions()] == ["experiment"]
    assert len(guards.revisions("no-scratch")) == 2
    assert demote_guards(root, {"no-scratch"}) == []


def test_a_guard_stays_while_few_of_its_refusals_were_wrong(tmp_path: Path) -> None:
    root = completed(tmp_path)
    guards = LearnedGuards(root.path)
    guards.put_revision(learned(guard()))
    refused = [trace(n, guard="no-scratch") for n in range(1, 11)]
    store(root, *refused, trace(11, guard="no-scratch", type="approval", source="person"))
    assert [one.stage for one in guards.newest_revisions()] == ["active"]


def test_what_acts_while_a_stricter_version_is_on_trial_goes_out_when_it_is_wrong(
    tmp_path: Path,
) -> None:
    root = completed(tmp_path)
    guards = LearnedGuards(root.path)
    guards.put_revision(learned(guard(reads_lines=1000)))
    guards.put_revision(learned(guard(reads_lines=500), "experiment", stricter_than=1))
    store(
        root,
        trace(1, guard="no-scratch"),
        trace(2, guard="no-scratch", type="approval", source="person"),
    )
    [rule] = guards.rules_for("generalist", "", [])
    assert (rule.stage, rule.match.reads_lines) == ("experiment", 500)


def test_a_broken_file_of_a_guard_keeps_no_trace_from_the_store(tmp_path: Path) -> None:
    root = completed(tmp_path)
    LearnedGuards(root.path).put_revision(learned(guard())).write_text("name: no-scratch\n")
    assert store(root, trace(1, guard="no-scratch", type="approval", source="person")) == 1
