"""Todo and job tools.

Workflow code decides whether these calls may take effect (`workflows.rules.gates`); the tools
record the effect on the checkpoint.
"""

import json
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import Annotated

import yaml
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from activities.checkpoints import FilesError, PathRefused
from activities.commands.check_commands import CheckRunner
from activities.job.done_when import NO_COMMANDS, check_done_when, unmet_condition_reason
from activities.job.plan_and_todo_files import (
    PlanPhase,
    TodosFile,
    changed_todo_files,
    parse_agent_todo_file,
    parse_plan,
    plan_step_texts,
    with_settled_plan,
)
from activities.job.statement_checks import holds_statements
from activities.toolkit.agent_tools import agent_has_tool
from activities.toolkit.registry import tool
from activities.toolkit.tool_context import ToolContext
from activities.toolkit.tool_errors import ToolError
from protocol.phase import fewest_todos_after_phase
from protocol.scope_ledger import sync_plan_steps
from protocol.short_text import count_noun, first_few
from protocol.todo_list import DoneWhen, todo_list_problems

DONE_WHEN = (
    '{"file_exists": "output/a*.md"}, {"matches": {"path": "output/a.md", "pattern": "RE2"}}, '
    '{"valid": {"path": "a.json", "schema": {}}}, {"command": "make test"}'
)
FORMS = (
    "What the system checks before it counts, one of file_exists (path or pattern), matches "
    "(path, pattern in RE2), valid (path, schema) or command."
)
"""`DONE_WHEN` for the model's tools, without examples: small models call tools with these."""


def _check_todo_condition(condition: DoneWhen | None) -> DoneWhen | None:
    return condition and check_done_when(condition)


def _check_todo_condition_form(value: object) -> object:
    if value is None or isinstance(value, dict | DoneWhen):
        return value
    raise ValueError(f"expected an object of the form {DONE_WHEN}")


PASSED_OVER = (
    "Passed over todo {id}, which is not ticked: {path} has not changed in this phase. It is "
    "ticked if you still change it. {remain} remain."
)
MAX_UNRESOLVED_BYTES = 500_000
"""Size as JSON: a job's result must fit into one payload."""
MAX_NAMED = 30


def _check_unresolved_size(entries: list[str] | None) -> list[str] | None:
    size = len(json.dumps(entries, ensure_ascii=False).encode(errors="replace"))
    if size > MAX_UNRESOLVED_BYTES:
        raise ValueError(
            f"its entries have {size:,} bytes together, {MAX_UNRESOLVED_BYTES:,} are the most; "
            "say less in each and name a file that says the rest"
        )
    return entries


ItemId = Annotated[str, Field(max_length=100)]
Deliverable = Annotated[str, Field(max_length=1000)]


class NewTodo(BaseModel):
    """An entry of `todo_write`. Unknown fields, such as a status, are ignored."""

    model_config = ConfigDict(extra="ignore")

    content: str = Field(min_length=1, max_length=500, description="One concrete step.")
    id: int | None = Field(None, description="Its number; the place in the list if left out.")
    items: list[ItemId] = Field(
        default_factory=list, max_length=500, description="Ids of the scope items it covers."
    )
    done_when: Annotated[
        DoneWhen | None,
        AfterValidator(_check_todo_condition),
        BeforeValidator(_check_todo_condition_form),
        WithJsonSchema({"type": "object"}),
    ] = Field(None, description=FORMS)


NO_WORK = (
    " By itself it shows nothing for {items}: nothing was changed, and the notes name nothing that "
    "was read. It may count with its list."
)


@tool("todos", effect="writes", owns=("plan.md",))
def todo_complete(
    context: ToolContext,
    notes: Annotated[str, Field(max_length=4000, description="What came of it.")] = "",
) -> str:
    """Complete the current todo; completing the last one ends the phase.

    Refused while its `done_when` does not hold. Not counted where an earlier call of the same
    reply failed: it was written without knowing that. The steps of `plan.md` that it names in
    `items` are ticked with it, the others with the whole list.
    """
    todo = context.state.phase.current
    if todo is None:
        raise ToolError("There is no open todo.")
    checks = CheckRunner(context.root, context.job, context.config)
    if why := unmet_condition_reason(context.files, todo.done_when, checks):
        raise ToolError(why)
    covered = context.state.covered_by(todo)
    done = not todo.updates or todo.updates in changed_todo_files(
        context.changes, context.state.phase
    )
    was_seen = context.state.complete_todo(
        todo.id,
        notes,
        commit=context.commit,
        held=todo.done_when.line if todo.done_when else "",
        done=done,
        holds=partial(holds_statements, context.files),
    )
    context.files, _ = with_settled_plan(context.files, context.state.scope)
    following = context.state.phase.current
    remain = context.state.phase.open_count
    text = f"Completed todo {todo.id}; {remain} remain{'s' if remain == 1 else ''}."
    if not done:
        text = PASSED_OVER.format(id=todo.id, path=todo.updates, remain=remain)
    completed = [i.id for i in context.state.scope if i.id in covered and i.status == "completed"]
    if covered and not todo.items and completed:
        text += f" It names no scope item and counts for {covered[0]}."
    elif not was_seen and (open_ids := [i.id for i in context.state.open_scope if i.id in covered]):
        text += NO_WORK.format(items=first_few(open_ids, MAX_NAMED))
    return text + (f" Next is todo {following.id}." if following else "")


@tool("todos", effect="writes")
def todo_rewind(
    context: ToolContext,
    issue: Annotated[str, Field(min_length=1, max_length=4000, description="What went wrong.")],
) -> str:
    """Give up this list and plan anew in the light of the issue; work done so far stays.

    The list is archived, and a strategic phase follows that revises the plan.
    """
    raise ToolError("todo_rewind was not accepted.")


@tool("todos", effect="writes", phases=("strategic",))
def todo_write(
    context: ToolContext,
    phase: Annotated[str, Field(min_length=1, max_length=200, description="Name of the phase.")],
    description: Annotated[str, Field(max_length=2000, description="Its objective.")],
    todos: Annotated[list[NewTodo], Field(max_length=200)],
) -> str:
    """Hand over the todo list of the next phase, which ends this one with what else is done.

    It is written to todos.yaml; written again, it replaces the one before. A list that will not do
    is refused with what is wrong with it. The phase ends with the reply in which the list was
    accepted and every other todo is completed, or shown done by a change of its file.
    """
    if not todos:
        raise ToolError("todos is empty. Hand over the concrete steps of the next phase.")
    entries = [
        {"id": number if todo.id is None else todo.id}
        | todo.model_dump(exclude_defaults=True, exclude={"id"})
        for number, todo in enumerate(todos, 1)
    ]
    content = {"phase": phase, "description": description, "todos": entries}
    text = yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=100)
    if wrong := "; ".join(_todo_list_problems(context, parse_agent_todo_file(text.encode()))):
        raise ToolError(f"The list is not accepted: {wrong}. Write it anew.")
    context.files = context.files.write("todos.yaml", text.encode())
    return f"Wrote {count_noun(len(todos), 'todo')} for {phase!r} to todos.yaml."


def _todo_list_problems(context: ToolContext, handed: TodosFile) -> Iterator[str]:
    if handed.error:
        yield handed.error
        return
    limits, todos = context.config.limits, handed.todos
    plan = _todo_plan_phases(context)
    open_phases = sum(phase.is_open for phase in plan) if plan else 2
    least = fewest_todos_after_phase(
        context.state.phase.purpose, len(plan) or 2, open_phases, limits.min_todos
    )
    yield from todo_list_problems(todos, handed.count, least, limits.max_todos)
    commands = any(todo.done_when and todo.done_when.command for todo in todos)
    if commands and not agent_has_tool(context.config, "run_command"):
        yield f"done_when: {NO_COMMANDS}"
    scope = sync_plan_steps(context.state.scope, plan_step_texts(plan))
    known = {item.id for item in scope}
    if unknown := sorted({item for todo in todos for item in todo.items} - known):
        shown = sorted(known, key=lambda item: (item[:1], len(item), item))[:MAX_NAMED]
        yield (
            f"these items do not exist: {', '.join(unknown[:MAX_NAMED])} "
            f"(those of this job are: {', '.join(shown) or 'none'})"
        )


def _todo_plan_phases(context: ToolContext) -> list[PlanPhase]:
    with suppress(FilesError, PathRefused):
        return parse_plan(context.files.read("plan.md").decode(errors="replace"))
    return []


@tool("job", effect="reads")
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


@tool("job", effect="writes", phases=("strategic",), local=False, seconds=120)
def job_complete(
    context: ToolContext,
    summary: Annotated[str, Field(min_length=1, max_length=20_000)],
    deliverables: Annotated[
        list[Deliverable], Field(max_length=200, description="Paths that exist.")
    ],
    confidence: Annotated[float, Field(ge=0, le=1, description="From 0 to 1.")],
    notes: Annotated[str, Field(max_length=20_000)] = "",
    unresolved: Annotated[
        list[Annotated[str, Field(max_length=2000)]] | None,
        Field(
            max_length=200,
            description="What is left undone: an entry for each scope item (by id) and each phase "
            "(by number) whose work is not done, with the reason.",
        ),
        AfterValidator(_check_unresolved_size),
    ] = None,
) -> str:
    """End the job with its result.

    Refused while a deliverable is missing or empty, a phase of the plan is open, or a scope item
    is. After a rewind was tried, what is open may be listed in `unresolved` with the reason.
    """
    raise ToolError("job_complete was not accepted.")
