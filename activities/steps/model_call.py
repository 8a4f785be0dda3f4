"""The model call: from a checkpoint to the checkpoint that holds the reply."""

from __future__ import annotations

import json
from contextlib import suppress
from functools import partial
from typing import Any

from pydantic_core import from_json
from temporalio import activity

from activities.checkpoints import Root
from activities.guards.calls import Guards
from activities.job.activity_context import job_id, open_snapshot, scheduled_at
from activities.job.conversation import CUT, MALFORMED, MIXED_UP, call_id
from activities.job.folder import Follower
from activities.job.push import PushedMeanwhile
from activities.model.classify import classify
from activities.model.client import Asking, Question
from activities.model.endpoint import Connect
from activities.model.prices import priced
from activities.model.prompt import context_tokens, request_body
from activities.model.providers import cache_key
from activities.model.stream import Streamed
from activities.runtime import metrics
from activities.runtime.failures import typed
from activities.runtime.heartbeats import heartbeats
from activities.steps.call_refs import called
from protocol.requests import ModelReply, ModelRequest

SILENT = "(no answer)"
"""What stands for a reply without text and calls."""


class ModelCalls:
    """The `model_call` activity."""

    def __init__(self, root: Root, connect: Connect) -> None:
        self._root = root
        self._asking = Asking(root, connect, in_turn=True)
        self._folders = Follower(root)

    @activity.defn(name="model_call")
    async def model_call(self, request: ModelRequest) -> ModelReply:
        """Ask the model for the next reply and store it.

        The folder is brought up to date meanwhile, and the remote if there is one: a call takes
        long enough for that.
        """
        with typed():
            async with heartbeats(), self._folders.following(request.commit):
                push = PushedMeanwhile(self._root, request.remote, request.commit)

                def question() -> Question:
                    asked = self._question(request)
                    # Now it is here, if it was not before.
                    push.begin()
                    return asked

                reply = await self._asking.ask(
                    question, partial(self._after, request), squeezed=request.compaction_exhausted
                )
                if behind := await push.behind():
                    reply.behind = behind
                return reply

    def _question(self, request: ModelRequest) -> Question:
        snapshot = open_snapshot(self._root, request)
        return Question(
            snapshot.config.chain(snapshot.state.phase.kind),
            lambda model: request_body(
                snapshot,
                model,
                request.correction,
                must_call=request.must_call,
                cache_key=cache_key(job_id(), snapshot.state.phase.number),
            ),
        )

    def _after(self, request: ModelRequest, streamed: Streamed) -> ModelReply:
        snapshot = open_snapshot(self._root, request)
        estimate = context_tokens(snapshot)
        snapshot.state.step = request.step
        snapshot.conversation = snapshot.conversation.append_reply(
            assistant_message(request.step, streamed), provider_data(request.step, streamed)
        )
        for index, (_, raw) in enumerate(streamed.calls):
            if arguments := unusable(raw, cut=streamed.finish == "length"):
                snapshot.keep_arguments(index, arguments)
        if streamed.reasoning:
            snapshot.keep_reasoning(streamed.reasoning)
        at = scheduled_at()
        names = ", ".join(name for name, _ in streamed.calls) or "text"
        reply = ModelReply(
            commit=snapshot.save(snapshot.story(f"reply: {names}"), at),
            at=at,
            finish=streamed.finish[:40],
            calls=[
                called(name, raw, snapshot.config.limits.wait_seconds)
                for name, raw in streamed.calls
            ],
            usage=priced(streamed, snapshot.config, estimate),
        )
        metrics.model_call(snapshot.config.name, streamed.model, reply.usage)
        guards = Guards(self._root, snapshot)
        if refused := guards.reply(streamed.text or ""):
            reply.guard, reply.refusal = refused.name, refused.message
            metrics.refusal(snapshot.config.name, refused.name)
        elif guards.trials:
            reply.trials = guards.trials
        if not streamed.calls:
            reply.context = context_tokens(snapshot)
            reply.verdict = classify(streamed.text, snapshot.config.wording)
        if streamed.dropped:
            reply.dropped = streamed.dropped
        if streamed.is_fallback:
            reply.model = streamed.model
        return reply


def assistant_message(step: int, streamed: Streamed) -> dict[str, Any]:
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
                    "arguments": "{}" if unusable(raw, cut=cut) else raw or "{}",
                },
            }
            for index, (name, raw) in enumerate(streamed.calls)
        ]
    elif message["content"] is None:
        # Some endpoints refuse a conversation in which a message has nothing but white space.
        message["content"] = SILENT
    return message


def provider_data(step: int, streamed: Streamed) -> dict[str, Any] | None:
    """What lies beside that message: what only its maker gets, None if there is nothing."""
    own: dict[str, Any] = {}
    if streamed.items:
        called = [item for item in streamed.items if item.get("type") == "function_call"]
        ids = {call_id(step, index): call["call_id"] for index, call in enumerate(called)}
        own = {"items": streamed.items, "ids": ids}
    if streamed.fields:
        own["fields"] = streamed.fields
    if streamed.extras:
        own["extras"] = streamed.extras
    return {"maker": streamed.maker, **own} if own else None


def unusable(raw: str, *, cut: bool) -> str:
    """Arguments that may not be sent back, as the tool is to find them; empty for all others.

    Endpoints refuse a conversation in which they are no object or broken JSON, which to a strict
    parser are NaN and half of a character as well.
    """
    with suppress(ValueError):
        given = from_json(raw or "{}", allow_inf_nan=False)
        if isinstance(given, dict):
            return raw if MIXED_UP in given else ""
    return json.dumps({CUT if cut else MALFORMED: raw[:2000]}, ensure_ascii=False)
