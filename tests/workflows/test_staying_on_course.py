"""Jobs that go in circles, on a real server: nudged, restricted, rewound, or parked."""

from datetime import UTC, datetime
from typing import Any

import yaml
from temporalio.client import Client, WorkflowHandle

from activities.checkpoints import Root
from activities.stores.stored_traces import read_job_traces
from rehearsal import Reply, call
from rehearsal.request_view import RequestView
from rehearsal.wire import Request
from tests.workflows.queries import query_status
from tests.workflows.serving import Jobs, serving
from tests.workflows.short import DONE, MARKED, TEA, Call, Short, close, hand_over, job, plan
from tests.workflows.tea import in_phase

PAGES = ["list_files", "read_file", "write_file", "edit_file", "todo_write", "wait", "append_file"]


class Otherwise(Short):
    """Does a short job except for phase 2, in which it answers as the subclass says."""

    def __init__(self) -> None:
        super().__init__()
        self.shown: list[str] = []
        """The last message of each request of that phase."""

    def __call__(self, request: Request) -> Reply:
        last = str(request["messages"][-1]["content"])
        if not request.get("tools") or "tactical phase 2 " not in last:
            return super().__call__(request)
        self.shown.append(last)
        return self.answer(len(self.shown), request)

    def answer(self, number: int, request: Request) -> Reply:
        raise NotImplementedError


class Looping(Otherwise):
    """Lists the same empty folder over and over; what it says varies."""

    def answer(self, number: int, request: Request) -> Reply:
        return Reply(f"Thought {number}.", [("list_files", {"path": "documents"})])


async def test_a_loop_is_told_narrowed_and_sent_back(temporal: Client, root: Root) -> None:
    model = Looping()
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(job(set={"stuck.nothing_new.nudge": 2}))
        result = await jobs.result(handle)
        assert result["status"] == "completed"
        assert result["rewinds"] == 1
        status = await query_status(handle)
        archived = yaml.safe_load((jobs.folder(handle) / "archive/phase_002.yaml").read_text())
        start = jobs.snapshot(handle, status["checkpoints"][2]["id"])
        before = start.checkpoints.log(status["checkpoints"][2]["id"], 2)[1]
        message = jobs.snapshot(handle, before.id).conversation.messages()[-1]["content"]
    assert len(model.shown) == 6
    assert ["in a row" in text for text in model.shown] == [
        False, False, False, True, False, True
    ]  # fmt: skip
    assert "3 times in a row" in model.shown[3]
    assert "2 calls brought no new result" in model.shown[3]
    assert "only todo_complete and todo_rewind are accepted" in model.shown[5]
    assert "list_files is not accepted now" in message
    assert archived["outcome"] == "rewound"
    assert "list_files was called 5 times in a row" in archived["issue"]
    assert start.state.phase.purpose == "rewind"
    assert status["nudges"] == 2
    notices = "\n".join(status["notices"])
    for words in ("the model was told", "are accepted next", "went back"):
        assert words in notices
    # Others should learn from it what to do, not how the system responded.
    noted = [row for row in read_job_traces(root, handle.id) if row.source == "detector"]
    assert [row.guard for row in noted] == ["same_result", "nothing_new", "same_result"]
    assert all("call todo_rewind with what stands in the way" in r.what_was_correct for r in noted)


class Progressing(Otherwise):
    """Makes six calls in its first reply: five that bring nothing new, and one that writes."""

    def answer(self, number: int, request: Request) -> Reply:
        if number > 1:
            return call("todo_complete", notes="Written.")
        missing = [("read_file", {"path": f"notes/{name}.md"}) for name in "abcde"]
        return Reply("", [*missing, ("write_file", {"path": "notes/f.md", "content": "Found."})])


async def test_advice_that_the_same_reply_has_overtaken_is_not_given(
    temporal: Client, root: Root
) -> None:
    model = Progressing()
    figures = {
        "stuck.nothing_new.nudge": 4,
        "stuck.same_error.nudge": 20,
        "stuck.same_error.then": 30,
    }
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(job(set=figures))
        status = await jobs.until(handle, phase=in_phase(3))
        await handle.signal("cancel", {})
    assert len(model.shown) > 1
    assert not any("brought no new result" in text for text in model.shown)
    assert status["nudges"] == 0
    assert not any("stuck" in notice for notice in status["notices"])


class Failing(Otherwise):
    """Reads a file that is not there, over and over."""

    def answer(self, number: int, request: Request) -> Reply:
        if number > 3:
            return Reply("", [TEA, ("todo_complete", {"notes": "Done without it."})])
        return call("read_file", path="notes/missing.md")


async def test_others_learn_which_error_came_again(temporal: Client, root: Root) -> None:
    async with serving(temporal, root, Failing()) as jobs:
        handle = await jobs.start(job())
        assert (await jobs.result(handle))["status"] == "completed"
        status = await query_status(handle)
    [notice] = [line for line in status["notices"] if "stuck, " in line]
    assert "failed each time. There is no file 'notes/missing.md'" in notice


class Relenting(Looping):
    """Completes its todo when its tools are restricted, and then works normally."""

    def answer(self, number: int, request: Request) -> Reply:
        if number == 6:
            assert "only todo_complete and todo_rewind" in self.shown[-1]
            return call("todo_complete", notes="It was done all along.")
        return super().answer(number, request)


async def test_a_todo_completed_in_the_last_turn_goes_on(temporal: Client, root: Root) -> None:
    async with serving(temporal, root, Relenting()) as jobs:
        handle = await jobs.start(job())
        status = await jobs.until(handle, phase=in_phase(3))
        archived = yaml.safe_load((jobs.folder(handle) / "archive/phase_002.yaml").read_text())
        assert (archived["outcome"], status["rewinds"]) == ("completed", 0)
        await handle.signal("cancel", {})


async def test_forced_rewinds_count_and_then_a_person_is_asked(
    temporal: Client, root: Root
) -> None:
    async with serving(temporal, root, Looping()) as jobs:
        handle = await jobs.start(job(set={"limits.rewinds": 0}))
        status = await jobs.until(handle, waiting_for="rewinds")
        assert "list_files was called 5 times" in status["waiting"]["message"]
        await handle.signal("resume", {})
        await jobs.until(handle, phase=in_phase(3), rewinds=1)
        await handle.signal("cancel", {})


class Talking(Otherwise):
    """Replies with text alone."""

    def answer(self, number: int, request: Request) -> Reply:
        return Reply(f"I am at it, part {number}.")


async def test_text_alone_is_sent_back_as_well(temporal: Client, root: Root) -> None:
    model = Talking()
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(job())
        await jobs.until(handle, phase=in_phase(3), rewinds=1)
        archived = yaml.safe_load((jobs.folder(handle) / "archive/phase_002.yaml").read_text())
        await handle.signal("cancel", {})
    assert "5 replies in a row called no tool" in archived["issue"]
    assert len(model.shown) == 6


async def test_completion_refused_three_times_waits_for_review(
    temporal: Client, root: Root
) -> None:
    claims = [close(path) for path in ("no1.md", "no2.md", "no3.md", "output/tea.md")]
    model = Short({"Close": claims})
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(job())
        status = await jobs.until(handle, waiting_for="review")
        assert "job_complete was refused 3 times" in status["waiting"]["message"]
        await handle.signal("resume", {})
        assert (await jobs.result(handle))["status"] == "completed"
    assert ["does not exist" in refusal for refusal in model.refusals] == [True] * 3


async def test_the_last_turn_takes_the_call_that_ends_the_job(temporal: Client, root: Root) -> None:
    """A small model calls `todo_complete` where only `job_complete` can end the list."""
    offered: list[set[str]] = []

    def last(view: RequestView) -> list[Call]:
        offered.append(set(view.tools))
        return [close("output/tea.md") if "todo_write" in view.tools and len(offered) > 4 else DONE]

    async with serving(temporal, root, Short({"Close": last})) as jobs:
        handle = await jobs.start(job())
        result = await jobs.result(handle)
        status = await query_status(handle)
    assert (result["status"], result["rewinds"]) == ("completed", 0)
    assert offered[-1] == {"job_complete", "todo_write", "todo_rewind"}
    assert all("todo_complete" not in tools for tools in offered)
    assert any("calls that end the todo are accepted next" in line for line in status["notices"])


async def test_a_needless_todo_complete_does_not_void_what_ends_the_list(
    temporal: Client, root: Root
) -> None:
    steps: list[int] = []

    def last(view: RequestView) -> list[Call]:
        steps.append(view.number)
        return [DONE, close("output/tea.md")]

    plans = [plan("[ ] Boil", "[ ] Brew"), DONE, hand_over({})]
    async with serving(temporal, root, Short({"Close": last, "Plan": lambda _: plans})) as jobs:
        handle = await jobs.start(job())
        result = await jobs.result(handle)
        status = await query_status(handle)
    assert status["step"] == 4
    assert (result["status"], result["rewinds"], len(steps)) == ("completed", 0, 1)


class Leafing(Otherwise):
    """Reads the same seven pages over and over: too long a cycle to be recognized as one."""

    begun: datetime
    """Time of its first request in that phase."""

    def answer(self, number: int, request: Request) -> Reply:
        if number == 1:
            self.begun = datetime.now(UTC)
        return call("read_file", path=f"tools/{PAGES[number % 7]}.md")


async def test_the_window_survives_continue_as_new(temporal: Client, root: Root) -> None:
    model = Leafing()
    async with serving(temporal, root, model) as jobs:
        figures = {"stuck.nothing_new.nudge": 8, "stuck.nothing_new.then": 15}
        settings = {"limits.history_events": 100, **figures}
        handle = await jobs.start(job(set=settings))
        status = await jobs.until(handle, waiting_for="stuck")
        newest = await jobs.client.get_workflow_handle(handle.id).describe()
        assert newest.start_time > model.begun
        assert "15 calls brought no new result" in status["waiting"]["message"]
        assert len(model.shown) == 7 + 15
        await handle.signal("resume", {})
        await jobs.until(handle, step=lambda step: step > status["step"])
        await handle.signal("cancel", {})


async def test_who_pauses_a_stuck_job_and_resumes_it_lets_it_go_on(
    temporal: Client, root: Root
) -> None:
    async with serving(temporal, root, Leafing()) as jobs:
        handle = await jobs.start(
            job(set={"stuck.nothing_new.nudge": 3, "stuck.nothing_new.then": 5})
        )
        before = await jobs.until(handle, waiting_for="stuck")
        await handle.signal("pause", {})
        await jobs.until(handle, waiting_for="paused")
        await handle.signal("resume", {})
        after = await jobs.until(
            handle, waiting_for="stuck", step=lambda step: step > before["step"]
        )
        assert after["step"] - before["step"] >= 5
        await handle.signal("cancel", {})


class Patient(Otherwise):
    """Calls `wait` for each of these times before it begins."""

    def __init__(self, *waits: dict[str, Any]) -> None:
        super().__init__()
        self.waits = waits

    def answer(self, number: int, request: Request) -> Reply:
        if number > len(self.waits):
            return Short.__call__(self, request)
        return call("wait", **self.waits[number - 1])


async def timers(jobs: Jobs, handle: WorkflowHandle[Any, Any]) -> list[float]:
    history = await handle.fetch_history()
    return [
        event.timer_started_event_attributes.start_to_fire_timeout.ToTimedelta().total_seconds()
        for event in history.events
        if event.HasField("timer_started_event_attributes")
    ]


async def test_a_wait_is_a_timer_and_no_model_call_and_none_until_a_time_that_is_past(
    temporal: Client, root: Root
) -> None:
    model = Patient({"seconds": 2}, {"seconds": 3600, "until": "2020-01-01T00:00:00Z"})
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(job())
        status = await jobs.until(handle, waits_until=lambda until: until.endswith("Z"))
        assert status["status"] == "running"
        calls = len(model.shown)
        result = await jobs.result(handle)
        assert result["status"] == "completed"
        assert calls == 1
        assert await timers(jobs, handle) == [2.0]
        assert (await query_status(handle))["nudges"] == 0


async def test_a_wait_can_be_paused_and_rewound(temporal: Client, root: Root) -> None:
    async with serving(temporal, root, Patient({"seconds": 3600})) as jobs:
        handle = await jobs.start(job())
        waiting = await jobs.until(handle, waits_until=bool)
        await handle.signal("pause", {})
        await jobs.until(handle, waiting_for="paused")
        await handle.signal("resume", {})
        status = await jobs.until(handle, waiting_for=None)
        assert status["waits_until"] == waiting["waits_until"]
        await handle.signal("rewind", {"issue": "No time for that."})
        status = await jobs.until(handle, phase=in_phase(3))
        assert status["waits_until"] is None
        assert (await jobs.result(handle))["status"] == "completed"


AGAIN = plan("[ ] Boil", "[ ] Brew")


class Planning(Short):
    """Plans, looks into a folder, and plans the same again."""

    def __init__(self, *worked: Call) -> None:
        looks: list[Call] = [("list_files", {"path": "documents"}), DONE]
        hand = [AGAIN, hand_over({})]
        super().__init__(
            {
                "Work": lambda view: [*worked, *looks],
                "Mark": lambda view: hand,
                "Rethink": lambda view: [DONE],
                "Hand": lambda view: [*hand, DONE],
            }
        )
        self.shown: list[str] = []

    def __call__(self, request: Request) -> Reply:
        self.shown.append(str(request["messages"][-1]["content"]))
        return super().__call__(request)


async def test_a_job_that_only_plans_is_told_sent_back_and_then_a_person_is_asked(
    temporal: Client, root: Root
) -> None:
    model = Planning()
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(job())
        status = await jobs.until(handle, waiting_for="stuck")
        assert "5 phases of work in a row" in status["waiting"]["message"]
        calls = status["usage"]["model_calls"]
        assert status["rewinds"] == 2
        await handle.signal("resume", {})
        status = await jobs.until(handle, waiting_for="stuck", step=lambda step: step > calls)
        assert "5 phases" in status["waiting"]["message"]
        await handle.signal("cancel", {})
    assert calls <= 24
    assert any("2 phases of work in a row changed no file" in text for text in model.shown)


class Rewording(Planning):
    """Plans the same in other words each time, with a note, a list of files, and a look at both."""

    def __call__(self, request: Request) -> Reply:
        turn = len(self.shown)
        note = ("write_file", {"path": f"notes/{turn}.md", "content": f"Plan {turn} still stands."})
        own = ("read_file", {"path": f"notes/{turn}.md"})
        hand = [plan(f"[ ] Boil {turn}"), hand_over({"content": f"Work at cup {turn}"})]
        self.verbs |= {
            "Work": lambda view: [("list_files", {"path": "notes"}), note, own, DONE],
            "Mark": lambda view: hand,
            "Hand": lambda view: [*hand, DONE],
        }
        return super().__call__(request)


async def test_other_words_and_trivial_notes_do_not_hide_that_a_job_only_plans(
    temporal: Client, root: Root
) -> None:
    model = Rewording()
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(job())
        status = await jobs.until(handle, waiting_for="stuck")
        assert "5 phases of work in a row" in status["waiting"]["message"]
        await handle.signal("cancel", {})
    assert status["usage"]["model_calls"] <= 24


async def test_phases_that_work_are_not_counted(temporal: Client, root: Root) -> None:
    class Working(Planning):
        """Hands over the same words each time, and does something for them."""

        def __call__(self, request: Request) -> Reply:
            made = ("write_file", {"path": "output/tea.md", "content": f"{len(self.shown)} cups"})
            self.verbs["Work"] = [made, DONE]
            boxes = plan(*(f"[ ] Cup {n}" for n in range(len(self.shown) + 1)))
            ends = [MARKED, close("output/tea.md")]
            self.verbs["Mark"] = lambda view: ends if view.number > 8 else [boxes, hand_over({})]
            return super().__call__(request)

    class Writing(Planning):
        """Makes a chapter a phase, with the same list, scope and plan each time."""

        def __call__(self, request: Request) -> Reply:
            made = {"path": f"output/{len(self.shown)}.md", "content": f"{len(self.shown)} cups"}
            self.verbs["Work"] = [("write_file", made), DONE]
            ends = [plan("[x] Cup"), close("output")]
            more = [plan("[ ] Cup"), hand_over({})]
            self.verbs["Mark"] = lambda view: ends if view.number > 8 else more
            return super().__call__(request)

    for model in (Working(), Writing()):
        async with serving(temporal, root, model) as jobs:
            handle = await jobs.start(job())
            result = await jobs.result(handle)
            status = await query_status(handle)
        assert result["phases"] == 9
        assert (status["nudges"], status["rewinds"]) == (0, 0)
