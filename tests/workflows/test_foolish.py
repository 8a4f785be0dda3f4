"""No job ends as completed with a statement of its brief that is neither met nor named as open."""

from typing import Any

import pytest
from temporalio.client import Client

from activities.checkpoints import Root
from tests.soak import soak
from tests.workflows import foolish
from tests.workflows.serving import Jobs, serving

COUNT = soak(6, 9)
"""Statements of a brief, in three parts."""
PART = COUNT // foolish.PHASES
SET: dict[str, Any] = {
    "limits.min_todos": 1,
    "limits.job.model_calls": 20,
    "limits.rewinds": 2,
    "reflection": False,
    "review": {"agent": "reviewer", "attempts": 2, "calls": 1},
}


async def run(jobs: Jobs, model: foolish.Honest, **more: Any) -> dict[str, Any]:
    """Run a job to its end, or until it waits for a person; return its last status."""
    start = {
        "agent": "generalist",
        "instructions": foolish.brief(model.seed, model.count),
        "set": SET,
    }
    handle = await jobs.start({**start, **more})
    status = await jobs.until(handle, status=lambda word: word != "running")
    if status["status"] == "waiting":
        await handle.signal("cancel", {})
    status["files"] = {
        path.relative_to(jobs.folder(handle)).as_posix(): path.read_text()
        for path in (jobs.folder(handle) / "output").glob("*.md")
    }
    return status


def named_as_open(result: dict[str, Any]) -> set[int]:
    """Return the numbers of the statements that the result does not call met."""
    return {
        int(row["statement"].partition("fact_")[2][:2])
        for row in result["contract"]
        if row["status"] != "completed" or row["verdict"] != "met"
    }


@pytest.mark.parametrize("fool", foolish.FOOLS)
async def test_a_foolish_model_completes_nothing_that_is_not_met_or_named(
    temporal: Client, root: Root, fool: str
) -> None:
    for seed in range(1, 1 + soak(1, 20)):
        model = foolish.FOOLS[fool](seed=seed, count=COUNT)
        async with serving(temporal, root, model) as jobs:
            status = await run(jobs, model)
        if status["status"] == "completed":
            unmet = foolish.unmet_statements(status["files"], seed, COUNT)
            assert unmet <= named_as_open(status["result"]), (fool, seed)
        else:
            assert status["waiting"]["message"]


@pytest.mark.parametrize("name", foolish.REVIEWERS)
async def test_a_foolish_reviewer_accepts_nothing(temporal: Client, root: Root, name: str) -> None:
    model = foolish.WritesJunk(count=COUNT, reviewer=foolish.REVIEWERS[name])
    async with serving(temporal, root, model) as jobs:
        status = await run(jobs, model)
    assert status["status"] == "completed"
    assert named_as_open(status["result"]) == set(range(1, COUNT + 1))


async def test_an_honest_model_is_refused_nothing_and_pays_one_review(
    temporal: Client, root: Root
) -> None:
    model = foolish.Honest(count=COUNT)
    async with serving(temporal, root, model) as jobs:
        status = await run(jobs, model)
    assert status["status"] == "completed"
    assert status["refusals"] == 0
    assert named_as_open(status["result"]) == set()
    # The plan with its first list, the work and what follows for each of three parts.
    assert model.calls == 7
    assert status["usage"]["model_calls"] == model.calls + 1


async def test_what_cannot_be_done_is_named_in_the_result(temporal: Client, root: Root) -> None:
    model = foolish.ExplainsEach(count=COUNT)
    async with serving(temporal, root, model) as jobs:
        status = await run(jobs, model)
    assert status["status"] == "completed"
    assert named_as_open(status["result"]) == set(range(1 + PART, COUNT + 1))


async def test_of_thirty_sentences_none_is_lost(temporal: Client, root: Root) -> None:
    """A model that forgets one in five is sent back, or the result names what it forgot."""
    model = foolish.LosesEveryTenth(seed=3, count=30)
    async with serving(temporal, root, model) as jobs:
        status = await run(jobs, model)
    assert status["scope"]["original"] == 30
    if status["status"] == "completed":
        unmet = foolish.unmet_statements(status["files"], 3, 30)
        assert unmet <= named_as_open(status["result"])


class DropsThenWrites(foolish.Honest):
    """Leaves the last part out, and does it when that is refused."""

    def after(self, part: int) -> list[foolish.Call]:
        return super().after(part) if part < 2 else self.end()

    def end(self) -> list[foolish.Call]:
        left = [f"{kind}{1 + COUNT - PART}-{kind}{COUNT}" for kind in "BP"]
        reason = "There was no time left for these in this run."
        return [("drop_item", {"ids": [ids], "reason": reason}) for ids in left] + [self.complete()]

    def refused(self, why: str) -> list[foolish.Call]:
        return [*(self.write(number) for number in self.shares()[2]), self.complete()]


async def test_what_may_not_be_left_out_is_open_again(temporal: Client, root: Root) -> None:
    """A refusal has a way out, also where nobody is asked."""
    model = DropsThenWrites(count=COUNT)
    async with serving(temporal, root, model) as jobs:
        status = await run(jobs, model, set={**SET, "scope.beyond": "refuse"})
    assert status["status"] == "completed"
    assert named_as_open(status["result"]) == set()
