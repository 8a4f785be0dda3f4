"""Commands that steer a running job, one for each signal."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.jobs.job_view import view_job
from cli.jobs.outline_text import job_status_line
from cli.options import Job, Json
from cli.output import OK, UserError, print_json, print_result
from cli.signals import signal_sending
from cli.start.job_settings import parse_job_settings
from cli.temporal_errors import run_server_work
from engine.connection import connect_client
from protocol.approval_statement import SIGNED_AS, ApprovalStatement
from protocol.payload_reading import InvalidPayload, read_signal_payload
from protocol.short_text import one_line
from protocol.status import AnyStatus, JobStatus

if TYPE_CHECKING:
    from cli.signing_key import SigningKey

MOST_DETAIL = 100


def rewind(
    job: Job,
    issue: Annotated[str, typer.Option(help="What is wrong, for the agent to read.")],
    phase: Annotated[
        int | None, typer.Option(min=1, help="Go back to the start of this phase.")
    ] = None,
    restore_files: Annotated[
        bool | None,
        typer.Option(
            "--restore-files/--keep-files",
            help="With --phase: restore the files too (the default), or keep them as they are.",
        ),
    ] = None,
    json: Json = False,
) -> int:
    """Send a job back to reconsider: the running phase ends and a new strategic one begins.

    Signal `rewind` with `{"issue": "…", "phase": 3, "restore_files": true}`.
    """
    if not issue.strip():
        raise UserError("--issue: say what is wrong, the agent reads it")
    payload: dict[str, Any] = {"issue": issue}
    if phase is not None:
        payload |= {"phase": phase, "restore_files": restore_files is not False}
    elif restore_files is not None:
        raise UserError("--restore-files and --keep-files need --phase: which files they mean")
    return run_server_work(_send_signal(job, "rewind", payload, "rewound", json=json))


def cancel(
    job: Job,
    reason: Annotated[str, typer.Option(help="Reason, recorded with the job.")] = "",
    json: Json = False,
) -> int:
    """End a job: its current step is cancelled; the last checkpoint and the files remain.

    Of a project, its jobs as well; of a trial, the runs at work, and none begins any more.

    Signal `cancel` with `{"reason": "…"}`.
    """
    payload = {"reason": reason} if reason else {}
    return run_server_work(_send_signal(job, "cancel", payload, "cancelled", json=json))


def pause(job: Job, json: Json = False) -> int:
    """Halt a job after its current step; its files may then be edited.

    Of a trial, all runs at work; none begins meanwhile, and its time stands still.

    Signal `pause` with `{}`.
    """
    return run_server_work(_send_signal(job, "pause", {}, "paused", json=json))


def resume(
    job: Job,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="A setting of the job's model from now on, such as model.send_reasoning=true; or "
            "of the push at the end: publish.branch=other, publish=none.",
            metavar="KEY=VALUE",
        ),
    ] = None,
    json: Json = False,
) -> int:
    """Continue a paused or waiting job, with its files as they are now.

    Of a trial, all runs that are paused or wait for something that you have mended.

    Signal `resume` with `{}`, or with `{"set": {"model.name": "…"}}`. Also retries what made the
    job wait.
    """
    settings = parse_job_settings(set_ or [])
    payload: dict[str, Any] = {"set": settings} if settings else {}
    try:
        read_signal_payload("resume", [payload])
    except InvalidPayload as refusal:
        raise UserError(f"--{refusal}") from None
    return run_server_work(_send_signal(job, "resume", payload, "resumed", json=json))


def limit(
    job: Job,
    limits: Annotated[
        list[str],
        typer.Argument(
            help="model_calls, tool_calls, tokens, cost or seconds, such as `cost=20`; with "
            "the prefix `phase.` for each phase, such as `phase.model_calls=800`.",
            metavar="KEY=VALUE...",
        ),
    ],
    json: Json = False,
) -> int:
    """Set limits of a job; one that waits for `budget` continues if the new limits allow it.

    Of a trial, the limits of all its runs together.

    Signal `limit` with `{"cost": 20, "phase": {"model_calls": 800}}`.
    """
    payload = parse_limit_arguments(limits)
    return run_server_work(_send_signal(job, "limit", payload, "has new limits", json=json))


Id = Annotated[
    str | None,
    typer.Option(
        "--id", help="Id of the question or request; the open one if left out.", metavar="ID"
    ),
]


def answer(
    job: Job,
    text: Annotated[str, typer.Argument(help="The answer, for the agent to read.", metavar="TEXT")],
    id_: Id = None,
    json: Json = False,
) -> int:
    """Answer the question that a job is waiting with.

    Signal `answer` with `{"id": "…", "text": "…"}`. `show` prints the question.
    """
    if not text.strip():
        raise UserError("TEXT: say what the agent should know")
    return run_server_work(
        _send_answer_signal(job, "answer", {"text": text}, id_, "answered", json=json)
    )


def approve(
    job: Job,
    id_: Id = None,
    reason: Annotated[
        str, typer.Option(help="Why, or what to pay attention to, for the agent to read.")
    ] = "",
    key: Annotated[
        Path | None,
        typer.Option(help="Private ssh key (ed25519) that signs the approval.", metavar="KEY"),
    ] = None,
    minutes: Annotated[
        int, typer.Option(min=1, max=525_600, help="With --key: how long the signature counts.")
    ] = 10,
    json: Json = False,
) -> int:
    """Approve the call for which a job waits.

    Signal `approve` with `{"id": "…", "reason": "…"}`. `show` prints the call. If the agent's
    configuration asks for a signature, --key makes it, over this call of this job alone.
    """
    payload = {"reason": reason} if reason else {}
    if key:
        from cli.signing_key import SigningKey  # noqa: PLC0415 - loads cryptography

        signing, span = SigningKey.load(key), timedelta(minutes=minutes)
        return run_server_work(_send_signed_approval(job, payload, id_, signing, span, json=json))
    return run_server_work(_send_answer_signal(job, "approve", payload, id_, "approved", json=json))


def deny(
    job: Job,
    reason: Annotated[str, typer.Option(help="Why not, for the agent to read.")],
    id_: Id = None,
    json: Json = False,
) -> int:
    """Refuse the call for which a job waits; the agent continues without it.

    Signal `deny` with `{"id": "…", "reason": "…"}`. `show` prints the call.
    """
    if not reason.strip():
        raise UserError("--reason: say why, the agent reads it")
    return run_server_work(
        _send_answer_signal(job, "deny", {"reason": reason}, id_, "denied", json=json)
    )


async def _send_signed_approval(
    job: str,
    payload: dict[str, Any],
    id_: str | None,
    key: "SigningKey",
    span: timedelta,
    *,
    json: bool,
) -> int:
    """Sign the open request for approval, and send the approval."""
    view = await view_job(await connect_client(), job)
    view.refuse_trial("takes no signal approve")
    approval = view.status.approval if isinstance(view.status, JobStatus) else None
    if approval is None or approval.approved is not None or id_ not in (None, approval.id):
        asks = (
            "" if isinstance(view.status, JobStatus) else "; name the job of the project that asks"
        )
        raise UserError(f"{job}: no such request for approval is open{asks}")
    if not approval.signers:
        raise UserError(f"{job}: this call is approved without a signature; leave out --key")
    statement = ApprovalStatement(
        job=job,
        request=approval.id,
        call=approval.tool,
        arguments=approval.digest,
        expires=(datetime.now(UTC) + span).isoformat(timespec="seconds"),
    )
    signature = key.sign(statement.text.encode(), SIGNED_AS).decode()
    signed = {"id": approval.id, **payload, "expires": statement.expires, "signature": signature}
    return await _send_signal(job, "approve", signed, "approved", json=json)


async def _send_answer_signal(
    job: str, signal: str, payload: dict[str, Any], id_: str | None, past_tense: str, *, json: bool
) -> int:
    """Send a person's answer with the id of the question."""
    if id_ is None:
        # With the id it cannot be taken for the answer to another question.
        job_view = await view_job(await connect_client(), job)
        job_view.refuse_trial(f"takes no signal {signal}")
        id_ = job_view.question_ids.get(signal)
    named = {"id": id_, **payload} if id_ else payload
    return await _send_signal(job, signal, named, past_tense, json=json)


def tell_job(
    job: Job,
    text: Annotated[str, typer.Argument(help="What the agent should know.", metavar="TEXT")],
    item: Annotated[
        bool, typer.Option("--item", help="Also add it to the scope that the job must cover.")
    ] = False,
    unit: Annotated[
        str,
        typer.Option(
            help="Of a project: the feature, group or stage that it is about; its jobs alone are "
            "told, and a blocked feature is tried once more.",
            metavar="ID",
        ),
    ] = "",
    json: Json = False,
) -> int:
    """Say something to the agent: it reads it in its next turn and follows it until the job ends.

    Signal `tell` with `{"text": "…", "item": false}`. The text stays in instructions.md under
    "Amended", even after a rewind. A project passes it to running and to later jobs.
    """
    if not text.strip():
        raise UserError("TEXT: say what the agent should know")
    payload: dict[str, Any] = {"text": text}
    if item:
        payload["item"] = True
    if unit:
        payload["unit"] = unit
    return run_server_work(_send_signal(job, "tell", payload, "was told", json=json))


def bypass(
    job: Job,
    guard: Annotated[str, typer.Argument(help="The guard or hook, as `show` names it.")],
    reason: Annotated[str, typer.Option(help="Reason, recorded with the job.")],
    json: Json = False,
) -> int:
    """Let one refused call of a guard or hook pass; the agent is asked to repeat it.

    Signal `bypass` with `{"guard": "…", "reason": "…"}`. The guard's next refusal is skipped.
    """
    payload = {"guard": guard, "reason": reason}
    said = f"lets {guard} be passed over"
    return run_server_work(_send_signal(job, "bypass", payload, said, json=json))


def _rewind_undo_advice(job: str, payload: dict[str, Any], status: AnyStatus) -> str:
    """Describe what a rewind to a phase undid and how to undo the rewind; empty if it undid
    nothing.

    The phase that a rewind opens follows the one that it ended.
    """
    phase = status.phase if isinstance(status, JobStatus) else None
    first, ended = payload.get("phase"), (phase.number if phase else 0) - 1
    if not first or ended < first:
        return ""
    at_start = f"files as at the start of phase {first}"
    files = at_start if payload.get("restore_files") else "files as they were"
    if ended == first:
        # The start of this phase is where the job now is: no later one can be gone back to.
        return f"undone: phase {first}; {files}"
    if files == at_start:
        files += f", `starter.py diff {job} {ended} now` lists them"
    return (
        f"undone: phases {first} to {ended}; {files}. `starter.py rewind {job} --phase {ended} "
        f"--issue '…'` goes back to the start of phase {ended}"
    )


async def _send_signal(
    job: str, signal: str, payload: dict[str, Any], past_tense: str, *, json: bool
) -> int:
    client = await connect_client()
    act, view_after = await signal_sending.send_signal(client, job, signal, payload)
    status = job_status_line(view_after.status)
    if json:
        fields = view_after.status.model_dump(mode="json")
        print_json({**fields, "signal": signal, "applied": act is not None})
    elif act is None and not view_after.live and not view_after.closed:
        print_result(
            f"{job}: {signal} sent; {view_after.silence}; the job takes it when it goes on"
        )
    elif act is None:
        print_result(f"{job}: {signal} sent, not taken yet: {status}")
    elif act.to:
        print_result(
            f"{job} handed {signal} on to job {act.to}; `starter.py show {act.to}` shows what came "
            "of it"
        )
    else:
        # A person should see which call the answer was taken for.
        if signal in ("approve", "deny") and act.did:
            past_tense = f"{act.did} ({one_line(act.detail, MOST_DETAIL)})"
        print_result(f"{job} {past_tense}: {status}")
        if signal == "rewind" and (undone := _rewind_undo_advice(job, payload, view_after.status)):
            print_result(undone)
        if signal == "pause":
            for notice in view_after.status.notices[-2:]:
                if notice.topic == "folder":
                    print_result(str(notice))
    return OK


def parse_limit_arguments(words: list[str]) -> dict[str, Any]:
    """Return the payload of the signal `limit`.

    Raises UserError: not key=value, a repeated key, or a payload that the signal refuses.
    """
    limits: dict[str, Any] = {}
    for word in words:
        name, _, value = word.partition("=")
        if not (name and value):
            raise UserError(f"{word!r}: expected key=value, such as cost=20")
        section, key = limits, name
        if name.startswith("phase."):
            section, key = limits.setdefault("phase", {}), name.removeprefix("phase.")
        if not isinstance(section, dict) or key in section:
            raise UserError(f"{name} is given twice")
        section[key] = _parse_limit_number(value)
    try:
        read_signal_payload("limit", (limits,))
    except InvalidPayload as refusal:
        # The command sets the key `by` itself.
        raise UserError(f"limit: {refusal.without('by')}") from None
    return limits


def _parse_limit_number(text: str) -> int | float | str:
    """Return the number; other text unchanged, for the payload's schema to refuse."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
