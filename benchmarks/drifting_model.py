"""A model that drifts: with given rates, its calls show typical mistakes of models.

Otherwise it works: a file per item, todo by todo. It remembers only what it is shown, so the runner
has to remember whatever it forgets. The same seed drifts in the same way. With rates for `WEAK` it
also ticks todos without work, forgets items, gives up and repeats itself until it is told so.
"""

import random
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rehearsal.wire import Arguments, Reply, Request

ITEMS = 60
PER_PHASE = 20
DRIFTS = (
    "asks",
    "reports",
    "claims",
    "repeats",
    "forbidden",
    "malformed",
    "too few",
    "missing",
)
WEAK = {"ticks": 0.12, "forgets": 0.5, "gives up": 0.02, "sticks": 0.04, "claims": 0.04}
"""Rates of a weak model."""
SAYS = {
    "asks": "Item {n} is next. Would you like me to continue?",
    "reports": "I have looked at the list and at the files. Item {n} comes next.",
    "claims": "All items have been made. The task is complete.",
}
_HEADER = re.compile(r"Todo list · (strategic|tactical) phase (\d+)")
_OPEN = re.compile(
    r"^- B\d+ \(open\): Make item (\d+) as \S+(?: \((\d+) statements, .*\))?$", re.MULTILINE
)
_OWED = re.compile(r"^- B\d+ \(\w+\): Make item", re.MULTILINE)
_BOX = re.compile(r"^- \[([ x])\] output/item_(\d+)", re.MULTILINE)
_ITEM = re.compile(r"item (\d+)")
_SEED = re.compile(r"Seed (\d+)\.")
Call = tuple[str, Arguments]


def drifting_brief(seed: int, items: int = ITEMS) -> str:
    """Return the instructions: one binding sentence for each item."""
    sentences = [f"Make item {n} as {drifting_file_path(n)}." for n in range(1, items + 1)]
    return f"Seed {seed}.\n\n" + "\n".join(f"- {sentence}" for sentence in sentences)


def even_drift_rates(rate: float) -> dict[str, float]:
    """Return equal rates for all drifts that add up to this rate."""
    return dict.fromkeys(DRIFTS, rate / len(DRIFTS))


def drifting_file_content(item: int) -> str:
    """Return the correct content of an item's file."""
    return f"Item {item}: {item * item}\n"


def count_correct_items(files: Mapping[str, str], items: int = ITEMS) -> int:
    """Count the items whose file has the right content."""
    return sum(
        files.get(drifting_file_path(n)) == drifting_file_content(n) for n in range(1, items + 1)
    )


def drifting_file_path(item: int) -> str:
    return f"output/item_{item:02d}.md"


@dataclass
class Drifting:
    """Works through its items and drifts. `Seed N.` in the instructions identifies a job.

    Args:
        rates: Probability of each drift per call.
    """

    rates: Mapping[str, float]
    items: int = ITEMS
    per_phase: int = PER_PHASE
    calls: dict[int, int] = field(default_factory=dict)
    """Requests by seed, without summaries."""

    def __post_init__(self) -> None:
        self._chance: dict[int, random.Random] = {}
        self._lock = threading.Lock()

    def __call__(self, request: Request) -> Reply:
        if not request.get("tools"):
            return Reply("The phase went as its todos say.")
        messages = request["messages"]
        # In a job the seed is in a phase's first message or, later on, in a part of it.
        match = _SEED.search(str(messages[:2]))
        seed = int(match.group(1)) if match else 0
        with self._lock:
            self.calls[seed] = self.calls.get(seed, 0) + 1
            chance = self._chance.setdefault(seed, random.Random(seed))
            drawn = chance.random()
        drift = self._drift(drawn)
        listed = str(messages[-1]["content"])
        header = _HEADER.search(listed)
        # Forced to call a tool, even this model does.
        if drift in SAYS and request.get("tool_choice") == "required":
            drift = None
        if repeated := self._stuck_reply(messages, drift):
            return repeated
        if header is None:
            return _drifting_loop_reply(messages, drift, self.items)
        if header.group(1) == "tactical":
            return _drifting_tactical_reply(listed, messages, drift, self.items)
        return _drifting_strategic_reply(listed, messages, drift, self)

    def _stuck_reply(self, messages: list[dict[str, Any]], drift: str | None) -> Reply | None:
        """Return the last call once more if the model begins to stick, or does since before.

        Words below the list wake it up.
        """
        if "sticks" not in self.rates or "\n\n" in str(messages[-1]["content"]):
            return None
        made = [message for message in messages if message.get("tool_calls")][-2:]
        calls = [each["tool_calls"][0]["function"] for each in made]
        if not calls or calls[-1]["name"] == "todo_write":
            return None
        if drift == "sticks" or (len(calls) == 2 and calls[0] == calls[1]):
            return Reply(calls=[(calls[-1]["name"], calls[-1]["arguments"])])
        return None

    def _drift(self, drawn: float) -> str | None:
        for name, rate in self.rates.items():
            if (drawn := drawn - rate) < 0:
                return name
        return None


def _astray_reply(
    drift: str | None, item: int, messages: list[dict[str, Any]], items: int
) -> Reply | None:
    """Return the drift's reply, if it does not depend on the kind of phase."""
    if drift in SAYS:
        return Reply(SAYS[drift].format(n=item))
    if drift == "malformed":
        return Reply(
            calls=[("write_file", f'{{"path": "{drifting_file_path(item)}", "content": "Item')]
        )
    if drift == "missing":
        return Reply(
            calls=[_drifting_finish_call([drifting_file_path(n) for n in range(1, items + 2)])]
        )
    if drift == "gives up":
        return Reply(calls=[("todo_rewind", {"issue": "This leads nowhere."})])
    if drift == "repeats":
        last = next((m for m in reversed(messages) if m.get("tool_calls")), None)
        if last is not None:
            function = last["tool_calls"][0]["function"]
            return Reply(calls=[(function["name"], function["arguments"])])
    return None


def _drifting_tactical_reply(
    listed: str, messages: list[dict[str, Any]], drift: str | None, items: int
) -> Reply:
    current = listed.partition("\n▶ ")[2].partition("\n")[0]
    done: Call = ("todo_complete", {"notes": "It is made."})
    named = _ITEM.search(current)
    item = int(named.group(1)) if named else _next_unmade_item(messages, items)
    if drift == "forbidden":
        return Reply(calls=[("write_file", {"path": "plan.md", "content": "Done."})])
    if drift == "ticks":
        return Reply(calls=[done])
    if stray := _astray_reply(drift, item, messages, items):
        return stray
    if named:
        return Reply(calls=[_drifting_write_call(item), done])
    # The list of an agent that makes no plan: its todos name no item.
    if item <= items:
        return Reply(calls=[_drifting_write_call(item)])
    if "job_complete" in current:
        return Reply(calls=[_drifting_finish_call(_drifting_file_paths(items))])
    return Reply(calls=[done])


def _next_unmade_item(messages: list[dict[str, Any]], items: int) -> int:
    """Return the first item that the conversation does not show as written."""
    shown = str([message.get("tool_calls") for message in messages])
    unmade = (n for n in range(1, items + 1) if drifting_file_path(n) not in shown)
    return next(unmade, items + 1)


def _drifting_strategic_reply(
    listed: str, messages: list[dict[str, Any]], drift: str | None, model: Drifting
) -> Reply:
    current, items = listed.partition("\n▶ ")[2].partition("\n")[0], model.items
    open_items = _drifting_open_items(str(messages[1]["content"]), items)
    results = " ".join(str(message["content"]) for message in _drifting_last_results(messages))
    if drift == "forbidden":
        return Reply(calls=[("make_tea", {})])
    if drift == "too few" and open_items:
        return Reply(calls=[_drifting_todos(open_items, 2, items), ("todo_complete", {})])
    if stray := _astray_reply(drift, min(open_items, default=items), messages, items):
        return stray
    done: Call = ("todo_complete", {"notes": ""})
    if not open_items:
        paths = _drifting_file_paths(items)
        if "forgets" in model.rates:
            # What is said to be missing is left out rather than made.
            paths = [path for path in paths if path not in results]
        return Reply(calls=[_drifting_finish_call(paths)])
    if "todo_write" in current or "job_complete" in current:
        if "Wrote" in results and "todos for" in results:
            return Reply(calls=[done])
        todos = _drifting_todos(open_items, model.per_phase - (drift == "forgets"), items)
        if "Error" in results:
            # The list was refused for what the plan leaves out.
            return Reply(calls=[_drifting_plan(items, model.per_phase), todos])
        return Reply(calls=[todos])
    if "plan.md" in current:
        plan = _drifting_plan(items, model.per_phase, leave_out=drift == "forgets")
        return Reply(calls=[plan, done])
    return Reply(calls=[done])


def _drifting_last_results(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the results of the last reply that made calls."""
    results: list[dict[str, Any]] = []
    for message in reversed(messages):
        if message["role"] == "tool":
            results.append(message)
        elif message.get("tool_calls"):
            break
    return results


def _drifting_loop_reply(messages: list[dict[str, Any]], drift: str | None, items: int) -> Reply:
    """Reply in a plain loop: make the next item that has no result, until all are made."""
    count = sum(
        str(message["content"]).startswith("Wrote")
        for message in messages
        if message["role"] == "tool"
    )
    if count >= items:
        return Reply("All items have been made.")
    if drift == "forbidden":
        return Reply(calls=[("make_tea", {})])
    if stray := _astray_reply(drift, count + 1, messages, items):
        return stray
    return Reply(calls=[_drifting_write_call(count + 1)])


def _drifting_write_call(item: int) -> Call:
    return (
        "write_file",
        {"path": drifting_file_path(item), "content": drifting_file_content(item)},
    )


def _drifting_file_paths(items: int) -> list[str]:
    return [drifting_file_path(n) for n in range(1, items + 1)]


def _drifting_open_items(opening: str, items: int) -> list[int]:
    """Return the numbers of the items that the first message of the phase calls open: the scope
    does, else the boxes of the plan; before there is one, all are.
    """
    if not _OWED.search(opening) and (boxes := _BOX.findall(opening)):
        return [int(number) for mark, number in boxes if mark == " "]
    if opening.startswith("The job begins.") and not _OWED.search(opening):
        return list(range(1, items + 1))
    return [
        number
        for first, count in _OPEN.findall(opening)
        for number in range(int(first), int(first) + int(count or 1))
    ]


def _drifting_todos(open_items: list[int], count: int, items: int) -> Call:
    numbers = open_items[:count]
    # A phase has at least five todos, but fewer items may be left.
    if count >= 5 and len(numbers) < 5:
        numbers = sorted({*numbers, *range(items, items - 5, -1)})
    todos = [
        {"id": place, "content": f"Make item {n} as {drifting_file_path(n)}."}
        for place, n in enumerate(numbers, 1)
    ]
    name = f"From item {numbers[0]}"
    return ("todo_write", {"phase": name, "description": "", "todos": todos})


def _drifting_plan(items: int, size: int, *, leave_out: bool = False) -> Call:
    """Return the call that writes the plan, without the last item of each phase if it is so."""
    lines = ["# Plan"]
    for first in range(1, items + 1, size):
        lines += ["", f"## Phase {first // size + 1}: Items", ""]
        numbers = range(first, first + size - leave_out)
        lines += [f"- [ ] {drifting_file_path(number)}" for number in numbers]
    return ("write_file", {"path": "plan.md", "content": "\n".join(lines) + "\n"})


def _drifting_finish_call(deliverables: list[str]) -> Call:
    arguments = {"summary": "All items.", "deliverables": deliverables, "confidence": 1.0}
    return ("job_complete", arguments)
