"""A model that calls random tools that a job offers, up to 32 calls a reply, and reaches the end.

It sees only its requests and keeps no memory: the same request gets the same reply. Most of its
calls are wrong. In a long phase, and late in the job, it does the right thing.
"""

import json
import random
import re
from dataclasses import dataclass
from typing import Any

from rehearsal.wire import Arguments, Reply, Request

Call = tuple[str, Arguments]
MOST_CALLS = 32
LONG = 40
"""Messages in a phase after which it does the right thing."""
LATE = 9
"""The phase from which on it does the right thing."""
_HEADER = re.compile(r"Todo list · (strategic|tactical) phase (\d+)")
_OPEN = re.compile(r"^[▶☐] ", re.MULTILINE)
_OWED = re.compile(r"^- ([SBAP]\d+) \(open\): ", re.MULTILINE)
_OF_SCOPE = re.compile(r"open: (.*)")
_ITEM = re.compile(r"\b[SBPA]\d+\b")
DONE: Call = ("todo_complete", {"notes": "so it is"})
PATHS = (
    "output/a.md",
    "output/b.md",
    "output/summary.md",
    "notes/n.md",
    "workspace.md",
    "plan.md",
    "todos.yaml",
    "archive/mine.md",
    "instructions.md",
    "../out.md",
)


@dataclass(frozen=True)
class Babble:
    """The model.

    Args:
        seed: What it says depends on this and on the request.
    """

    seed: int

    def __call__(self, request: Request) -> Reply:
        if not request.get("tools"):
            return Reply("So it went.")
        messages = request["messages"]
        last = str(messages[-1]["content"])
        header = _HEADER.search(last)
        kind, number = header.groups() if header else ("strategic", "1")
        chance = random.Random(f"{self.seed} {json.dumps(messages, sort_keys=True)}")
        if int(number) >= LATE or len(messages) > LONG:
            return Reply(calls=_does_right(kind, last, messages, chance))
        if chance.random() < 0.05:
            return Reply(chance.choice(["Shall I go on?", "All is done.", "I have looked."]))
        most = chance.choice([1, 3, 8, MOST_CALLS])
        calls = [_anything(kind, last, chance) for _ in range(chance.randint(1, most))]
        if kind == "strategic" and chance.random() < 0.4:
            # Sometimes all that the phase needs, mixed with other calls.
            for call in _phase_at_once(chance):
                calls.insert(chance.randint(0, len(calls)), call)
        return Reply(calls=calls[:MOST_CALLS])


def _anything(kind: str, last: str, chance: random.Random) -> Call:
    path = chance.choice(PATHS)
    text = f"# {path}\n\n{chance.randint(1, 99)}\n"
    items = _ITEM.findall(last) or ["P1"]
    menu: list[tuple[int, Call]] = [
        (6, ("write_file", {"path": path, "content": text})),
        (2, ("append_file", {"path": path, "content": text})),
        (2, ("edit_file", {"path": path, "old": "#", "new": "##"})),
        (3, ("read_file", {"path": path})),
        (1, ("list_files", {})),
        (1, ("search_files", {"query": "tea"})),
        (1, ("delete_file", {"path": chance.choice(PATHS[:7])})),
        (1, ("move_file", {"old": "output/a.md", "new": chance.choice(PATHS[:7])})),
        (1, ("crystal_ball", {"question": "?"})),
        (1, ("read_file", '{"path": "instru')),
        (12 if kind == "tactical" else 4, DONE),
        (1, ("todo_rewind", {"issue": f"All wrong: {chance.randint(1, 9)}."})),
        (4, _plan(chance)),
        (2, _hand_over(chance, items)),
        (1, ("add_item", {"text": f"Also {chance.randint(1, 99)}"})),
        (1, ("drop_item", {"ids": [chance.choice(items)], "reason": "Nobody wants it here."})),
        (2, _finish(chance.choice([["output/a.md"], ["output/none.md"], []]))),
        (1, ("request_clarification", {"question": "Which tea?", "default": "Black."})),
    ]
    [call] = chance.choices([call for _, call in menu], [weight for weight, _ in menu])
    return call


def _phase_at_once(chance: random.Random) -> list[Call]:
    note = f"# Workspace\n\nThe {chance.randint(1, 99)}th.\n"
    return [
        ("write_file", {"path": "workspace.md", "content": note}),
        _plan(chance),
        _hand_over(chance, ["P1"]),
    ]


def _plan(chance: random.Random, *, done: bool = False) -> Call:
    lines = ["# Plan", ""]
    for phase in (1, 2):
        lines += [f"## Phase {phase}: Part {phase}", ""]
        for step in (1, 2):
            box = "x" if done or chance.random() < 0.3 else " "
            lines.append(f"- [{box}] Step {phase}.{step}")
        lines.append("")
    return ("write_file", {"path": "plan.md", "content": "\n".join(lines)})


def _hand_over(chance: random.Random, items: list[str]) -> Call:
    todos: list[dict[str, Any]] = []
    for number in range(1, chance.randint(1, 4)):
        todo: dict[str, Any] = {"content": f"Do {number}"}
        if chance.random() < 0.3:
            todo["items"] = [chance.choice(items)]
        if chance.random() < 0.2:
            todo["done_when"] = {"file_exists": "output/a.md"}
        todos.append(todo)
    return ("todo_write", {"phase": "Some", "description": "", "todos": todos})


def _finish(deliverables: list[str]) -> Call:
    claim = {"summary": "Done.", "deliverables": deliverables, "confidence": 0.5}
    return ("job_complete", {**claim, "unresolved": ["Phase 1: it could not be done in this way."]})


def _does_right(
    kind: str, last: str, messages: list[dict[str, Any]], chance: random.Random
) -> list[Call]:
    write_call: Call = ("write_file", {"path": "output/a.md", "content": f"{chance.random()}\n"})
    if kind == "tactical":
        return [write_call, *[DONE] * min(len(_OPEN.findall(last)), MOST_CALLS - 1)]
    said = [str(message.get("content")) for message in messages]
    owed = [] if any(text.startswith("Dropped ") for text in said) else _OWED.findall(said[1])
    drops: list[Call] = [
        ("drop_item", {"ids": owed, "reason": "Nobody wants it in the end."})
    ] * bool(owed)
    shown = said[1].partition("\n# plan.md")[2]
    if "- [ ] " in shown and "todos.yaml" not in said[-2]:
        note = ("write_file", {"path": "workspace.md", "content": f"{chance.random()}\n"})
        todos = [{"content": "Do what is left", "items": owed}]
        listed = ("todo_write", {"phase": "Rest", "description": "", "todos": todos})
        has_phase = "\n## Phase " in shown.partition("\n# archive")[0]
        touched = _touched_plan(said) if has_phase else _plan(chance)
        return [note, touched, listed, DONE, DONE]
    return [write_call, *drops, _finish(["output/a.md"])]


def _touched_plan(said: list[str]) -> Call:
    """Return an edit of the plan that changes no box."""
    return ("append_file", {"path": "plan.md", "content": f"\nAfter {len(said)} messages.\n"})
