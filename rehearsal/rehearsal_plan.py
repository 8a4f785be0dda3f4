"""Writes and parses the rehearsal model's plan."""

import re
from dataclasses import dataclass, field
from typing import Any

_HEADING = re.compile(r"^##\s+Phase\s+\d+\s*[:.-]\s*(.+?)\s*$", re.IGNORECASE)
_BOX = re.compile(r"^- \[([ xX])\] (.+)$")


@dataclass
class RehearsalPlanPhase:
    name: str
    objective: str
    steps: list[str] = field(default_factory=list)
    done: bool = False

    @property
    def boxes(self) -> str:
        """The steps as lines with boxes."""
        return "\n".join(f"- [{'x' if self.done else ' '}] {step}" for step in self.steps)


@dataclass
class RehearsalPlan:
    """The text before the first phase, and the phases."""

    head: str
    phases: list[RehearsalPlanPhase] = field(default_factory=list)

    @property
    def open_phase(self) -> RehearsalPlanPhase | None:
        return next((phase for phase in self.phases if phase.steps and not phase.done), None)

    @property
    def text(self) -> str:
        parts = [self.head.strip()]
        for number, phase in enumerate(self.phases, 1):
            parts += [f"## Phase {number}: {phase.name}", phase.objective, phase.boxes]
        return "\n\n".join(part for part in parts if part) + "\n"


def parse_rehearsal_plan(lines: list[str]) -> RehearsalPlan:
    """Parse a plan; a phase is done if all of its boxes are ticked."""
    plan = RehearsalPlan("")
    head: list[str] = []
    ticks: list[list[bool]] = []
    for line in lines:
        if heading := _HEADING.match(line):
            plan.phases.append(RehearsalPlanPhase(heading.group(1), ""))
            ticks.append([])
        elif not plan.phases:
            head.append(line)
        elif box := _BOX.match(line):
            plan.phases[-1].steps.append(box.group(2))
            ticks[-1].append(box.group(1) != " ")
        elif line.strip():
            phase = plan.phases[-1]
            phase.objective = f"{phase.objective}\n{line}".strip()
    plan.head = "\n".join(head)
    for phase, marks in zip(plan.phases, ticks, strict=True):
        phase.done = bool(marks) and all(marks)
    return plan


def fit_steps_to_todo_limits(steps: list[str], fewest: int, most: int, name: str) -> list[str]:
    """Fit steps into a todo list's limits: join neighbours if too many, else add fillers."""
    todos = list(steps)
    while len(todos) > most:
        shortest = min(range(len(todos) - 1), key=lambda n: len(todos[n]) + len(todos[n + 1]))
        todos[shortest : shortest + 2] = [f"{todos[shortest]}; then: {todos[shortest + 1]}"]
    slug = rehearsed_plan_slug(name)
    fillers = [
        f"Note in `notes/{slug}_sources.md` which files this phase used",
        f"Note in `notes/{slug}_decisions.md` what was decided and why",
        f"Note in `notes/{slug}_questions.md` what is left open",
        f"Note in `notes/{slug}_terms.md` the terms that this phase relies on",
        f"Note in `notes/{slug}_check.md` whether the phase met its objective",
    ]
    missing = max(0, fewest - len(todos))
    todos += fillers[:missing]
    todos += [
        f"Note in `notes/{slug}_{n}.md` what else was seen" for n in range(missing - len(fillers))
    ]
    return todos


def assign_rehearsed_plan_items(
    todos: list[dict[str, Any]], items: dict[str, str], *, last: bool
) -> None:
    """Add the scope items that each todo carries out.

    Args:
        todos: Todos of the list to hand over; changed in place.
        items: Text by id.
        last: Whether this is the last list; items that no todo mentions are then distributed too.
    """
    texts = [_rehearsed_plan_todo_letters(todo["content"]) for todo in todos]
    for number, (item, text) in enumerate(items.items()):
        sought = _rehearsed_plan_todo_letters(text)[:60]
        named = [place for place, content in enumerate(texts) if sought and sought in content]
        if not named and last:
            named = [number % len(todos)]
        for place in named:
            todos[place].setdefault("items", []).append(item)


def _rehearsed_plan_todo_letters(text: str) -> str:
    return "".join(char for char in text.lower() if char.isalnum())


def place_rehearsed_items(plan: RehearsalPlan, items: dict[str, str]) -> None:
    """Name the scope items in the phase that does the work: the longest of those that write."""
    writing = [phase for phase in plan.phases if any("output/" in step for step in phase.steps)]
    if items and plan.phases:
        phase = max(writing or plan.phases, key=lambda phase: len(phase.steps))
        phase.objective = f"{phase.objective} Covers {', '.join(items)}.".strip()


def rehearsed_plan_slug(text: str) -> str:
    """Return a short file name for a text."""
    words = re.findall(r"[a-z0-9]+", text.lower())
    return "_".join(words[:5])[:40] or "part"
