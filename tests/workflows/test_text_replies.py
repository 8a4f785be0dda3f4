"""A reply without a call is not accepted: it is corrected, and then a call is required."""

from collections.abc import Sequence
from typing import Any

import pytest
from temporalio.client import Client

from activities.checkpoints import Root
from protocol.job_state import JobState
from protocol.phase import Phase
from protocol.requests import ModelReply, ReplyVerdict
from protocol.scope_ledger import scope_from_texts
from protocol.todo_list import Todo
from protocol.usage import Usage
from rehearsal import Failure, Reply
from rehearsal.wire import Answer, Request
from tests.workflows.deviating import Deviating
from tests.workflows.records import record
from tests.workflows.serving import serving
from tests.workflows.short import Short, job
from workflows.rules.text_replies import must_reply_with_call, reply_correction

TODO = Todo(id=3, content="Write   the guide.\nIn English.")


def at(*todos: Todo, items: Sequence[str] = ()) -> JobState:
    phase = Phase(number=2, kind="tactical", purpose="work", name="Guide", todos=list(todos))
    return JobState(phase=phase, scope=scope_from_texts(items))


def reply(verdict: ReplyVerdict = "", finish: str = "stop", **details: object) -> ModelReply:
    base = {"commit": "c", "finish": finish, "usage": Usage(), "verdict": verdict}
    return ModelReply.model_validate(base | details)


@pytest.mark.parametrize(
    ("verdict", "finish", "words"),
    [
        ("asks", "stop", "need no permission"),
        ("claims", "stop", "only calls count"),
        ("reports", "stop", "called no tool"),
        ("reports", "length", "output limit"),
        ("asks", "length", "output limit"),
    ],
)
def test_a_correction_names_the_todo_and_what_to_do(
    verdict: ReplyVerdict, finish: str, words: str
) -> None:
    correction = reply_correction(reply(verdict, finish), at(TODO))
    assert correction is not None
    assert words in correction
    assert "todo 3 (Write the guide. In English)" in correction
    assert len(correction) < 300


def test_a_correction_lets_a_todo_that_is_done_be_completed_first() -> None:
    for verdict in ("asks", "claims", "reports"):
        correction = reply_correction(reply(verdict), at(TODO)) or ""
        begin, _, _ = correction.partition("else go on with it with a tool.")
        assert begin.endswith(
            "If todo 3 (Write the guide. In English) is done, call todo_complete; "
        )


def test_the_last_todo_of_a_job_is_completed_by_job_complete() -> None:
    phase = Phase(number=2, kind="strategic", purpose="final", name="End", todos=[TODO])
    correction = reply_correction(reply("reports"), JobState(phase=phase)) or ""
    assert "is done, call job_complete; else" in correction
    assert "todo_complete" not in correction


def test_a_reply_with_calls_is_work_whatever_it_says() -> None:
    assert reply_correction(reply(calls=[{"tool": "read_file"}]), at(TODO)) is None


def test_of_calls_that_were_too_many_the_model_is_told() -> None:
    calls = [{"tool": "read_file"}] * 32
    correction = reply_correction(reply(calls=calls, dropped=8), at(TODO))
    assert correction is not None
    assert "had 40 calls; those after the first 32, which is the most, were left out" in correction


async def test_calls_beyond_the_most_are_not_made_and_not_lost(
    temporal: Client, root: Root
) -> None:
    calls: list[Any] = [("write_file", {"path": f"{n}.md", "content": f"{n}"}) for n in range(40)]
    model = Deviating({1: Reply(calls=calls)}, Short())
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(job())
        result = await jobs.result(handle)
    assert result["status"] == "completed"
    assert "had 40 calls; those after the first 32, which is the most, were left out" in (
        model.told(2)
    )
    assert "were left out" not in model.told(3)
    assert sorted(path.name for path in root.workspace(handle.id).glob("[0-9]*.md")) == sorted(
        f"{n}.md" for n in range(32)
    )


def test_a_correction_is_short_however_long_the_todo() -> None:
    correction = reply_correction(
        reply("asks"), at(Todo(id=1, content="word " * 1000), items=["tea"] * 50)
    )
    assert correction is not None
    assert len(correction) < 400
    assert reply_correction(reply("asks"), at())


@pytest.mark.parametrize("verdict", ["asks", "claims"])
def test_who_says_that_all_is_done_is_told_what_is_not(verdict: ReplyVerdict) -> None:
    state = at(TODO, Todo(id=4, content="Print it."), items=["guide", "print"])
    assert "Open are 2 todos and the scope items S1, S2." in str(
        reply_correction(reply(verdict), state)
    )
    assert "Open is 1 todo." in str(reply_correction(reply(verdict), at(TODO)))


def test_a_call_is_demanded_after_two_replies_unless_the_endpoint_cannot() -> None:
    assert [must_reply_with_call(record(text_only_replies=n)) for n in (0, 1, 2, 3)] == [
        False,
        False,
        True,
        True,
    ]
    assert not must_reply_with_call(record(text_only_replies=5, can_require_call=False))


async def test_asking_twice_is_corrected_and_then_a_call_is_demanded(
    temporal: Client, root: Root
) -> None:
    model = Deviating({1: Reply("Shall I go on?"), 2: Reply("The task is complete.")}, Short())
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(job())
        result = await jobs.result(handle)
        assert result["status"] == "completed"
        status = await handle.query("status")
    assert status["refusals"] == 2
    assert "need no permission" in model.told(2)
    # The newest correction replaces the one before, and none is kept.
    assert "only calls count" in model.told(3)
    assert "need no permission" not in str(model.requests[3]["messages"])
    assert "only calls count" not in str(model.requests[4]["messages"])
    demanded = [number for number, request in model.requests.items() if "tool_choice" in request]
    assert demanded == [3]
    assert model.requests[3]["tool_choice"] == "required"


async def test_text_beside_a_call_is_not_held_against_it(temporal: Client, root: Root) -> None:
    text = "Shall I list the files? The task is complete."
    model = Deviating({1: Reply(text, [("list_files", {})])}, Short())
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(job())
        assert (await jobs.result(handle))["status"] == "completed"
        status = await handle.query("status")
    assert status["refusals"] == 0
    assert "Nobody answers" not in model.told(2)


class CannotDemand(Deviating):
    """Its endpoint does not support `tool_choice`."""

    def __call__(self, request: Request) -> Answer:
        if "tool_choice" in request:
            self.refused = getattr(self, "refused", 0) + 1
            return Failure(400, "tool_choice 'required' is not supported")
        return super().__call__(request)


async def test_an_endpoint_that_refuses_the_demand_is_asked_without_it(
    temporal: Client, root: Root
) -> None:
    talk = Reply("I will read the file now.")
    model = CannotDemand({1: talk, 2: talk, 3: talk, 4: talk}, Short())
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(job())
        assert (await jobs.result(handle))["status"] == "completed"
    assert model.refused == 1
    assert "called no tool" in model.told(5)
