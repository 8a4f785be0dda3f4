"""Read what the agent writes for the system, `plan.md` and `todos.yaml`, and what todos update."""

import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal

import yaml

from activities.checkpoints import Files, FilesError, PathRefused, parse_path
from activities.job.done_when import read_done_when
from activities.text.safe_text import replace_surrogates
from config.yaml_files import YAML
from protocol.phase import Phase
from protocol.scope_ledger import STEP_CHARACTERS, Box, ScopeItem, expand_item_ids
from protocol.short_text import one_line
from protocol.todo_list import DoneWhen, TodoEntry

_HEADING = re.compile(r"^##\s\W*Phase\s+(\d{1,6})(?!\w)(.*)$", re.IGNORECASE)
# Text allowed between a phase's number and its name: `2/4 (done) [begun] **:`.
_BEFORE_NAME = re.compile(r"^(?:\s*/\s*\d+)?(?:\s*(?:\([^)]*\)|\[[^\]]*\]))*[\s*:.)\-–—]*")  # noqa: RUF001
_OTHER_HEADING = re.compile(r"^#{1,2}\s")
_MEANS_PHASE = re.compile(r"\bphases?\b", re.IGNORECASE)
_FENCE = re.compile(r"^\s*```+[^`]*$")
# Lines have no trailing white space, over which these patterns would backtrack.
_BOX = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+\[([xX]|[^\w\]])?\]\s+(.*\S)")
_MARK = re.compile(r"\[([xX]|[^\w\]])?\]")
_TICKS = frozenset("xX✓✔✗")
"""Marks of a box that is no longer open; the system marks a dropped step with `✗`."""
_ITEM = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+(?:\[[ xX]\]\s+)?(.*\S)")
BOM = "\ufeff"
"""Byte order mark that some editors put before a text, and so before its first heading."""
MAX_CONTENT = 500
MAX_FOUND = 101
MAX_BYTES = 100_000
"""Largest `todos.yaml`: a hundred long todos fit, and the parser takes a second for it."""


@dataclass
class PlanPhase:
    """One phase of `plan.md`; open while one of its boxes is open."""

    number: int
    name: str
    line: int = 0
    boxes: list[Box] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)

    @property
    def label(self) -> str:
        return f"Phase {self.number}: {self.name}"[:120]

    @property
    def is_open(self) -> bool:
        return any(not ticked for ticked, _ in self.boxes)


def parse_plan(text: str) -> list[PlanPhase]:
    return _read_plan_phases(text)[0]


def unread_plan_headings(text: str) -> list[str]:
    return _read_plan_phases(text)[1]


def _read_plan_phases(text: str) -> tuple[list[PlanPhase], list[str]]:
    phases: list[PlanPhase] = []
    unread: list[str] = []
    under: str | None = None
    inside = fenced = False
    lines = [line.rstrip() for line in text.removeprefix(BOM).splitlines()]
    # The last of an odd number of fences is never closed, so the text after it belongs to the plan.
    fences = sum(map(bool, map(_FENCE.match, lines))) // 2 * 2
    for number, line in enumerate(lines):
        if fences and _FENCE.match(line):
            fenced = not fenced
            fences -= 1
        elif fenced:
            continue
        elif heading := _HEADING.match(line.rstrip(" \t*#")):
            phase = int(heading.group(1))
            name = _BEFORE_NAME.sub("", heading.group(2), count=1)
            phases.append(PlanPhase(phase, name or f"Phase {phase}", number))
            inside = True
        elif _OTHER_HEADING.match(line):
            inside = False
            under = line if _MEANS_PHASE.search(line) else None
        elif box := _BOX.match(line):
            ticked = box.group(1) is not None and box.group(1) in _TICKS
            if inside:
                phases[-1].boxes.append((ticked, replace_surrogates(box.group(2))))
                phases[-1].lines.append(number)
            elif under and not ticked:
                unread.append(under)
                under = None
    return phases, unread


def plan_boxes(phases: Iterable[PlanPhase]) -> list[Box]:
    return [box for phase in phases for box in phase.boxes]


def plan_step_texts(phases: Iterable[PlanPhase]) -> list[tuple[int, str]]:
    return [(place, text) for place, phase in enumerate(phases, 1) for _, text in phase.boxes]


def settle_plan_boxes(text: str, items: Iterable[ScopeItem]) -> tuple[str, list[str]]:
    """Return the plan with its boxes as the ledger has them, and the texts of those unticked.

    A box of a completed step is ticked, one of a dropped step marked with `✗`, and any other open,
    whoever ticked it. Of boxes with the same text, one is ticked for each completed step.
    """
    marks: dict[str, list[str]] = {}
    for item in items:
        if item.is_step and item.status != "open":
            mark = "x" if item.status == "completed" else "✗"
            marks.setdefault(item.text, []).append(mark)
    lines, unticked = text.splitlines(keepends=True), []
    for phase in parse_plan(text):
        for (ticked, box), number in zip(phase.boxes, phase.lines, strict=True):
            due = marks.get(one_line(box, STEP_CHARACTERS))
            mark = due.pop(0) if due else " "
            if ticked and mark == " ":
                unticked.append(box)
            if ticked != (mark != " "):
                lines[number] = _MARK.sub(f"[{mark}]", lines[number], count=1)
    return "".join(lines), unticked


def with_settled_plan(files: Files, scope: Iterable[ScopeItem]) -> tuple[Files, list[str]]:
    with suppress(FilesError, PathRefused):
        text = files.read("plan.md").decode(errors="replace")
        settled, unticked = settle_plan_boxes(text, scope)
        if settled != text:
            return files.write("plan.md", settled.encode()), unticked
    return files, []


def plan_section(text: str, place: int) -> str:
    phases = parse_plan(text)
    if not 0 < place <= len(phases):
        return ""
    lines, start = text.removeprefix(BOM).splitlines(), phases[place - 1].line
    following = (n for n in range(start + 1, len(lines)) if _OTHER_HEADING.match(lines[n]))
    return "\n".join(lines[start : next(following, len(lines))]).strip()


def list_under_heading(text: str, heading: str) -> list[str]:
    """Return the list items under a Markdown heading of that name, without bullets."""
    items: list[str] = []
    inside = False
    for line in text.removeprefix(BOM).splitlines():
        if line.startswith("#"):
            inside = line.strip("# :*_").lower() == heading.lower()
        elif inside and (item := _ITEM.match(line.rstrip())):
            items.append(item.group(1))
    return items


@dataclass
class TodosFile:
    """The content of `todos.yaml`, bounded; the gate decides whether it is accepted."""

    status: Literal["missing", "invalid", "read"] = "missing"
    error: str = ""
    phase: str = ""
    description: str = ""
    count: int = 0
    todos: list[TodoEntry] = field(default_factory=list)


def parse_agent_todo_file(data: bytes | None) -> TodosFile:
    if data is None:
        return TodosFile()
    if len(data) > MAX_BYTES:
        return TodosFile("invalid", f"it has {len(data):,} bytes, more than {MAX_BYTES:,}")
    try:
        content = yaml.load(data.decode(), _TodoFileLoader)
    # The parser may raise anything: ValueError for a date in month 13, KeyError for `!!bool x`.
    except Exception as error:
        return TodosFile("invalid", f"it is not valid YAML ({_todo_file_line(str(error), 200)})")
    if not isinstance(content, dict) or not isinstance(content.get("todos"), list):
        return TodosFile("invalid", "it has no list under the key todos")
    entries = content["todos"]
    return TodosFile(
        "read",
        phase=_todo_file_text(content.get("phase"), 200) or "",
        description=_todo_file_text(content.get("description"), 2000) or "",
        count=len(entries),
        todos=[_read_todo_file_entry(entry) for entry in entries[:MAX_FOUND]],
    )


class _TodoFileLoader(yaml.SafeLoader):
    """YAML without aliases, a few lines of which can expand to gigabytes."""

    yaml_implicit_resolvers = YAML.yaml_implicit_resolvers

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("aliases (*name) are not taken here")
        return super().compose_node(parent, index)


def _read_todo_file_entry(entry: Any) -> TodoEntry:
    if not isinstance(entry, dict):
        return TodoEntry()
    number = entry.get("id")
    items = entry.get("items") or []
    if not isinstance(items, list):
        items = [items]
    condition, problem = _read_todo_file_condition(entry.get("done_when"))
    return TodoEntry(
        done_when=condition,
        done_when_error=problem,
        id=number if type(number) is int and abs(number) < 1_000_000 else None,
        content=_todo_file_text(entry.get("content"), MAX_CONTENT),
        items=[name for item in items[:50] for name in _todo_item_names(item)],
    )


def _todo_item_names(item: Any) -> list[str]:
    text = _todo_file_line(str(item), 100)
    return expand_item_ids(text) or [text]


def _read_todo_file_condition(value: Any) -> tuple[DoneWhen | None, str | None]:
    if value is None:
        return None, None
    try:
        return read_done_when(value), None
    except ValueError as problem:
        return None, _todo_file_line(str(problem), 300)


def _todo_file_text(value: Any, limit: int) -> str | None:
    if not isinstance(value, str) or not value.strip():
        return None
    return _todo_file_line(value, limit)


def _todo_file_line(text: str, limit: int) -> str:
    """Return the text on one line: a todo of several could pass for several todos."""
    return one_line(replace_surrogates(text), limit)


def changed_todo_files(changes: Files, phase: Phase) -> list[str]:
    paths = dict.fromkeys(todo.updates for todo in phase.todos if todo.updates)
    return [path for path in paths if _step_that_changed_file(changes, path) > phase.since]


def _step_that_changed_file(changes: Files, path: str) -> int:
    raw = changes.tree_entry(parse_path(path))
    return int(changes.store.read(raw.id)) if raw else 0
