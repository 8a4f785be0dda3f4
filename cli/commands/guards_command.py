"""Commands for learning: traces, guards."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

import typer

from cli.options import Json
from cli.output import OK, UserError, print_json, print_note, print_result
from cli.root_access import run_with_root
from cli.schedules.service_schedules import set_service_schedule
from cli.temporal_errors import run_server_work
from config.schema.agent import ConfigError

if TYPE_CHECKING:
    pass

Action = Literal["list", "propose", "show", "promote", "retire"]
SCHEDULE = "longhaul-learning"
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
    for line in messages or [now.line for now in guard_states]:
        print_result(line)
    if action == "propose" and not messages:
        print_note("no pattern is past its threshold that has no proposal yet")
    elif not messages and not guard_states:
        print_note("no guards were learned yet; `starter.py guards propose` looks for patterns")
    return OK


def _run_guard_action(work: Callable[[], T]) -> T:
    try:
        return work()
    except ConfigError as problem:
        raise UserError(str(problem)) from None
    except OSError as error:
        # A guard's file cannot be written: the disk is full, or another user owns it.
        raise UserError(f"{error.filename or 'guards'}: {error.strerror or error}") from None
