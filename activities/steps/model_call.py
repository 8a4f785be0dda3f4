"""The model call: from a checkpoint to the checkpoint with the reply."""

from __future__ import annotations

import asyncio
from functools import partial

from temporalio import activity
from temporalio.exceptions import ApplicationError

from activities.checkpoints import Root
from activities.guards.call_guards import CallGuards
from activities.job.activity_context import (
    activity_job_id,
    activity_schedule_time,
    open_activity_snapshot,
)
from activities.job.checkpoint_push import BackgroundPush
from activities.job.commit_messages import new_reply_message
from activities.job.job_folder import JobFolderUpdater
from activities.model.client import ModelClient, ModelQuery
from activities.model.endpoint import Connect
from activities.model.prices import priced_usage
from activities.model.prompt import count_prompt_tokens, job_prompt_body
from activities.model.providers import REHEARSAL, provider_cache_key
from activities.model.reply_classification import classify_reply
from activities.model.reply_message import (
    reply_message,
    reply_provider_data,
    wrap_unusable_arguments,
)
from activities.model.reply_stream import StreamedReply
from activities.model.window import window_remedy
from activities.redaction.credentials import hide_credentials
from activities.runtime import metrics
from activities.runtime.failures import typed_failures
from activities.runtime.heartbeats import heartbeats
from activities.tool_calls.call_refs import describe_call_ref
from protocol.failure_details import helps_detail
from protocol.requests import ModelReply, ModelRequest
from protocol.short_text import one_line

REFUSED_CHARACTERS = 200
MOST_RATIO = 2.0
"""Largest correction of our count of tokens by the endpoint's."""


class ModelCallActivity:
    """The `model_call` activity."""

    def __init__(self, root: Root, connect: Connect) -> None:
        self._root = root
        self._client = ModelClient(root, connect, in_turn=True)
        self._folders = JobFolderUpdater(root)

    @activity.defn(name="model_call")
    async def model_call(self, request: ModelRequest) -> ModelReply:
        """Ask the model for the next reply and store it.

        Meanwhile the folder and, if there is one, the remote are brought up to date.
        """
        with typed_failures():
            async with heartbeats(), self._folders.update_meanwhile(request.commit):
                push = BackgroundPush(self._root, request.remote, request.commit)

                def build_query() -> ModelQuery:
                    query = self._build_query(request)
                    # Building the query has fetched the checkpoint if it was missing here.
                    push.start()
                    return query

                try:
                    reply = await self._client.request_reply(
                        build_query,
                        partial(self._record_reply, request),
                        compaction_exhausted=request.compaction_exhausted,
                    )
                except ApplicationError as error:
                    if error.type != "ContextTooLong":
                        raise
                    helps = await asyncio.to_thread(self._describe_window, request)
                    raise ApplicationError(
                        error.message,
                        *error.details,
                        helps_detail(helps),
                        type=error.type,
                        non_retryable=error.non_retryable,
                    ) from error
                if behind := await push.wait_for_push():
                    reply.behind = behind
                return reply

    def _describe_window(self, request: ModelRequest) -> str:
        return window_remedy(open_activity_snapshot(self._root, request))

    def _build_query(self, request: ModelRequest) -> ModelQuery:
        snapshot = open_activity_snapshot(self._root, request)
        return ModelQuery(
            snapshot.config.model_chain(snapshot.state.phase.kind),
            lambda model: job_prompt_body(
                snapshot,
                model,
                request.correction,
                must_call=request.must_call,
                only=request.only,
                cache_key=provider_cache_key(activity_job_id(), snapshot.state.phase.number),
            ),
        )

    def _record_reply(self, request: ModelRequest, streamed: StreamedReply) -> ModelReply:
        snapshot = open_activity_snapshot(self._root, request)
        estimate = count_prompt_tokens(snapshot)
        snapshot.state.step = request.step
        snapshot.state.token_ratio = _token_ratio(
            streamed, estimate / snapshot.state.token_ratio, snapshot.state.token_ratio
        )
        snapshot.conversation = snapshot.conversation.append_reply(
            reply_message(request.step, streamed),
            reply_provider_data(request.step, streamed),
        )
        for index, (_, raw) in enumerate(streamed.calls):
            if arguments := wrap_unusable_arguments(raw, cut=streamed.finish == "length"):
                snapshot.keep_arguments(index, arguments)
        if streamed.reasoning:
            snapshot.keep_reasoning(streamed.reasoning)
        # The kept reply has the time at which it came, so that a retry makes the same checkpoint.
        timestamp = max(streamed.received, activity_schedule_time())
        names = ", ".join(name for name, _ in streamed.calls) or "text"
        reply = ModelReply(
            commit=snapshot.save(snapshot.commit_message(new_reply_message(names)), timestamp),
            at=timestamp,
            finish=streamed.finish[:40],
            calls=[
                describe_call_ref(name, raw, snapshot.config.limits.wait_seconds)
                for name, raw in streamed.calls
            ],
            usage=priced_usage(streamed, snapshot.config, estimate),
        )
        metrics.add_model_call_metrics(snapshot.config.name, streamed.model, reply.usage)
        guards = CallGuards(self._root, snapshot)
        if refused := guards.judge_reply(streamed.text or ""):
            reply.guard, reply.refusal = refused.name, refused.message
            metrics.add_refusal_metric(snapshot.config.name, refused.name)
        elif guards.trials:
            reply.trials = guards.trials
        if not streamed.calls:
            reply.context = count_prompt_tokens(snapshot)
            reply.verdict = classify_reply(streamed.text, snapshot.config.wording)
            if streamed.is_refusal:
                reply.verdict = "refuses"
                reply.refused_words = one_line(hide_credentials(streamed.text), REFUSED_CHARACTERS)
        if streamed.dropped_calls:
            reply.dropped = streamed.dropped_calls
        if streamed.is_fallback:
            reply.model = streamed.model
        return reply


def _token_ratio(streamed: StreamedReply, estimate: float, before: float) -> float:
    """Return the endpoint's count of a request for one token of ours; without one what it was.

    It only corrects upwards: some endpoints leave out what they read from their cache.
    """
    is_counted = "usage" not in streamed.missing_parts and not streamed.is_fallback
    if not is_counted or estimate <= 0 or streamed.model == REHEARSAL:
        return before
    return round(min(max(streamed.usage.prompt_tokens / estimate, 1.0), MOST_RATIO), 2)
