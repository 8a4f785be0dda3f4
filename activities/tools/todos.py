"""Todo and job tools.

Whether one of these is allowed to take effect is decided in workflow code (`workflows.gates`);
what it records is done here, on the checkpoint.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from typing import Annotated

import yaml
from pydantic import AfterValidator, Field

from activities.checkpoints import FilesError, PathRefused
from activities.ending.check_commands import Checks
from activities.ending.done_when import NO_COMMANDS, checked, unmet
from activities.plan import TodosFile, boxes, parse_plan, parse_todos
from activities.toolkit.context import ToolContext
from activities.toolkit.equipment import has_tool
from activities.toolkit.errors import ToolError
from activities.toolkit.registry import tool
from protocol.state import Data, DoneWhen
from protocol.text import sentence


def _usable(condition: DoneWhen | None) -> DoneWhen | None:
    return condition and checked(condition)


MOST_UNRESOLVED_BYTES = 500_000
"""As JSON: the result of a job must fit into one payload."""
MOST_NAMED = 30


def _fitting(entries: list[str] | None) -> list[str] | None:
    size = len(json.dumps(entries, ensure_ascii=False).encode(errors="replace"))
    if size > MOST_UNRESOLVED_BYTES:
        raise ValueError(
            f"its entries have {size:,} bytes together, {MOST_UNRESOLVED_BYTES:,} are the most; "
            "say less in each and name a file that says the rest"
        )
    return entries


class NewTodo(Data):
    """An entry of `todo_write`."""

    id: int = Field(description="Number of the todo, unique in the list.")
    content: str = Field(min_length=1, max_length=500, description="One concrete step.")
    items: list[str] = Field(
        default_factory=list, description="Ids of the scope items it covers, if any."
    )
    done_when: Annotated[DoneWhen | None, AfterValidator(_usable)] = Field(
        None,
        description="What the system checks before the todo counts as done: file_exists (a path "
        "or pattern), matches with a path and an RE2 pattern, or, where run_command is one of the "
        "tools, command: one that must exit with 0.",
    )


@tool("todos", effect="writes", ends_reply=True)
def todo_complete(
    context: ToolContext,
    notes: Annotated[str, Field(max_length=4000, description="What came of it.")] = "",
) -> str:
    """Complete the current todo and go on to the next.

    Refused while its `done_when` does not hold. Completing the last todo ends the phase, if its
    gates agree.
    """
    todo = context.state.phase.current
    if todo is None:
        raise ToolError("There is no open todo.")
    checks = Checks(context.root, context.job, context.config)
    if why := unmet(context.files, todo.done_when, checks):
        raise ToolError(why)
    unnamed = [] if todo.items else context.state.covered_by(todo)
    context.state.complete_todo(todo.id, notes)
    following = context.state.phase.current
    remain = context.state.phase.open_count
    done = f"Completed todo {todo.id}: {sentence(todo.content)} "
    done += f"{remain} remain{'s' if remain == 1 else ''}."
    if unnamed:
        done += f" It names no scope item and counts for {unnamed[0]}."
    return done + (f" Next is todo {following.id}: {following.content}" if following else "")


@tool("todos", effect="writes", ends_reply=True)
def todo_rewind(
    context: ToolContext,
    issue: Annotated[str, Field(min_length=1, max_length=4000, description="What went wrong.")],
) -> str:
    """Give up this list and plan anew in the light of the issue; work done so far stays.

    The list is archived, and a strategic phase follows that revises the plan.
    """
    raise ToolError("todo_rewind was not accepted.")


@tool("todos", effect="writes", phases=("strategic",), ends_reply=True)
def todo_write(
    context: ToolContext,
    phase: Annotated[str, Field(min_length=1, max_length=200, description="Name of the phase.")],
    description: Annotated[str, Field(max_length=2000, description="Its objective.")],
    todos: list[NewTodo],
) -> str:
    """Hand over the todo list of the next phase by writing todos.yaml.

    The list is checked when the last todo of this phase is completed.
    """
    if not todos:
        raise ToolError("todos is empty. Hand over the concrete steps of the next phase.")
    entries = [todo.model_dump(exclude_defaults=True) for todo in todos]
    content = {"phase": phase, "description": description, "todos": entries}
    text = yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=100)
    context.files = context.files.write("todos.yaml", text.encode())
    wrote = f"Wrote {len(todos)} todo{'s' * (len(todos) != 1)} for {phase!r} to todos.yaml."
    wrong = "; ".join(_wrong(context, parse_todos(text.encode())))
    if not wrong:
        return wrote
    return f"{wrote} As things are, the phase cannot end with this list: {wrong}. Write it anew."


def _wrong(context: ToolContext, handed: TodosFile) -> Iterator[str]:
    """What the gate will refuse, said while the list is at hand; the gate itself says one thing
    at a time, at the end of the phase."""
    if handed.error:
        yield handed.error
        return
    limits, todos = context.config.limits, handed.todos
    if not limits.min_todos <= handed.count <= limits.max_todos:
        yield f"it has {handed.count} todos, {limits.min_todos} to {limits.max_todos} are needed"
    ids = Counter(todo.id for todo in todos)
    if ids.pop(None, 0):
        yield "ids are whole numbers under a million"
    if twice := [str(id) for id, times in ids.items() if times > 1]:
        yield f"ids are used twice: {', '.join(twice)}"
    if any(todo.content is None for todo in todos):
        yield "each content is a text with words"
    commands = any(todo.done_when and todo.done_when.command for todo in todos)
    if commands and not has_tool(context.config, "run_command"):
        yield f"done_when: {NO_COMMANDS}"
    known = {item.id for item in context.state.scope}
    if not any(item.original for item in context.state.scope):
        with suppress(FilesError, PathRefused):
            steps = boxes(parse_plan(context.files.read("plan.md").decode(errors="replace")))
            known |= {f"P{number}" for number in range(1, len(steps) + 1)}
    if unknown := sorted({item for todo in todos for item in todo.items} - known):
        there = sorted(known, key=lambda item: (item[:1], len(item), item))[:MOST_NAMED]
        yield (
            f"these items do not exist: {', '.join(unknown[:MOST_NAMED])} "
            f"(those of this job are: {', '.join(there) or 'none'})"
        )


@tool("job", effect="reads", ends_reply=True)
def request_clarification(
    context: ToolContext,
    question: Annotated[
        str, Field(min_length=1, max_length=2000, description="What only a person can know.")
    ],
    default: Annotated[
        str,
        Field(
            min_length=1, max_length=2000, description="What you do when nobody answers in time."
        ),
    ],
) -> str:
    """Ask a person, once in a job; the job waits for the answer.

    When nobody answers in time, the result is your default. A further question is answered at
    once: use your best judgement.
    """
    raise ToolError("request_clarification was not accepted.")


@tool("job", effect="writes", phases=("strategic",), ends_reply=True, local=False, seconds=120)
def job_complete(
    context: ToolContext,
    summary: Annotated[str, Field(min_length=1, max_length=20_000)],
    deliverables: Annotated[list[str], Field(max_length=200, description="Paths that exist.")],
    confidence: Annotated[float, Field(ge=0, le=1, description="From 0 to 1.")],
    notes: Annotated[str, Field(max_length=20_000)] = "",
    unresolved: Annotated[
        list[Annotated[str, Field(max_length=2000)]] | None,
        Field(
            max_length=200,
            description="What is left open: an entry for each open scope item (by id) and each "
            'open phase ("Phase 2"), with the reason.',
        ),
        AfterValidator(_fitting),
    ] = None,
) -> str:
    """End the job with its result.

    Refused while a deliverable is missing or empty, a phase of the plan is open, or a scope item
    is. After a rewind was tried, what is open may be listed in `unresolved` with the reason.
    """
    raise ToolError("job_complete was not accepted.")
