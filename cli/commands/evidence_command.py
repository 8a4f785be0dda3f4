"""The commands evidence and verify."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.options import Job, Json
from cli.output import FAILED, OK, UserError, print_json, print_note, print_result
from cli.temporal_errors import run_server_work
from engine.connection import connect_client
from protocol.short_text import count_noun

if TYPE_CHECKING:
    from cli.evidence.collection import Collected


def evidence(
    job: Job,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            help="File to write; JOB.evidence.tar in this folder if left out.",
            metavar="FILE",
        ),
    ] = None,
    key: Annotated[
        Path | None,
        typer.Option(help="Private ssh key (ed25519) that signs it.", metavar="KEY"),
    ] = None,
    json: Json = False,
) -> int:
    """Write an archive with which others can check what a job did, without trusting its host.

    It has the job's histories, checkpoints, configuration, guards, prompts, what people sent and
    the table of what was asked for and what came of it, under digests that build on each other.
    """
    from cli.evidence.collection import collect_evidence  # noqa: PLC0415 - loads the activities
    from cli.signing_key import SigningKey  # noqa: PLC0415 - loads cryptography

    signing = SigningKey.load(key) if key else None
    path = output or Path(f"{job.replace('/', '_')}.evidence.tar")

    async def collect() -> Collected:
        return await collect_evidence(await connect_client(), job, path, signing)

    try:
        collected = run_server_work(collect())
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror or error}") from None
    if json:
        print_json({**asdict(collected), "bytes": path.stat().st_size})
        return OK
    print_result(str(path))
    signed = f"signed by {collected.fingerprint}" if collected.fingerprint else "not signed"
    print_note(
        f"{path.stat().st_size:,} bytes: {count_noun(collected.runs, 'run')} with "
        f"{collected.events:,} events, {collected.checkpoints:,} checkpoints of "
        f"{collected.objects:,} objects; head {collected.digest}, {signed}"
    )
    for remark in collected.remarks:
        print_note(remark)
    return OK


def verify(
    file: Annotated[Path, typer.Argument(help="Archive of `evidence`.", metavar="FILE")],
    key: Annotated[
        Path | None,
        typer.Option(help="Public ssh key that must have signed it.", metavar="PUB"),
    ] = None,
    run: Annotated[
        bool,
        typer.Option(
            "--run",
            help="Run verifiers and commands of todos again, in the sandbox, without network.",
        ),
    ] = False,
    json: Json = False,
) -> int:
    """Verify an archive of `evidence`, without server, worker, model or network.

    Every digest and the signature are checked, every git object's id is computed again, the
    workflow's decisions are replayed and each gate is decided again. It prints each claim with
    what it rests on, and exits with 1 if something contradicts one.
    """
    from cli.evidence.derived_documents import contract_row_line  # noqa: PLC0415 - loads the activities
    from cli.evidence.verification import NOT_SHOWN, verify_archive  # noqa: PLC0415 - loads the activities
    from cli.signing_key import read_public_keys  # noqa: PLC0415 - loads cryptography

    trusted = read_public_keys(key) if key else []
    logging.getLogger("temporalio").setLevel(logging.CRITICAL)
    try:
        verification = asyncio.run(verify_archive(file, trusted, run_commands=run))
    except OSError as error:
        raise UserError(f"{file} cannot be verified: {error.strerror or error}") from None
    code = OK if verification.holds else FAILED
    if json:
        claims = [claim.as_data() for claim in verification.claims]
        about = {"job": verification.job, "head": verification.digest, "holds": verification.holds}
        print_json({**about, "claims": claims, "table": verification.table, "not_shown": NOT_SHOWN})
        return code
    print_result(f"job {verification.job or '?'}, head {verification.digest or '?'}")
    for claim in verification.claims:
        for line in claim.lines():
            print_result(line)
    for row in verification.table:
        print_result(f"item       {contract_row_line(row)}")
    for limit in NOT_SHOWN:
        print_result(f"not shown: {limit}")
    print_result("nothing was found" if verification.holds else "SOMETHING WAS FOUND, see above")
    return code
