"""Commands on schedules that start jobs or projects repeatedly."""

from dataclasses import asdict
from typing import Annotated

import typer

from cli import output
from cli.options import Json
from cli.output import OK, print_json, print_note, print_result
from cli.schedules import recurring_starts
from cli.temporal_errors import run_server_work

schedules = typer.Typer(
    help="List, pause, resume and remove what `--every` starts again and again.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)
COLUMNS = ("schedule", "starts", "every", "state", "next", "last")
ScheduleId = Annotated[str, typer.Argument(help="Id of the schedule.", metavar="SCHEDULE")]


@schedules.command("list")
def list_schedules(json: Json = False) -> int:
    """List the schedules: what each starts, how often, when next, and its newest job."""
    entries = run_server_work(recurring_starts.list_recurring_starts())
    if json:
        print_json([asdict(entry) for entry in entries])
        return OK
    for line in output.render_text_table([asdict(entry) for entry in entries], COLUMNS):
        print_result(line)
    if not entries:
        print_note("no schedules; `starter.py start AGENT … --every 1d` makes one")
    return OK


@schedules.command("pause")
def pause_schedule(schedule: ScheduleId, json: Json = False) -> int:
    """Start no more jobs until `resume`; a running one continues."""
    return _change_schedule("pause", schedule, "paused", json=json)


@schedules.command("resume")
def resume_schedule(schedule: ScheduleId, json: Json = False) -> int:
    """Start jobs again, at the next due time."""
    return _change_schedule("unpause", schedule, "active", json=json)


@schedules.command("trigger")
def trigger_schedule(schedule: ScheduleId, json: Json = False) -> int:
    """Start a job now, unless the previous one is still running."""
    return _change_schedule("trigger", schedule, "triggered", json=json)


@schedules.command("remove")
def remove_schedule(schedule: ScheduleId, json: Json = False) -> int:
    """Remove the schedule; its jobs remain, and a running one continues."""
    return _change_schedule("delete", schedule, "removed", json=json)


def _change_schedule(
    action: recurring_starts.Change, schedule: str, state: str, *, json: bool
) -> int:
    state = run_server_work(recurring_starts.change_recurring_start(schedule, action)) or state
    print_json({"schedule": schedule, "state": state}) if json else print_result(
        f"{schedule}: {state}"
    )
    return OK
