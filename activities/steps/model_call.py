"""The model call: from a checkpoint to the checkpoint with the reply."""

from __future__ import annotations

import json
from contextlib import suppress
from functools import partial
from typing import Any

from pydantic_core import from_json
from temporalio import activity

from activities.checkpoints import Root
from activities.guards.call_guards import CallGuards
from activities.job.activity_context import (
    activity_job_id,
    activity_schedule_time,
    open_activity_snapshot,
)
from activities.job.checkpoint_push import BackgroundPush
from activities.job.conversation import CUT, MALFORMED, MIXED_UP, conversation_call_id
from activities.job.job_folder import JobFolderUpdater
from activities.model.client import ModelClient, ModelQuery
from activities.model.endpoint import Connect
from activities.model.prices import priced_usage
from activities.model.prompt import count_prompt_tokens, job_prompt_body
from activities.model.providers import provider_cache_key
from activities.model.reply_classification import classify_reply
from activities.model.reply_stream import StreamedReply
from activities.runtime import metrics
from activities.runtime.failures import typed_failures
from activities.runtime.heartbeats import heartbeats
from activities.steps.call_refs import describe_call_ref
from protocol.requests import ModelReply, ModelRequest

NO_ANSWER = "(no answer)"
"""Content stored for a reply without text and calls."""


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

                reply = await self._client.request_reply(
                    build_query,
                    partial(self._record_reply, request),
                    compaction_exhausted=request.compaction_exhausted,
                )
                if behind := await push.wait_for_push():
                    reply.behind = behind
                return reply

    def _build_query(self, request: ModelRequest) -> ModelQuery:
        snapshot = open_activity_snapshot(self._root, request)
        return ModelQuery(
            snapshot.config.model_chain(snapshot.state.phase.kind),
            lambda model: job_prompt_body(
                snapshot,
                model,
                request.correction,
                must_call=request.must_call,
                cache_key=provider_cache_key(activity_job_id(), snapshot.state.phase.number),
            ),
        )

    def _record_reply(self, request: ModelRequest, streamed: StreamedReply) -> ModelReply:
        snapshot = open_activity_snapshot(self._root, request)
        estimate = count_prompt_tokens(snapshot)
        snapshot.state.step = request.step
        snapshot.conversation = snapshot.conversation.append_reply(
            model_call_message(request.step, streamed),
            model_call_provider_data(request.step, streamed),
        )
        for index, (_, raw) in enumerate(streamed.calls):
            if arguments := wrap_unusable_call_arguments(raw, cut=streamed.finish == "length"):
                snapshot.keep_arguments(index, arguments)
        if streamed.reasoning:
            snapshot.keep_reasoning(streamed.reasoning)
        time_ms = activity_schedule_time()
        names = ", ".join(name for name, _ in streamed.calls) or "text"
        reply = ModelReply(
            commit=snapshot.save(snapshot.commit_message(f"reply: {names}"), time_ms),
            at=time_ms,
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
        if streamed.dropped_calls:
            reply.dropped = streamed.dropped_calls
        if streamed.is_fallback:
            reply.model = streamed.model
        return reply


def model_call_message(step: int, streamed: StreamedReply) -> dict[str, Any]:
    """Return the reply as a message for later requests."""
    message: dict[str, Any] = {
        "role": "assistant",
        "content": streamed.text if streamed.text.strip() else None,
    }
    if streamed.calls:
        cut = streamed.finish == "length"
        message["tool_calls"] = [
            {
                "id": conversation_call_id(step, index),
                "type": "function",
                "function": {
                    "name": name,
                    # Models imitate calls they find in the conversation, so broken ones are hidden.
                    "arguments": "{}"
                    if wrap_unusable_call_arguments(raw, cut=cut)
                    else raw or "{}",
                },
            }
            for index, (name, raw) in enumerate(streamed.calls)
        ]
    elif message["content"] is None:
        # Some endpoints refuse messages that consist only of white space.
        message["content"] = NO_ANSWER
    return message


def model_call_provider_data(step: int, streamed: StreamedReply) -> dict[str, Any] | None:
    """Return data stored beside the message for its provider only; None if there is none."""
    data: dict[str, Any] = {}
    if streamed.items:
        function_calls = [item for item in streamed.items if item.get("type") == "function_call"]
        ids = {
            conversation_call_id(step, index): call["call_id"]
            for index, call in enumerate(function_calls)
        }
        data = {"items": streamed.items, "ids": ids}
    if streamed.fields:
        data["fields"] = streamed.fields
    if streamed.extras:
        data["extras"] = streamed.extras
    return {"maker": streamed.maker, **data} if data else None


def wrap_unusable_call_arguments(raw: str, *, cut: bool) -> str:
    """Return arguments that may not be sent back, wrapped as the tool will get them; empty if
    valid.

    Endpoints refuse a conversation with arguments that are no JSON object, which for strict parsers
    includes NaN and lone surrogates.
    """
    with suppress(ValueError):
        parsed = from_json(raw or "{}", allow_inf_nan=False)
        if isinstance(parsed, dict):
            return raw if MIXED_UP in parsed else ""
    return json.dumps({CUT if cut else MALFORMED: raw[:2000]}, ensure_ascii=False)
