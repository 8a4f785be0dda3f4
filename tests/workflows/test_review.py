"""The acceptance review: a reader with fresh eyes judges each statement before a job ends."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client

from activities.checkpoints import Root
from activities.job.conversation import Conversation
from protocol.contract import Contract
from protocol.endings import COMPLETION_FILE
from protocol.limits import ReviewLimits
from protocol.scope_ledger import ScopeItem
from rehearsal import Reply, Request, call, rehearse
from tests.activities.guards.hooks.scripts import hook
from tests.workflows.queries import query_status
from tests.workflows.records import record, state
from tests.workflows.serving import serving
from tests.workflows.short import DONE, Call, Short, close, hand_over, in_turn, job, plan
from tests.workflows.tea import page
from workflows.jobs.completion import is_reviewed

ONE = {"reflection": False, "review.calls": 1}
THREE = {"reflection": False, "review.calls": 3}
LACKING = "output/tea.md says nothing of the water."
TEXT = "# Tea\n\nTea number {n} needs water.\n"


@dataclass
class Reviewer:
    """Gives its replies in turn, the last one forever, and records its requests."""

    replies: list[Reply]
    requests: list[Request] = field(default_factory=list)

    def __call__(self, request: Request) -> Reply:
        self.requests.append(request)
        return self.replies[min(len(self.requests), len(self.replies)) - 1]


def judging(*verdicts: tuple[str, str, str], finding: str = LACKING, also: str = "") -> Reply:
    listed = [
        {"id": id_, "verdict": word, "quote": quote, "finding": finding if word == "unmet" else ""}
        for id_, word, quote in verdicts
    ]
    return call("judge_statements", verdicts=listed, findings=also)


def works(reviewer: Any, items: int = 2, **verbs: Any) -> Short:
    """Return a model that does all items in one phase and then calls job_complete."""
    boxes = [f"[ ] S{n} Do number {n}" for n in range(1, items + 1)]
    text = "".join(TEXT.format(n=n) for n in range(1, items + 1))
    write: Call = ("write_file", {"path": "output/tea.md", "content": text})
    does: dict[str, Any] = {
        "Plan": lambda view: [plan(*boxes), hand_over({}), DONE],
        "Work": lambda view: [write, DONE],
        "Mark": [close("output/tea.md")],
    }
    return Short(does | verbs, reviewer)


def asked(count: int = 2, **details: Any) -> dict[str, Any]:
    return job(items=[f"Make tea number {n}" for n in range(1, count + 1)], **details)


async def test_an_honest_job_pays_one_call_and_its_result_has_the_table(
    temporal: Client, root: Root
) -> None:
    met = [(f"S{n}", "met", f"Tea number {n} needs water") for n in range(1, 13)]
    reviewer = Reviewer([judging(*met)])
    async with serving(temporal, root, works(reviewer, 12)) as jobs:
        plain = await jobs.result(await jobs.start(asked(12)))
        handle = await jobs.start(asked(12, set=ONE))
        result = await jobs.result(handle)
        written = json.loads((jobs.folder(handle) / COMPLETION_FILE).read_text())
        status = await query_status(handle)
        memo = await (await handle.describe()).memo()
    assert len(reviewer.requests) == 1
    assert result["usage"]["model_calls"] == plain["usage"]["model_calls"] + 1
    assert (result["statements"], result["met"]) == (12, 12)
    assert (plain["statements"], plain["met"]) == (12, 0)
    assert {row["verdict"] for row in plain["contract"]} == {"not reviewed"}
    assert written["contract"] == result["contract"] == status["result"]["contract"]
    first = Contract(rows=result["contract"]).rows[0]
    assert (first.id, first.files, first.word) == ("S1", ["output/tea.md"], "met")
    assert memo["state"].startswith("completed, 12 of 12 statements met; phase 3")
    [offered] = [tool["function"]["name"] for tool in reviewer.requests[0]["tools"]]
    assert offered == "judge_statements"


async def test_what_is_unmet_is_sent_back_and_accepted_once_it_is_mended(
    temporal: Client, root: Root
) -> None:
    reviewer = Reviewer(
        [
            judging(("S1", "met", "Tea number 1"), ("S2", "unmet", "Tea number 2")),
            judging(("S1", "met", "Tea number 1"), ("S2", "met", "hot water"), also="No sugar."),
        ]
    )
    mended = ("append_file", {"path": "output/tea.md", "content": "With hot water."})
    ending = [close("output/tea.md"), mended, close("output/tea.md")]
    async with serving(temporal, root, model := works(reviewer, Mark=ending)) as jobs:
        handle = await jobs.start(asked(set=ONE))
        result = await jobs.result(handle)
        status = await query_status(handle)
    assert (result["status"], result["met"]) == ("completed", 2)
    [refusal] = model.refusals
    assert f"- S2 'Make tea number 2': {LACKING}" in refusal
    assert "call job_complete again" in refusal
    assert "S1" not in refusal
    # This helps people too: after too many refusals the job waits for one.
    assert LACKING in status["notices"][-2]
    assert status["notices"][-1] == "the review sent nothing back, and adds: No sugar."
    task = reviewer.requests[1]["messages"][-1]["content"]
    assert f"you found before: unmet. {LACKING}" in task
    assert "Tea was made." not in task


async def test_after_two_rounds_the_job_ends_and_names_what_is_not_accepted(
    temporal: Client, root: Root
) -> None:
    reviewer = Reviewer([judging(("S1", "met", "made up"), ("S2", "unmet", "Make tea number 2"))])
    async with serving(temporal, root, model := works(reviewer)) as jobs:
        handle = await jobs.start(asked(set=ONE))
        result = await jobs.result(handle)
    assert result["status"] == "completed"
    assert len(model.refusals) == 2
    assert len(reviewer.requests) == 3
    assert result["met"] == 0
    first, second = Contract(rows=result["contract"]).rows
    assert (first.word, second.word) == ("cannot tell", "unmet")
    assert "nowhere in the work" in first.finding
    assert second.finding == LACKING


@pytest.mark.parametrize(
    ("reply", "calls", "asks"),
    [
        (Reply(content="Everything is met, well done."), 1, 1),
        (Reply(content="Let me think."), 3, 3),
        (Reply(calls=[("judge_statements", "{not json")]), 3, 1),
        (call("read_file", path="output/tea.md"), 1, 1),
        (call("job_complete", summary="s"), 2, 2),
    ],
)
async def test_without_a_verdict_that_can_be_read_nothing_is_accepted(
    temporal: Client, root: Root, reply: Reply, calls: int, asks: int
) -> None:
    reviewer = Reviewer([reply])
    async with serving(temporal, root, model := works(reviewer)) as jobs:
        settings = {**ONE, "review.calls": calls}
        result = await jobs.result(await jobs.start(asked(set=settings)))
    assert (result["status"], result["met"]) == ("completed", 0)
    assert {row["verdict"] for row in result["contract"]} == {"cannot tell"}
    assert not model.refusals
    assert len(reviewer.requests) == asks
    if asks > 1:
        last = reviewer.requests[-1]
        assert "This is your last reply" in last["messages"][-1]["content"]
        assert len(last["tools"]) == 1


async def test_what_it_looks_up_counts_and_is_limited(temporal: Client, root: Root) -> None:
    look = ("read_file", {"path": "output/tea.md"})
    verdict = judging(("S1", "met", "Tea number 1"), ("S2", "met", "Tea number 2"))
    async with serving(temporal, root, works(in_turn(Reply(calls=[look] * 6), verdict))) as jobs:
        handle = await jobs.start(asked(set={**THREE, "limits.job.tool_calls": 8}))
        status = await jobs.until(handle, waiting_for="budget")
        assert "5 are made and the next step may make 4" in status["waiting"]["message"]
        await handle.signal("limit", {"tool_calls": 14})
        result = await jobs.result(handle)
    assert result["met"] == 2
    # The reviewer made seven calls, two of them too many for one reply.
    counts = [result["usage"][f"{word}_calls"] for word in ("sent", "tool", "refused", "failed")]
    assert counts == [13, 11, 2, 0]


async def test_without_room_for_its_call_the_job_waits_and_then_goes_on(
    temporal: Client, root: Root
) -> None:
    verdict = judging(("S1", "met", "Tea number 1"), ("S2", "met", "Tea number 2"))
    async with serving(temporal, root, works(in_turn(verdict))) as jobs:
        handle = await jobs.start(asked(set={**ONE, "limits.job.model_calls": 3}))
        status = await jobs.until(handle, waiting_for="budget", reviewing=True)
        assert status["usage"]["model_calls"] == 3
        await handle.signal("limit", {"model_calls": 4})
        assert (await jobs.result(handle))["met"] == 2


async def test_a_rewind_ends_the_review_and_edits_of_a_person_begin_it_anew(
    temporal: Client, root: Root
) -> None:
    reading = Reviewer([call("read_file", path="plan.md")])
    # After the refusal it asks, and stays where the test looks at it.
    asks = ("request_clarification", {"question": "Where is it?", "default": "Gone."})
    model = works(reading, Mark=[close("output/tea.md"), asks], Rethink=[DONE])
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(asked(set={**ONE, "review.calls": 100}))
        await jobs.until(handle, reviewing=True)
        await handle.signal("pause", {})
        await jobs.until(handle, waiting_for="paused")
        before = len(reading.requests)
        (jobs.folder(handle) / "output/tea.md").unlink()
        await handle.signal("resume", {})
        status = await jobs.until(handle, waiting_for="clarification")
        assert status["refused_completions"] == 1
        assert len(reading.requests) <= before + 1
        assert "output/tea.md: does not exist" in model.refusals[-1]
        await handle.signal("rewind", {"issue": "No tea."})
        status = await jobs.until(handle, rewinds=1)
        assert status["reviewing"] is False
        await handle.signal("cancel", {})


async def test_a_bypass_holds_until_the_reviewer_too_lets_the_job_end(
    temporal: Client, root: Root, tmp_path: Path
) -> None:
    stop = hook(tmp_path / "gate.py", "print('no', file=sys.stderr)\nsys.exit(2)")
    ended = close("output/tea.md")
    # After the hook's refusal it asks, and stays where it can be let through.
    ask = ("request_clarification", {"question": "What is wrong?", "default": "Nothing."})
    verdicts = in_turn(judging(("S2", "unmet", "Tea number 2")), judging())
    model = works(verdicts, Mark=[ended, ask, ended, ended])
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(asked(set={**ONE, "hooks": {"Stop": [stop]}}))
        status = await jobs.until(handle, waiting_for="clarification")
        assert status["guards"]["refused"] == {"gate": 1}
        await handle.signal("bypass", {"guard": "gate", "reason": "It is tea."})
        await handle.signal("answer", {"text": "Nothing."})
        assert (await jobs.result(handle))["status"] == "completed"
        status = await query_status(handle)
        assert status["guards"] == {"refused": {"gate": 1}, "bypasses": {}}


async def test_the_rehearsal_model_judges_and_reviews_as_well(temporal: Client, root: Root) -> None:
    async with serving(temporal, root, rehearse) as jobs:
        handle = await jobs.start(page(items=["green tea"], set={**ONE, "judge": {}}))
        result = await jobs.result(handle)
        assert result["status"] == "completed"
        last = jobs.snapshot(handle, result["checkpoint"])
    assert list(last.judge.walk())
    review = Conversation(last.review)
    assert review.messages()[-1]["tool_calls"][0]["function"]["name"] == "judge_statements"
    [kept] = [each for item in last.state.scope if not item.is_step for each in item.statements]
    assert (kept.verdict, kept.quote) == ("met", "# Green tea")
    assert result["met"] == 1


@pytest.mark.parametrize(
    ("limits", "item", "project", "expected"),
    [
        (ReviewLimits(attempts=2, calls=1), {"id": "S1"}, "", True),
        (None, {"id": "S1"}, "", False),
        (ReviewLimits(attempts=2, calls=1), {"id": "S1", "status": "dropped"}, "", False),
        (ReviewLimits(attempts=2, calls=1), {"id": "P1", "source": "plan"}, "", False),
        (ReviewLimits(attempts=2, calls=1), {"id": "S1"}, "unit", False),
        (ReviewLimits(attempts=2, calls=1, projects=True), {"id": "S1"}, "unit", True),
    ],
)
def test_which_jobs_are_reviewed(
    limits: ReviewLimits | None, item: dict[str, Any], project: str, *, expected: bool
) -> None:
    reviewed = record(state=state("work"), project=project)
    reviewed.limits.review = limits
    reviewed.state.scope = [ScopeItem(text="Make tea", **item)]
    assert is_reviewed(reviewed) is expected
