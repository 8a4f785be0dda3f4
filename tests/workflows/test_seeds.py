"""Jobs made from seeds: a model that only plans is stopped, however it words it, and an honest one
that writes part by part makes no call, and reads no advice, that its work does not need.
"""

from random import Random
from typing import Any

import pytest
from temporalio.client import Client

from activities.checkpoints import Root
from rehearsal.request_view import RequestView
from tests.soak import soak
from tests.workflows.queries import query_status
from tests.workflows.serving import serving
from tests.workflows.short import DONE, Call, Short, close, hand_over, job, plan

SEEDS = range(soak(2, 20))
MOST_CALLS, TO_AND_FRO = 32, 40
"""Most model calls until a person is asked about a job that only plans: without work, and with
a file that changes to and fro, each of whose two states counts once."""
WORDS = [
    "plan",
    "still",
    "stands",
    "more",
    "thought",
    "goes",
    "into",
    "cups",
    "next",
    "round",
    "we",
    "weigh",
    "it",
    "again",
]


class Planner(Short):
    """Plans and plans: the same or in other words, with notes, looks, or a file to and fro."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)
        self.toggles = seed % 4 == 3
        super().__init__(
            {
                "Work": self.idle_calls,
                "Mark": self.plan_calls,
                "Rethink": lambda view: [DONE],
                "Hand": lambda view: [*self.plan_calls(view), DONE],
            }
        )

    def plan_calls(self, view: RequestView) -> list[Call]:
        words = " ".join(self.rng.sample(WORDS, 3))
        return [plan(f"[ ] Boil {words}"), hand_over({"content": f"Work {words}"})]

    def idle_calls(self, view: RequestView) -> list[Call]:
        note = f"notes/{self.rng.choice(['log', str(view.number)])}.md"
        text = f"Round {view.number}: {' '.join(self.rng.sample(WORDS, 6))}."
        cups = {"path": "output/cups.md", "content": f"{view.number % 2} cups"}
        kinds: list[list[Call]] = [
            [("list_files", {"path": "notes"})],
            [("write_file", {"path": note, "content": text}), ("read_file", {"path": note})],
            [("append_file", {"path": note, "content": text}), ("list_files", {"path": "."})],
        ]
        return [*([("write_file", cups)] * self.toggles), *self.rng.choice(kinds), DONE]


class Writer(Short):
    """Writes a part in each phase, or mends an earlier one, with or without notes."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)
        self.parts = self.rng.randint(3, 6)
        self.words = self.rng.choice(["Work", "Work on part {}"])
        self.needless = [DONE] * (seed % 2)
        self.files: list[str] = []
        super().__init__(
            {
                "Plan": lambda view: [self.whole_plan, self.next_list()],
                "Work": self.work_calls,
                "Mark": lambda view: [self.next_list() if self.rest else DONE],
                "Close": lambda view: [*self.needless, close(*dict.fromkeys(self.files))],
            }
        )
        self.rest = self.parts

    @property
    def whole_plan(self) -> Call:
        parts = [f"## Phase {n}: Part {n}\n- [ ] write it\n" for n in range(1, self.parts + 1)]
        return ("write_file", {"path": "plan.md", "content": "# Plan\n\n" + "\n".join(parts)})

    def next_list(self) -> Call:
        self.rest -= 1
        todos: list[dict[str, Any]] = [{"content": self.words.format(self.rest)}]
        return hand_over(*todos * self.rng.randint(1, 3))

    def work_calls(self, view: RequestView) -> list[Call]:
        """Return the work of the whole list."""
        calls: list[Call] = []
        for _ in view.todos:
            fresh = not self.files or self.rng.random() < 0.5
            path = f"output/{len(self.files)}.md" if fresh else self.rng.choice(self.files)
            self.files.append(path)
            text = f"# Part {len(self.files)}\n\n{len(self.files)} cups.\n"
            note = ("write_file", {"path": "notes/log.md", "content": f"Wrote {path}."})
            calls += [("write_file", {"path": path, "content": text})]
            calls += [*([note] * (self.rng.random() < 0.3)), DONE]
        return calls


@pytest.mark.parametrize("seed", SEEDS)
async def test_a_model_that_only_plans_is_sent_back_and_then_a_person_is_asked(
    temporal: Client, root: Root, seed: int
) -> None:
    model = Planner(seed)
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(job())
        status = await jobs.until(handle, waiting_for="stuck")
        await handle.signal("cancel", {})
    assert "5 phases of work in a row" in status["waiting"]["message"]
    assert status["usage"]["model_calls"] <= (TO_AND_FRO if model.toggles else MOST_CALLS)
    assert status["rewinds"] == 2 + model.toggles


@pytest.mark.parametrize("seed", SEEDS)
async def test_an_honest_writer_pays_two_calls_a_phase_and_is_not_advised(
    temporal: Client, root: Root, seed: int
) -> None:
    model = Writer(seed)
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(job())
        result = await jobs.result(handle)
        status = await query_status(handle)
    assert (result["status"], result["rewinds"], status["nudges"]) == ("completed", 0, 0)
    # Planning, each part with what follows it, and the end.
    assert status["step"] == 1 + 2 * model.parts + 1
    assert status["refusals"] == len(model.needless)
