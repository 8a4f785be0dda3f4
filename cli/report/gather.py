"""Puts a job's report together: from its status, its checkpoints and its Temporal history."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from activities.checkpoints import CheckpointMissing
from cli import inspecting
from cli.jobs import Seen, look
from cli.output import Mistake
from cli.report import kept
from cli.report.compose import compose
from cli.report.data import Report
from cli.report.history import chain, happened
from cli.report.kept import Kept
from cli.report.tally import Tally
from engine.connection import ui_link

Traces = Callable[[str], list[dict[str, Any]]]


def no_traces(job_id: str) -> list[dict[str, Any]]:
    """Nothing: what to hand in where no store of traces is read."""
    return []


async def gather(client: Client, job_id: str, traces_of: Traces) -> Report:
    """A job's report, running or closed.

    Args:
        traces_of: Gives the traces of a job, as plain data.

    Raises:
        Mistake: there is no such job, or its checkpoints are not in this environment.
    """
    try:
        seen = await look(client, job_id)
    except Mistake as unknown:
        # Temporal forgets closed jobs after a while; the checkpoints stay.
        try:
            held = _kept(job_id, None)
        except Mistake:
            raise unknown from None
        return compose(job_id, None, None, held, traces_of(job_id), now=datetime.now(UTC))
    held = _kept(job_id, seen)
    tally, whole = await _tallied(client, seen)
    link = ui_link(job_id, client.namespace)
    now = datetime.now(UTC)
    return compose(job_id, seen, tally, held, traces_of(job_id), now=now, whole=whole, link=link)


def _kept(job_id: str, seen: Seen | None) -> Kept:
    store = inspecting.repository(job_id)
    found = inspecting.places_in(seen.status) if seen else inspecting.Places(None, {})
    try:
        return kept.read(store, inspecting.commit_at(found, store, None))
    except CheckpointMissing as error:
        raise Mistake(
            f"a checkpoint of {job_id} is damaged or not in this store: {error}"
        ) from None


async def _tallied(client: Client, seen: Seen) -> tuple[Tally, bool]:
    """The sums over the job's history, and whether all of it was there."""
    tally = Tally()
    found = await chain(client, seen.id, seen.run_id)
    try:
        async for one in happened(client, seen.id, found.runs):
            tally.take(one)
    except RPCError as error:
        if error.status != RPCStatusCode.NOT_FOUND:
            raise
        # A run that the server forgets while we read it is as good as forgotten before.
        return tally, False
    return tally, found.whole
