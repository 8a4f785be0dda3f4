"""The `compact` activity: a smaller context from a checkpoint whose context has grown too large."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any

from temporalio import activity
from temporalio.exceptions import ApplicationError

from activities.checkpoints import Root
from activities.job import context_summary
from activities.job.activity_context import open_snapshot, scheduled_at
from activities.job.compaction_plan import Plan, plan
from activities.job.context_view import OPENING, Compaction
from activities.job.snapshot import Snapshot
from activities.model.client import Asking, Question
from activities.model.endpoint import Connect
from activities.model.forms import weights_of
from activities.model.prices import priced
from activities.model.prompt import context_tokens, fixed_tokens
from activities.model.stream import Streamed
from activities.runtime.failures import ATTEMPTS, is_retried, typed
from activities.runtime.heartbeats import heartbeats
from activities.text.tokens import encoding_of
from protocol.requests import CompactReply, CompactRequest, Usage

SUMMARIES = 2
"""Summaries that are asked for before the system writes what they leave out."""


class Compacting:
    """The `compact` activity."""

    def __init__(self, root: Root, connect: Connect) -> None:
        self._root = root
        self._asking = Asking(root, connect)

    @activity.defn(name="compact")
    async def compact(self, request: CompactRequest) -> CompactReply:
        """Clear old results and, if that is not enough, fold old exchanges into a summary."""
        with typed(ATTEMPTS):
            async with heartbeats():
                folds = await asyncio.to_thread(self._folds, request)
                replies = await self._summaries(request) if folds else []
                return await asyncio.to_thread(self._save, request, replies)

    def _folds(self, request: CompactRequest) -> bool:
        snapshot = open_snapshot(self._root, request)
        return _plan(snapshot, request).folded > snapshot.compaction.folded

    async def _summaries(self, request: CompactRequest) -> list[Streamed]:
        """What the model wrote, the newest last; empty when it is not to be had.

        An endpoint that is away or busy is waited for longer than what may fail otherwise, and a
        key that is refused is a person's to mend: without them the phase gets no further either.

        Raises:
            ApplicationError: the endpoint failed in such a way.
        """
        written: list[Streamed] = []
        for attempt in range(1, SUMMARIES + 1):
            question = partial(self._question, request, written[-1] if written else None)
            try:
                reply = await self._asking.ask(question, lambda made: made, f".summary{attempt}")
            except ApplicationError as error:
                # What was paid for is used: the next call meets the key that is refused as well.
                if is_retried(error) or (error.type == "Credentials" and not written):
                    raise
                activity.logger.warning("summary: %s", error.message)
                break
            written.append(reply)
            if not await asyncio.to_thread(self._missing, request, reply.text):
                break
        return written

    def _question(self, request: CompactRequest, first: Streamed | None) -> Question:
        snapshot = open_snapshot(self._root, request)
        needed = _needed(snapshot)
        asked = context_summary.summary_request(
            snapshot.state.phase,
            needed,
            snapshot.compaction.summary,
            _folded(snapshot, _plan(snapshot, request)),
            needed.missing(first.text) if first else None,
        )
        return Question.apart(snapshot, "context_summary", asked)

    def _missing(self, request: CompactRequest, summary: str) -> bool:
        return bool(_needed(open_snapshot(self._root, request)).missing(summary))

    def _save(self, request: CompactRequest, written: Sequence[Streamed]) -> CompactReply:
        snapshot = open_snapshot(self._root, request)
        before, planned = snapshot.compaction, _plan(snapshot, request)
        summary, told = before.summary, [reply for reply in written if reply.text.strip()]
        if planned.folded > before.folded:
            needed = _needed(snapshot)
            summary = (
                context_summary.completed(told[-1].text, needed)
                if told
                else context_summary.dropped(summary, _folded(snapshot, planned), needed)
            )
        snapshot.compaction = Compaction(
            cleared=planned.cleared,
            folded=planned.folded,
            unseen=planned.unseen,
            spared=list(planned.spared),
            summary=summary,
        )
        usage = Usage()
        for reply in written:
            usage.add(priced(reply, snapshot.config))
        at = scheduled_at()
        story = snapshot.story(f"compacted: {planned.cleared} cleared, {planned.folded} folded")
        return CompactReply(
            commit=snapshot.save(story, at),
            at=at,
            context=context_tokens(snapshot),
            cleared=planned.cleared,
            folded=planned.folded,
            usage=usage,
        )


def _plan(snapshot: Snapshot, request: CompactRequest) -> Plan:
    """What to do; the same whenever it is asked of the same checkpoint."""
    model = snapshot.config.model_for(snapshot.state.phase.kind)
    encoding = encoding_of(model.name)
    before = snapshot.compaction
    present = Plan(before.cleared, before.folded, before.unseen, tuple(before.spared))
    todos = "\n".join(todo.content for todo in snapshot.state.phase.open_todos)
    return plan(
        snapshot.view.pieces(encoding, todos, weights_of(model)),
        OPENING,
        present,
        fixed_tokens(snapshot),
        request.limit,
        hard=request.hard,
    )


def _needed(snapshot: Snapshot) -> context_summary.Must:
    phase = snapshot.state.phase
    return context_summary.must(phase, snapshot.changed_since(phase.since))


def _folded(snapshot: Snapshot, planned: Plan) -> list[dict[str, Any]]:
    """The exchanges that are folded now."""
    start = max(OPENING, snapshot.compaction.folded)
    return snapshot.conversation.messages(start, planned.folded)
