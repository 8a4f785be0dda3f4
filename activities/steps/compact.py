"""The `compact` activity: shortens a conversation that has grown too large."""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any

from temporalio import activity
from temporalio.exceptions import ApplicationError

from activities.job import context_summary
from activities.job.activity_context import open_activity_snapshot
from activities.job.compaction_plan import CompactionPlan, plan_compaction
from activities.job.context_view import OPENING, Compaction
from activities.job.loaded_skills import skills_after_compaction
from activities.job.snapshot import Snapshot
from activities.model.client import ModelQuery
from activities.model.message_forms import message_form_weights
from activities.model.prices import priced_usages
from activities.model.prompt import count_prompt_tokens, fixed_prompt_tokens
from activities.model.reply_stream import StreamedReply
from activities.runtime.activity_info import activity_schedule_seconds
from activities.runtime.failures import ATTEMPTS, is_failure_retried
from activities.steps.root_activity import ModelActivity, async_step
from activities.text.tokens import count_tokens, token_encoding_name
from activities.toolkit.path_ownership import is_system_path
from protocol.requests import CompactReply, CompactRequest

SUMMARIES = 2
"""Number of summaries requested before the system itself adds what they omit."""


class CompactActivity(ModelActivity):
    @activity.defn(name="compact")
    async def compact(self, request: CompactRequest) -> CompactReply:
        async with async_step(ATTEMPTS):
            folds = await asyncio.to_thread(self._needs_summary, request)
            replies = await self._request_summaries(request) if folds else []
            return await asyncio.to_thread(self._save_compaction, request, replies)

    def _needs_summary(self, request: CompactRequest) -> bool:
        snapshot = open_activity_snapshot(self._root, request)
        return _plan_snapshot_compaction(snapshot, request).folded > snapshot.compaction.folded

    async def _request_summaries(self, request: CompactRequest) -> list[StreamedReply]:
        """Ask the model for a summary; return its replies, newest last, one without text if it
        gives none.

        An unreachable or busy endpoint gets more attempts than other failures, and a refused key
        needs a person: the phase cannot continue without either.

        Raises ApplicationError.
        """
        written: list[StreamedReply] = []
        for attempt in range(1, SUMMARIES + 1):
            question = partial(self._summary_question, request, written[-1] if written else None)
            try:
                reply = await self._model_client.request_reply(
                    question, lambda reply: reply, f".summary{attempt}"
                )
            except ApplicationError as error:
                # Use a summary that was already paid for: the next model call will meet the refused
                # key.
                if is_failure_retried(error) or (error.type == "Credentials" and not written):
                    raise
                activity.logger.warning("summary: %s", error.message)
                written.append(await self._model_client.empty_reply(f".summary{attempt}"))
                break
            written.append(reply)
            if not await asyncio.to_thread(self._is_incomplete, request, reply.text):
                break
        return written

    def _summary_question(self, request: CompactRequest, first: StreamedReply | None) -> ModelQuery:
        snapshot = open_activity_snapshot(self._root, request)
        required = _mentions_to_compact(snapshot)
        prompt = context_summary.summary_request(
            snapshot.state.phase,
            required,
            snapshot.compaction.summary,
            _messages_to_compact(snapshot, _plan_snapshot_compaction(snapshot, request)),
            required.missing_from(first.text) if first else None,
        )
        return ModelQuery.with_own_prompt(snapshot, "context_summary", prompt)

    def _is_incomplete(self, request: CompactRequest, summary: str) -> bool:
        return bool(
            _mentions_to_compact(open_activity_snapshot(self._root, request)).missing_from(summary)
        )

    def _save_compaction(
        self, request: CompactRequest, written: Sequence[StreamedReply]
    ) -> CompactReply:
        snapshot = open_activity_snapshot(self._root, request)
        before, planned = snapshot.compaction, _plan_snapshot_compaction(snapshot, request)
        summary, usable = before.summary, [reply for reply in written if reply.text.strip()]
        if planned.folded > before.folded:
            required = _mentions_to_compact(snapshot)
            summary = (
                context_summary.complete_context_summary(usable[-1].text, required)
                if usable
                else context_summary.fallback_summary(
                    summary, _messages_to_compact(snapshot, planned), required
                )
            )
        snapshot.compaction = Compaction(
            cleared=planned.cleared,
            folded=planned.folded,
            unseen=planned.unseen,
            spared=list(planned.spared),
            summary=summary,
            skills=skills_after_compaction(snapshot, planned, request.limit),
        )
        timestamp = activity_schedule_seconds()
        story = snapshot.commit_message(
            f"compacted: {planned.cleared} cleared, {planned.folded} folded"
        )
        commit = snapshot.save(story, timestamp)
        context = count_prompt_tokens(snapshot)
        return CompactReply(
            commit=commit,
            at=timestamp,
            context=context,
            unchanged=request.hard
            and context == count_prompt_tokens(open_activity_snapshot(self._root, request)),
            cleared=planned.cleared,
            folded=planned.folded,
            usage=priced_usages(written, snapshot.config),
        )


def _plan_snapshot_compaction(snapshot: Snapshot, request: CompactRequest) -> CompactionPlan:
    model = snapshot.config.model_for(snapshot.state.phase.kind)
    encoding = token_encoding_name(model.name)
    before = snapshot.compaction
    present = CompactionPlan(before.cleared, before.folded, before.unseen, tuple(before.spared))
    todos = "\n".join(todo.content for todo in snapshot.state.phase.open_todos)
    return plan_compaction(
        snapshot.view.message_sizes(encoding, todos, message_form_weights(model)),
        OPENING,
        present,
        fixed_prompt_tokens(snapshot)
        + count_tokens(skills_after_compaction(snapshot, None, request.limit), encoding),
        request.limit,
        hard=request.hard,
    )


def _mentions_to_compact(snapshot: Snapshot) -> context_summary.RequiredSummaryMentions:
    phase = snapshot.state.phase
    changed = snapshot.changed_since(phase.since)
    # Logs and proofs that the system keeps would crowd out the files of the agent's own work.
    own = [path for path in changed if not is_system_path(path)]
    return context_summary.required_summary_mentions(phase, own)


def _messages_to_compact(snapshot: Snapshot, planned: CompactionPlan) -> list[dict[str, Any]]:
    start = max(OPENING, snapshot.compaction.folded)
    return snapshot.conversation.messages(start, planned.folded)
