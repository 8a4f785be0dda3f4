"""The model call: from a checkpoint to the checkpoint that holds the reply."""

from __future__ import annotations

import json
from contextlib import suppress
from functools import partial
from typing import Any

from pydantic_core import from_json
from temporalio import activity

from activities.checkpoints import Root
from activities.guards.call_guards import CallGuards
from activities.job.activity_context import job_id, open_snapshot, scheduled_at
from activities.job.conversation import CUT, MALFORMED, MIXED_UP, call_id
from activities.job.folder import FolderUpdater
from activities.job.push import BackgroundPush
from activities.model.classify import classify_reply
from activities.model.client import ModelClient, ModelQuery
from activities.model.endpoint import Connect
from activities.model.prices import priced_usage
from activities.model.prompt import context_tokens, request_body
from activities.model.providers import cache_key
from activities.model.stream import StreamedReply
from activities.runtime import metrics
from activities.runtime.failures import typed_failures
from activities.runtime.heartbeats import heartbeats
from activities.steps.call_refs import describe_call
from protocol.requests import ModelReply, ModelRequest

NO_ANSWER = "(no answer)"
"""What stands for a reply without text and calls."""


class ModelCalls:
    """The `model_call` activity."""

    def __init__(self, root: Root, connect: Connect) -> None:
        self._root = root
        self._client = ModelClient(root, connect, in_turn=True)
        self._folders = FolderUpdater(root)

    @activity.defn(name="model_call")
    async def model_call(self, request: ModelRequest) -> ModelReply:
        """Ask the model for the next reply and store it.

        The folder is brought up to date meanwhile, and the remote if there is one: a call takes
        long enough for that.
        """
        with typed_failures():
            async with heartbeats(), self._folders.update_meanwhile(request.commit):
                push = BackgroundPush(self._root, request.remote, request.commit)

                def build_query() -> ModelQuery:
                    query = self._build_query(request)
                    # Now it is here, if it was not before.
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
        snapshot = open_snapshot(self._root, request)
        return ModelQuery(
            snapshot.config.model_chain(snapshot.state.phase.kind),
            lambda model: request_body(
                snapshot,
                model,
                request.correction,
                must_call=request.must_call,
                cache_key=cache_key(job_id(), snapshot.state.phase.number),
            ),
        )

    def _record_reply(self, request: ModelRequest, streamed: StreamedReply) -> ModelReply:
        snapshot = open_snapshot(self._root, request)
        estimate = context_tokens(snapshot)
        snapshot.state.step = request.step
        snapshot.conversation = snapshot.conversation.append_reply(
            assistant_message(request.step, streamed), provider_data(request.step, streamed)
        )
        for index, (_, raw) in enumerate(streamed.calls):
            if arguments := unusable_arguments(raw, cut=streamed.finish == "length"):
                snapshot.keep_arguments(index, arguments)
        if streamed.reasoning:
            snapshot.keep_reasoning(streamed.reasoning)
        time_ms = scheduled_at()
        names = ", ".join(name for name, _ in streamed.calls) or "text"
        reply = ModelReply(
            commit=snapshot.save(snapshot.commit_message(f"reply: {names}"), time_ms),
            at=time_ms,
            finish=streamed.finish[:40],
            calls=[
                describe_call(name, raw, snapshot.config.limits.wait_seconds)
                for name, raw in streamed.calls
            ],
            usage=priced_usage(streamed, snapshot.config, estimate),
        )
        metrics.count_model_call(snapshot.config.name, streamed.model, reply.usage)
        guards = CallGuards(self._root, snapshot)
        if refused := guards.judge_reply(streamed.text or ""):
            reply.guard, reply.refusal = refused.name, refused.message
            metrics.count_refusal(snapshot.config.name, refused.name)
        elif guards.trials:
            reply.trials = guards.trials
        if not streamed.calls:
            reply.context = context_tokens(snapshot)
            reply.verdict = classify_reply(streamed.text, snapshot.config.wording)
        if streamed.dropped_calls:
            reply.dropped = streamed.dropped_calls
        if streamed.is_fallback:
            reply.model = streamed.model
        return reply


def assistant_message(step: int, streamed: StreamedReply) -> dict[str, Any]:
    """A reply as the message that the next request holds of it."""
    message: dict[str, Any] = {
        "role": "assistant",
        "content": streamed.text if streamed.text.strip() else None,
    }
    if streamed.calls:
        cut = streamed.finish == "length"
        message["tool_calls"] = [
            {
                "id": call_id(step, index),
                "type": "function",
                "function": {
                    "name": name,
                    # A model would imitate what it finds as a call of its own.
                    "arguments": "{}" if unusable_arguments(raw, cut=cut) else raw or "{}",
                },
            }
            for index, (name, raw) in enumerate(streamed.calls)
        ]
    elif message["content"] is None:
        # Some endpoints refuse a conversation in which a message has nothing but white space.
        message["content"] = NO_ANSWER
    return message


def provider_data(step: int, streamed: StreamedReply) -> dict[str, Any] | None:
    """What lies beside that message: what only its maker gets, None if there is nothing."""
    data: dict[str, Any] = {}
    if streamed.items:
        function_calls = [item for item in streamed.items if item.get("type") == "function_call"]
        ids = {call_id(step, index): call["call_id"] for index, call in enumerate(function_calls)}
        data = {"items": streamed.items, "ids": ids}
    if streamed.fields:
        data["fields"] = streamed.fields
    if streamed.extras:
        data["extras"] = streamed.extras
    return {"maker": streamed.maker, **data} if data else None


def unusable_arguments(raw: str, *, cut: bool) -> str:
    """Arguments that may not be sent back, as the tool is to find them; empty for all others.

    Endpoints refuse a conversation in which they are no object or broken JSON, which to a strict
    parser are NaN and half of a character as well.
    """
    with suppress(ValueError):
        parsed = from_json(raw or "{}", allow_inf_nan=False)
        if isinstance(parsed, dict):
            return raw if MIXED_UP in parsed else ""
    return json.dumps({CUT if cut else MALFORMED: raw[:2000]}, ensure_ascii=False)
