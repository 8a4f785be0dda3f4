"""Commands that start jobs and projects: start, project, fork, demo."""

import json as json_format
import re
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from cli import options
from cli.jobs.job_memo import JOB, PROJECT
from cli.jobs.missing_jobs import forgotten_job_notice
from cli.jobs.outline_text import print_job_outcome
from cli.jobs.polling import task_queue_notice
from cli.jobs.watch import follow_on_console, noting_interrupt
from cli.output import OK, UserError, err_console, print_json, print_note, print_result
from cli.schedules.recurring_starts import create_recurring_start
from cli.signals.signal_sending import start_by_sender
from cli.start.job_input import check_job_input_size, job_input, read_instructions_text, team_field
from cli.start.job_settings import check_fork_settings, parse_job_settings, result_schema_setting
from cli.start.job_start import check_new_job_id, new_job_id, start_job
from cli.start.repository_input import publish_input_fields, repository_input_fields
from cli.start.start_files import project_input
from cli.temporal_errors import run_server_work
from config.schema.agent import ConfigError
from engine.connection import connect_client, task_queue
from engine.web_ui import answering_web_ui_link

Wait = Annotated[bool, typer.Option("--wait", help="Wait for the job and print how it ended.")]
Every = Annotated[
    str,
    typer.Option(
        help="Start it repeatedly at this interval, such as 6h or 1d; never two at a "
        "time. `schedules` lists, pauses and removes it."
    ),
]
Instructions = Annotated[
    str, typer.Option(help="What to do: the text, or @FILE to read it.", metavar="TEXT|@FILE")
]
Documents = Annotated[
    list[str] | None,
    typer.Option(help="Document to work on: a local file or a URL. Repeat for more."),
]
Brief = Annotated[
    list[str] | None,
    typer.Option(
        help="Document that says what to do, such as a specification: each of its statements "
        "becomes part of the scope. Repeat for more."
    ),
]
Items = Annotated[
    list[str] | None, typer.Option(help="Scope item the job must cover. Repeat for more.")
]
JobId = Annotated[
    str | None, typer.Option(help="Id of the job; made from the agent's name if left out.")
]
ResultSchema = Annotated[
    Path | None,
    typer.Option(
        help="File with a JSON Schema, as JSON or YAML, for the job's result; the job "
        "only completes if the result is valid."
    ),
]
Replaces = Annotated[
    str,
    typer.Option(
        help="Job on an earlier version of the document: its requirements that still stand "
        "there keep id, status and decision, and only the rest is worked on.",
        metavar="JOB",
    ),
]
TestCommand = Annotated[
    str,
    typer.Option(
        help="Command that runs the repository's tests, if its files do not say it.",
        metavar="COMMAND",
    ),
]
ApprovePlan = Annotated[
    bool,
    typer.Option("--approve-plan", help="Wait after planning until a person approves the plan."),
]

Unattended = Annotated[
    str,
    typer.Option(
        help="Nobody is there for so long: print what would stop the job, as `doctor --leave` "
        "does, set ceilings where none are set, and let questions and approvals end by their "
        "defaults within an hour.",
        metavar="48h",
    ),
]


def start(
    agent: Annotated[str, typer.Argument(help="Agent that does the job, such as creator.")],
    *,
    instructions: Instructions = "",
    document: Documents = None,
    brief: Brief = None,
    item: Items = None,
    id: JobId = None,
    set: options.Set = None,
    result_schema: ResultSchema = None,
    replaces: Replaces = "",
    every: Every = "",
    repository: options.Repository = None,
    ref: options.Ref = None,
    depth: options.Depth = None,
    folder: options.Folder = None,
    subfolder: options.Subfolder = "",
    token_variable: options.TokenVariable = None,
    test: TestCommand = "",
    publish: options.Publish = None,
    publish_to: options.PublishTo = "",
    approve_publish: options.ApprovePublish = False,
    approve_plan: ApprovePlan = False,
    team: options.Team = "",
    unattended: Unattended = "",
    wait: Wait = False,
    json: options.Json = False,
) -> int:
    """Start a job; prints its id and its page in the Web UI.

    Example: `starter.py start creator --document policy.pdf --instructions "Only chapter 3"`.
    The same from the Web UI: workflow type `Job`, task queue `longhaul`, input
    `{"agent": "creator", "documents": ["/srv/policy.pdf"]}`, with paths in folders that the
    worker's `start.documents` names.
    """
    if id is not None:
        check_new_job_id(id)
    begins_from = repository_input_fields(repository, ref, depth, folder, subfolder, token_variable)
    settings = [
        *(set or []),
        *(result_schema_setting(result_schema) if result_schema else []),
        *(["approve_plan=true"] if approve_plan else []),
        *([f"settings.replaces={replaces}"] if replaces else []),
        *([f"tests.command={json_format.dumps(test)}"] if test else []),
    ]
    if unattended:
        settings += _prepare_absence(agent, settings, unattended)
    data = job_input(
        agent,
        instructions,
        document or [],
        item or [],
        settings,
        begins_from,
        publish_input_fields(publish, publish_to, begins_from, approve=approve_publish),
        brief,
    ) | team_field(team)
    job_id = new_job_id(agent) if id is None else id
    if every:
        return _start_on_schedule(job_id, JOB, data, every, wait=wait, json=json)
    return run_server_work(_start_and_report(job_id, data, wait=wait, json=json))


def _prepare_absence(agent: str, settings: list[str], period: str) -> list[str]:
    """Return the further settings of a start that nobody watches, and print what may stop it."""
    from cli.checks.leave_facts import parse_absence_hours  # noqa: PLC0415 - loads the activities
    from cli.start.unattended import announce_absence, unattended_settings  # noqa: PLC0415

    hours, overrides = parse_absence_hours(period), parse_job_settings(settings)
    try:
        added = unattended_settings(agent, overrides, hours)
    except ConfigError as error:
        raise UserError(str(error)) from None
    run_server_work(announce_absence(agent, {**overrides, **added}, hours))
    texts = [f"{key}={json_format.dumps(value)}" for key, value in added.items()]
    if texts:
        print_note(f"set, since nobody is there: {', '.join(texts)}")
    return texts


def _start_on_schedule(
    name: str, kind: str, data: dict[str, Any], every: str, *, wait: bool, json: bool
) -> int:
    if wait:
        raise UserError("--wait: goes without --every, which starts nothing at once")
    recurring = create_recurring_start(name, kind, start_by_sender(kind, data), every)
    due = f"{run_server_work(recurring):%Y-%m-%dT%H:%M:%SZ}"
    if json:
        print_json({"schedule": name, "every": every, "next": due})
        return OK
    print_result(name)
    print_note(
        f"every {every}, first at {due}; `starter.py schedules list` shows it, `starter.py "
        f"schedules trigger {name}` starts a job now"
    )
    return OK


async def _start_and_report(
    job_id: str, data: dict[str, Any], *, wait: bool, json: bool, kind: str = JOB
) -> int:
    client = await connect_client()
    await start_job(client, job_id, data, kind)
    link = await answering_web_ui_link(job_id, client.namespace)
    if unpolled := await task_queue_notice(client, task_queue(), [job_id]):
        print_note(unpolled)
    if not wait:
        if json:
            print_json({"job_id": job_id, "link": link})
        else:
            print_result(job_id)
            print_result(link or "no Web UI answers; TEMPORAL_UI_ADDRESS says where one is")
        return OK
    err_console().print(f"{job_id}  {link}" if link else job_id, markup=False)
    with noting_interrupt(job_id):
        job_view = await follow_on_console(err_console(), client, job_id)
    return print_job_outcome(job_view, json=json)


def project(
    file: Annotated[Path, typer.Argument(help="YAML file of the project.", metavar="FILE")],
    id: Annotated[
        str | None, typer.Option(help="Id of the project; made from the file's name if left out.")
    ] = None,
    every: Every = "",
    repository: options.Repository = None,
    ref: options.Ref = None,
    depth: options.Depth = None,
    folder: options.Folder = None,
    team: options.Team = "",
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait for the project and print how it ended.")
    ] = False,
    json: options.Json = False,
) -> int:
    """Start a project: several agents work on one product, in the form that FILE names.

    `features` builds one tested feature after another, `groups` lets agents work side by side,
    `pipeline` passes the work from one agent to the next. The ids of its jobs begin with its own.
    The same from the Web UI: workflow type `Project`, the file's content as JSON.
    """
    stem = re.sub(r"[^A-Za-z0-9-]+", "-", file.stem).strip("-") or "project"
    project_id = new_job_id(stem) if id is None else id
    check_new_job_id(project_id)
    begins_from = repository_input_fields(repository, ref, depth, folder, "", None)
    data = project_input(file, begins_from)
    data |= team_field(team or data.get("team", ""))
    if every:
        return _start_on_schedule(project_id, PROJECT, data, every, wait=wait, json=json)
    return run_server_work(_start_and_report(project_id, data, wait=wait, json=json, kind=PROJECT))


def fork(
    job: options.Job,
    phase: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Begin at the start of this phase; at the end of a closed job if left out.",
        ),
    ] = None,
    instructions: Annotated[
        str,
        typer.Option(
            help="What to do differently: the text, or @FILE to read it.", metavar="TEXT|@FILE"
        ),
    ] = "",
    id: Annotated[
        str | None, typer.Option(help="Id of the new job; made from the agent's name if left out.")
    ] = None,
    set: options.Set = None,
    publish: options.Publish = None,
    publish_to: options.PublishTo = "",
    approve_publish: options.ApprovePublish = False,
    team: options.Team = "",
    wait: Wait = False,
    json: options.Json = False,
) -> int:
    """Start a new job from the start of any phase of another, running or closed, or from its end.

    The other job is left unchanged. The new one has a copy of its files and history; the new
    instructions are appended to the old ones, and it begins by reconsidering the plan.
    The same from the Web UI: input `{"fork": {"job": "…", "phase": 3}, "instructions": "…"}`.
    """
    if id is not None:
        check_new_job_id(id)
    data: dict[str, Any] = {"fork": {"job": job} | ({"phase": phase} if phase else {})}
    data |= team_field(team)
    if text := read_instructions_text(instructions):
        data["instructions"] = text
    if settings := parse_job_settings(set or []):
        data["set"] = settings
    if pushed := publish_input_fields(publish, publish_to, None, approve=approve_publish):
        data["publish"] = pushed
    check_job_input_size(data)
    return run_server_work(_fork_job(job, phase, id, data, wait=wait, json=json))


async def _fork_job(
    job: str, phase: int | None, new: str | None, data: dict[str, Any], *, wait: bool, json: bool
) -> int:
    from cli.job_files import checkpoint_reader  # noqa: PLC0415 - loads the activities, which takes a second

    if notice := forgotten_job_notice(job):
        raise UserError(notice)
    places = await checkpoint_reader.find_checkpoint_places(await connect_client(), job)
    if places.project is not None:
        such = f", such as {places.project}" if places.project else "; `starter.py show` names them"
        raise UserError(f"{job} is a project and cannot be forked; fork one of its jobs{such}")
    if places.unbegun:
        raise UserError(f"{places.unbegun} (there is nothing to fork)")
    check_new_job_id(new := new_job_id(places.agent or "fork") if new is None else new)
    settings = data.get("set", {})
    # If the checkpoints are not on this host, the worker checks.
    with suppress(checkpoint_reader.StoreMissing):
        store = checkpoint_reader.open_checkpoints_for_reading(job, places)
        commit = checkpoint_reader.checkpoint_commit_at(places, store, phase)
        if settings:
            check_fork_settings(checkpoint_reader.config_at_checkpoint(store, commit), settings)
    if places.remote:
        data["set"] = {"workspace.remote": places.remote, **settings}
    return await _start_and_report(new, data, wait=wait, json=json)


def demo(
    document: Annotated[
        Path | None, typer.Option(help="Document to work on; a shipped one if left out.")
    ] = None,
    agent: Annotated[
        str, typer.Option(help="Agent that does the job; creator and then mender if left out.")
    ] = "creator",
    keep: Annotated[
        bool, typer.Option("--keep", help="Keep running afterwards, with the Web UI, until Ctrl-C.")
    ] = False,
    json: options.Json = False,
) -> int:
    """Show everything at once: server, worker and a real job, in this process.

    Uses the model of OPENAI_BASE_URL or OPENAI_API_KEY if set, else a rehearsal model that needs no
    network. The files stay in the workspaces folder.
    """
    from cli.demo import run_demo  # noqa: PLC0415 - loads the worker, which others do without

    return run_server_work(run_demo(agent, document, keep=keep, json=json))
