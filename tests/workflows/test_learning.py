"""From a habit to a guard over a series of jobs, with the real parts."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client, WorkflowFailureError

from activities.checkpoints import Root
from activities.learning.learning_pass import LearningPass
from activities.stores.relational_store import RelationalStore
from activities.stores.stored_traces import read_job_traces
from config.learned_guards import LearnedGuards, LearnedRevision
from config.schema.agent import ConfigError
from config.schema.guards import Guard, Match
from rehearsal.request_view import RequestView, is_error_result
from tests.activities.traces.noting import store, trace
from tests.workflows.habits import done, kept_by
from tests.workflows.scheduled import fired
from tests.workflows.serving import serving
from tests.workflows.short import DONE, TEA, Call, Short, close, job

NAME = "generalist.write_file.scratch"


class Habit:
    """A model that first writes so many files into scratch/."""

    def __init__(self, files: int) -> None:
        self.files = files
        self.delivered: list[str] = []
        self.refused = 0
        self.first_message = ""

    def __call__(self, request: Any) -> Any:
        first = str(request["messages"][1]["content"])
        if "The job begins" in first:
            self.first_message = first
        closing = [close("output/tea.md", *self.delivered)]
        return Short({"Work": self.work, "Close": closing})(request)

    def work(self, view: RequestView) -> Sequence[Call]:
        if view.calls:
            self.refused = sum(is_error_result(done_call.result) for done_call in view.calls)
            return [TEA, DONE]
        written = {"content": "a thought"}
        return [("write_file", {"path": f"scratch/{n}.md", **written}) for n in range(self.files)]


def hook(path: Path) -> dict[str, Any]:
    """Write a person's own rule as a script."""
    return kept_by(path, "Write", "grep -q '\"scratch/' || exit 0", "Write under output/.")


async def test_a_habit_is_blocked_at_the_first_try_once_its_guard_is_promoted(
    temporal: Client, root: Root, tmp_path: Path
) -> None:
    model = Habit(3)
    async with serving(temporal, root, model) as jobs:
        for _ in range(2):
            blocked = await done(jobs, set=hook(tmp_path / "rule.sh"))
            assert model.refused == 3
        assert [row.type for row in read_job_traces(root, blocked)] == ["violation"] * 3
        # The second job was told about the first one's refusals.
        assert "write_file was refused" in model.first_message
        assert [row.retrieved > 0 for row in read_job_traces(root, blocked)] == [False] * 3

        [line] = LearningPass(root).learn()
        assert line.startswith(f"{NAME}: proposed (experiment)")
        [now] = LearningPass(root).guard_statuses()
        assert (now.figures.evaluations, now.figures.own, now.ready) == (0, 6, False)

        model.files = 20
        tried = await done(jobs)
        assert model.refused == 0
        assert {row.stage for row in read_job_traces(root, tried)} == {"experiment"}
        [now] = LearningPass(root).guard_statuses()
        assert (now.figures.evaluations, now.figures.wrong, now.ready) == (20, 0, True)
        assert LearningPass(root).learn() == []
        assert "experiment -> active" in LearningPass(root).promote_guard(NAME)

        model.files = 2
        await done(jobs)
        assert model.refused == 2
    [learned] = LearnedGuards(root.path).newest_revisions()
    assert learned.guard
    assert "Write under output/." in learned.guard.message


async def test_a_guard_that_would_block_good_work_is_never_promoted(
    temporal: Client, root: Root, tmp_path: Path
) -> None:
    model = Habit(3)
    async with serving(temporal, root, model) as jobs:
        for _ in range(2):
            await done(jobs, set=hook(tmp_path / "rule.sh"))
        [line] = LearningPass(root).learn()
        assert line.startswith(f"{NAME}: proposed")
        # It would refuse exactly what these jobs were accepted for.
        model.files, model.delivered = 14, [f"scratch/{n}.md" for n in range(14)]
        await done(jobs)
    [now] = LearningPass(root).guard_statuses()
    assert (now.figures.evaluations, now.figures.wrong) == (14, 14)
    assert LearningPass(root).learn() == []
    with pytest.raises(ConfigError, match=r"not ready: 14 evaluations, 14 wrong \(100%\)"):
        LearningPass(root).promote_guard(NAME)
    # Made active by hand, it is demoted automatically.
    LearnedGuards(root.path).put_revision(now.learned.model_copy(update={"stage": "active"}))
    [line] = LearningPass(root).learn()
    assert line.startswith(f"{NAME}: active -> experiment, went back by itself")


class Insisting:
    """A model that asks a person when its write is refused, and tries again."""

    def __call__(self, request: Any) -> Any:
        return Short({"Work": self.work})(request)

    def work(self, view: RequestView) -> Sequence[Call]:
        if not view.calls or view.calls[-1].tool == "request_clarification":
            return [TEA]
        if is_error_result(view.calls[-1].result):
            return [("request_clarification", {"question": "May I?", "default": "No."})]
        return [DONE]


async def test_a_guard_goes_back_as_soon_as_people_let_its_refusals_pass(
    temporal: Client, root: Root
) -> None:
    guard = Guard(
        name="no-tea", point="before_tool", match=Match(path=["output/*"]), decision="deny",
        message="No.",
    )  # fmt: skip
    fields: dict[str, Any] = {"stage": "active", "why": "by mistake", "agent": "generalist"}
    LearnedGuards(root.path).put_revision(
        LearnedRevision(name="no-tea", at=0, since=0, guard=guard, **fields)
    )

    async with serving(temporal, root, Insisting()) as jobs:

        async def let_through(handle: Any) -> None:
            await handle.signal("bypass", {"guard": "no-tea", "reason": "It is tea."})
            await handle.signal("answer", {"text": "Yes."})
            assert (await jobs.result(handle))["status"] == "completed"

        settings = {"limits.clarifications": 2}
        one, other = [await jobs.start(job(set=settings)) for _ in range(2)]
        for handle in (one, other):
            await jobs.until(handle, status="waiting")
        await let_through(one)
        # Nobody ran a learning pass.
        [learned] = LearnedGuards(root.path).newest_revisions()
        assert learned.stage == "experiment"
        assert learned.why.startswith("went back by itself: ")
        assert " 1 wrong" in learned.why
        # A running job keeps its guards; jobs that start now are not restricted by this one.
        await other.signal("answer", {"text": "Try."})
        await jobs.until(other, guards=lambda told: told["refused"] == {"no-tea": 2})
        await jobs.until(other, status="waiting")
        await let_through(other)
        assert {row.stage for row in read_job_traces(root, await done(jobs))} == {"experiment"}
    assert len(LearnedGuards(root.path).revisions("no-tea")) == 2


async def test_a_job_ends_once_the_store_has_its_traces(
    temporal: Client, root: Root, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LONGHAUL_STORE_URL", "postgresql://127.0.0.1:1/db")
    async with serving(temporal, root, Habit(2)) as jobs:
        handle = await jobs.start(job(set=hook(tmp_path / "rule.sh")))
        status = await jobs.until(handle, waiting=bool)
        assert status["waiting"]["reason"] == "dependency"
        monkeypatch.delenv("LONGHAUL_STORE_URL")
        await handle.signal("resume", {})
        assert (await jobs.result(handle))["status"] == "completed"
    assert len(read_job_traces(root, handle.id)) == 2


async def test_traces_are_stored_once_by_a_job_that_continues_as_new_between_them(
    temporal: Client, root: Root, tmp_path: Path
) -> None:
    def work(view: RequestView) -> Sequence[Call]:
        if len(view.calls) == 6:
            return [TEA, DONE]
        return [("write_file", {"path": f"scratch/{len(view.calls)}.md", "content": "a"})]

    rule = hook(tmp_path / "rule.sh")
    async with serving(temporal, root, Short({"Work": work})) as jobs:
        whole = await done(jobs, set=rule)
        cut = await done(jobs, set={**rule, "limits.history_events": 100})

    def of(job_id: str) -> list[tuple[str, str, int, int, str]]:
        rows = [row for row in read_job_traces(root, job_id) if row.source == "hook"]
        return [(row.type, row.path, row.phase, row.step, row.todo) for row in rows]

    assert [path for _, path, *_ in of(whole)] == [f"scratch/{n}.md" for n in range(6)]
    assert of(cut) == of(whole)
    # They were noted in several runs of the workflow during one phase.
    keys = [row.key for row in read_job_traces(root, cut)]
    assert len({key.rpartition(".")[0] for key in keys}) > 1
    assert (
        len({key.rpartition(".")[0] for key in (r.key for r in read_job_traces(root, whole))}) == 1
    )
    assert len({phase for _, _, phase, *_ in of(cut)}) == 1


async def test_a_job_that_is_cancelled_leaves_its_traces(
    temporal: Client, root: Root, tmp_path: Path
) -> None:
    question: Call = ("request_clarification", {"question": "Black?", "default": "Yes."})

    def work(view: RequestView) -> Sequence[Call]:
        return [("write_file", {"path": "scratch/a.md", "content": "a"}), question]

    async with serving(temporal, root, Short({"Work": work})) as jobs:
        handle = await jobs.start(job(set=hook(tmp_path / "rule.sh")))
        await jobs.until(handle, status="waiting")
        await handle.cancel()
        with pytest.raises(WorkflowFailureError):
            await jobs.result(handle)
    assert [row.path for row in read_job_traces(root, handle.id)] == ["scratch/a.md"]


async def test_a_job_without_a_refusal_opens_no_store(temporal: Client, root: Root) -> None:
    async with serving(temporal, root, Short()) as jobs:
        await done(jobs)
    assert not RelationalStore(root).may_hold_data


async def test_learning_runs_as_a_workflow(temporal: Client, root: Root) -> None:
    async with serving(temporal, root, Short()) as jobs:
        handle = await jobs.start(kind="Learning")
        assert await jobs.result(handle) == {"lines": []}


async def test_a_schedule_learns_from_what_was_refused(temporal: Client, root: Root) -> None:
    correction = {
        "source": "person",
        "guard": "approve",
        "tool": "write_file",
        "type": "correction",
    }
    correction |= {"what_was_correct": "Write under output/ only.", "why": ""}
    for number in range(6):
        noted = trace(number, path=f"scratch/{number}.md", **correction)
        store(root, noted, job=f"job-{number % 2}")
    async with serving(temporal, root, Short()) as jobs:
        _, result = await fired(jobs, "Learning", lambda done: bool(done["lines"]))
    [line] = result["lines"]
    assert line.startswith(f"{NAME}: proposed (experiment)")
    [learned] = LearnedGuards(root.path).newest_revisions()
    assert (learned.name, learned.stage) == (NAME, "experiment")
