"""Commands that steer a running job: rewind, pause, resume, cancel, limit, bypass."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from cli import limiting, steering, view
from cli.options import Job, Json
from cli.output import OK, Mistake, dump, run, say
from engine.connection import connect


def rewind(
    job: Job,
    issue: Annotated[str, typer.Option(help="What is wrong; the agent reads it.")],
    phase: Annotated[
        int | None, typer.Option(min=1, help="Go back to the start of this phase.")
    ] = None,
    restore_files: Annotated[
        bool,
        typer.Option(
            "--restore-files/--keep-files",
            help="With --phase: put the files back too, or keep them as they are.",
        ),
    ] = True,
    json: Json = False,
) -> int:
    """Send a job back to reconsider: the running phase ends and a new strategic one opens.

    Signal `rewind` with `{"issue": "…", "phase": 3, "restore_files": true}`.
    """
    if not issue.strip():
        raise Mistake("--issue: say what is wrong, the agent reads it")
    payload: dict[str, Any] = {"issue": issue}
    if phase is not None:
        payload |= {"phase": phase, "restore_files": restore_files}
    return run(_steer(job, "rewind", payload, steering.rewound, "rewound", json=json))


def cancel(
    job: Job,
    reason: Annotated[str, typer.Option(help="Why; kept with the job.")] = "",
    json: Json = False,
) -> int:
    """End a job: the step under way is cancelled, the last checkpoint and the files stay.

    Signal `cancel` with `{"reason": "…"}`.
    """
    payload = {"reason": reason} if reason else {}
    return run(_steer(job, "cancel", payload, steering.cancelled, "cancelled", json=json))


def pause(job: Job, json: Json = False) -> int:
    """Halt a job after the step under way; its files may then be edited.

    Signal `pause` with `{}`.
    """
    return run(_steer(job, "pause", {}, steering.paused, "paused", json=json))


def resume(job: Job, json: Json = False) -> int:
    """Let a paused or waiting job go on, its files taken as they are now.

    Signal `resume` with `{}`. Also tries again what made the job wait.
    """
    return run(_steer(job, "resume", {}, steering.resumed, "resumed", json=json))


def limit(
    job: Job,
    limits: Annotated[
        list[str],
        typer.Argument(
            help="model_calls, tool_calls, tokens, cost or seconds, as `cost=20`; for each phase "
            "with `phase.` before it, as `phase.model_calls=800`.",
            metavar="KEY=VALUE...",
        ),
    ],
    json: Json = False,
) -> int:
    """Set limits of a job; one that waits for `budget` goes on if there is room now.

    Signal `limit` with `{"cost": 20, "phase": {"model_calls": 800}}`.
    """
    payload = limiting.payload(limits)
    effect = steering.limited(payload)
    return run(_steer(job, "limit", payload, effect, "has new limits", json=json))


def bypass(
    job: Job,
    guard: Annotated[str, typer.Argument(help="The guard or hook, as `show` names it.")],
    reason: Annotated[str, typer.Option(help="Why; kept with the job.")],
    json: Json = False,
) -> int:
    """Let through once what a guard or hook refused; the agent is told to do it again.

    Signal `bypass` with `{"guard": "…", "reason": "…"}`. The guard's next refusal is passed over.
    """
    payload = {"guard": guard, "reason": reason}
    effect = steering.bypassed(guard)
    return run(_steer(job, "bypass", payload, effect, f"lets {guard} be passed over", json=json))


async def _steer(
    job: str,
    signal: str,
    payload: dict[str, Any],
    effect: steering.Effect,
    done: str,
    *,
    json: bool,
) -> int:
    client = await connect()
    applied, seen = await steering.steer(client, job, signal, payload, effect)
    if json:
        dump({**seen.status, "signal": signal, "applied": applied})
    elif applied:
        say(f"{job} {done}: {view.line(seen.status, seen.waiting)}")
    elif not seen.live and not seen.closed:
        say(f"{job}: {signal} sent; no worker answers, the job takes it when one runs")
    else:
        say(f"{job}: {signal} sent, not taken yet: {view.line(seen.status, seen.waiting)}")
    return OK


def add_to(app: typer.Typer) -> None:
    """Register this module's commands."""
    for command in (rewind, pause, resume, cancel, limit, bypass):
        app.command()(command)
