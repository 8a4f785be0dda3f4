"""Commands for learning: traces, guards."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import typer

from cli.options import Json
from cli.output import OK, UserError, print_json, print_note, print_result
from cli.root_access import run_with_root
from cli.schedules.service_schedules import set_service_schedule
from cli.temporal_errors import run_server_work
from config.schema.agent import ConfigError
from protocol.short_text import first_few
from protocol.trace_requests import TraceType

if TYPE_CHECKING:
    from activities.checkpoints import Root
    from activities.learning.learning_pass import LearnedGuardStatus

Action = Literal["list", "propose", "show", "promote", "retire"]
SCHEDULE = "longhaul-learning"
MOST_NAMES = 10
T = TypeVar("T")


def guards(
    action: Annotated[Action, typer.Argument(help="What to do.")] = "list",
    name: Annotated[str, typer.Argument(help="The guard, for show, promote, retire.")] = "",
    schedule: Annotated[
        str,
        typer.Option(
            help="Let workers propose guards at this interval, such as 6h; `off` ends it."
        ),
    ] = "",
    json: Json = False,
) -> int:
    """List learned guards with their stage and figures, or change them.

    `propose` looks for patterns in the traces and turns them into guards, which are first tried
    without blocking anything; `promote` activates a guard that is ready; `retire` disables one.
    Needs no server, except for --schedule.
    """
    from activities.learning.learning_pass import LearningPass  # noqa: PLC0415 - loads the activities

    if schedule:
        if action != "list" or name:
            raise UserError(
                f"guards {action}: goes without --schedule, which is a command by itself"
            )
        state = run_server_work(set_service_schedule(SCHEDULE, "Learning", schedule))
        print_json({"schedule": state}) if json else print_result(state)
        return OK
    if action in ("show", "promote", "retire") and not name:
        raise UserError(f"guards {action}: name the guard; `starter.py guards` lists them")
    if action in ("list", "propose") and name:
        raise UserError(
            f"guards {action}: takes no name; `starter.py guards show {name}` shows one"
        )
    lessons = run_with_root(LearningPass)
    messages: list[str] = []
    if action == "propose":
        messages = _run_guard_action(lessons.learn)
    elif action == "promote":
        messages = [_run_guard_action(lambda: lessons.promote_guard(name))]
    elif action == "retire":
        messages = [_run_guard_action(lambda: lessons.retire_guard(name))]
    elif action == "show":
        description = _run_guard_action(lambda: lessons.show_guard(name))
        print_json(description) if json else print_result(description["file"])
        return OK
    guard_states = _run_guard_action(lessons.guard_statuses)
    if json:
        listed = [{**now.learned.data(), "figures": now.figures.as_data()} for now in guard_states]
        print_json({"done": messages, "guards": listed})
        return OK
    for line in messages or _guard_lines(guard_states):
        print_result(line)
    if action == "propose" and not messages:
        print_note("no pattern is past its threshold that has no proposal yet")
    elif not messages and not guard_states:
        print_note("no guards were learned yet; `starter.py guards propose` looks for patterns")
    return OK


def _guard_lines(states: Sequence[LearnedGuardStatus]) -> list[str]:
    """Return a line for each guard in use or on trial, and one for the names of each other kind."""
    in_use = [now for now in states if now.learned.guard and now.learned.stage != "retired"]
    retired = [now.learned.name for now in states if now.learned.stage == "retired"]
    shown = {now.learned.name for now in in_use} | set(retired)
    prompts = [now.learned.name for now in states if now.learned.name not in shown]
    lines = [now.line for now in in_use]
    for names, kind in ((prompts, "proposed for prompts"), (retired, "retired")):
        if names:
            more = "`starter.py guards show NAME` shows one"
            lines.append(f"{len(names)} {kind}: {first_few(names, MOST_NAMES)}; {more}")
    return lines


def _run_guard_action(work: Callable[[], T]) -> T:
    try:
        return work()
    except ConfigError as problem:
        raise UserError(str(problem)) from None
    except OSError as error:
        # A guard's file cannot be written: the disk is full, or another user owns it.
        raise UserError(f"{error.filename or 'guards'}: {error.strerror or error}") from None


MOST = 1_000_000
"""Maximum number of traces listed; databases accept no larger number."""


def traces(
    query: Annotated[
        str, typer.Argument(help="A situation, in words; the newest traces if left out.")
    ] = "",
    job: Annotated[str, typer.Option(help="Only traces of this job.")] = "",
    type: Annotated[TraceType | None, typer.Option(help="Only traces of this type.")] = None,
    guard: Annotated[str, typer.Option(help="Only traces of this guard, gate or pattern.")] = "",
    level: Annotated[
        Literal["metadata", "summary", "full"], typer.Option(help="Level of detail.")
    ] = "summary",
    limit: Annotated[int, typer.Option(min=1, max=MOST, help="Maximum number.")] = 20,
    universal: Annotated[
        str,
        typer.Option(
            help="Let every project find the trace with this number.",
            metavar="NUMBER",
            show_default=False,
        ),
    ] = "",
    json: Json = False,
) -> int:
    """List what guards, gates and people refused or corrected in any job. Needs no server."""
    from activities.stores import stored_traces as rows  # noqa: PLC0415 - loads the activities
    from activities.stores.relational_store import RelationalStore  # noqa: PLC0415
    from activities.traces.trace_search import TraceSearchScope, find_traces  # noqa: PLC0415
    from activities.traces.trace_text import render_trace  # noqa: PLC0415

    number = _parse_trace_number(universal) if universal else None

    def fetch_rows(root: Root) -> list[Any]:
        store = RelationalStore(root)
        if number is not None:
            if not store.run(lambda c: rows.make_stored_trace_universal(c, number)):
                raise UserError(f"there is no trace {universal}; `starter.py traces` names them")
            return [store.read(lambda c: rows.find_trace(c, number))]
        only = {"job": job, "type": type or "", "guard": guard}
        if not query:
            return list(store.read(lambda c: rows.list_stored_traces(c, **only, limit=limit)))
        return find_traces(
            root,
            TraceSearchScope("", "", everything=True),
            query,
            limit,
            is_wanted=lambda row: all(v in ("", getattr(row, k)) for k, v in only.items()),
        )

    trace_rows = run_with_root(fetch_rows)
    if json:
        print_json([dict(row._mapping) for row in trace_rows])
        return OK
    for row in trace_rows:
        print_result(render_trace(row, level) + ("\n" if level == "full" else ""))
    if not trace_rows:
        print_note("no traces")
    return OK


def _parse_trace_number(text: str) -> int:
    """Parse the number of a trace, with or without the T."""
    if not re.fullmatch(r"T?[0-9]{1,18}", text):
        raise UserError(f"--universal {text}: expected the number of a trace, such as 96 or T96")
    return int(text.removeprefix("T"))
