"""The model call: from a checkpoint to the checkpoint that holds the reply."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import Any

import openai
from pydantic import ValidationError
from temporalio import activity

from activities.checkpoints import Root, open_checkpoints
from activities.conversation import MALFORMED, call_id
from activities.failures import typed
from activities.folder import Follower
from activities.heartbeats import heartbeats, still_wanted
from activities.model.endpoint import Connect, explain
from activities.model.prices import priced
from activities.model.prompt import request_body
from activities.model.replies import Replies
from activities.model.stream import Streamed, stream_reply
from activities.opening import attempt_key, job_id, open_snapshot, scheduled_at
from activities.plain import plain
from config.schema import ModelConfig
from protocol.requests import Call, ModelReply, ModelRequest

MAX_NAME = 100
MAX_PATH = 120
UNREADABLE = (ValueError, TypeError, AttributeError, LookupError, OSError)
"""What comes of an answer that is not the protocol's: the client checks its form nowhere."""


class ModelCalls:
    """The `model_call` activity."""

    def __init__(self, root: Root, connect: Connect) -> None:
        self._root = root
        self._connect = connect
        self._folders = Follower(root)

    @activity.defn(name="model_call")
    async def model_call(self, request: ModelRequest) -> ModelReply:
        """Ask the model for the next reply and store it.

        The folder is brought up to date meanwhile: a call takes long enough for that.
        """
        with typed():
            async with heartbeats():
                streamed, model, body = await asyncio.to_thread(self._before, request)
                if streamed is not None:
                    return await asyncio.to_thread(self._after, request, streamed)
                await still_wanted()
                async with self._folders.following(request.commit):
                    streamed = await ask(self._connect, model, body)
                    return await asyncio.to_thread(self._received, request, streamed)

    def _before(self, request: ModelRequest) -> tuple[Streamed | None, ModelConfig, bytes]:
        snapshot = open_snapshot(self._root, request)
        data = Replies(snapshot.checkpoints).find(attempt_key())
        if data is not None:
            # One that a power cut left garbled counts as none.
            with suppress(ValidationError):
                return Streamed.model_validate_json(data), snapshot.config.model, b""
        return None, snapshot.config.model, request_body(snapshot, request.correction)

    def _received(self, request: ModelRequest, streamed: Streamed) -> ModelReply:
        # Kept at once, before anything else can fail: it is paid for.
        checkpoints = open_checkpoints(self._root, job_id())
        Replies(checkpoints).keep(attempt_key(), streamed.model_dump_json().encode())
        return self._after(request, streamed)

    def _after(self, request: ModelRequest, streamed: Streamed) -> ModelReply:
        snapshot = open_snapshot(self._root, request)
        snapshot.state.step = request.step
        snapshot.conversation = snapshot.conversation.append(_message(request.step, streamed))
        at = scheduled_at()
        names = ", ".join(name[:MAX_NAME] for name, _ in streamed.calls) or "text"
        return ModelReply(
            commit=snapshot.save(snapshot.story(f"reply: {names}"), at),
            at=at,
            finish=streamed.finish[:40],
            calls=[Call(tool=name[:MAX_NAME], path=_path(raw)) for name, raw in streamed.calls],
            usage=priced(streamed.usage, snapshot.config),
        )


async def ask(connect: Connect, model: ModelConfig, body: bytes) -> Streamed:
    """One request; whatever goes wrong is a typed failure."""
    try:
        return await stream_reply(connect(model), body)
    except (openai.OpenAIError, *UNREADABLE) as error:
        raise explain(error, model) from error


def _message(step: int, streamed: Streamed) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": streamed.text or None}
    if streamed.calls:
        message["tool_calls"] = [
            {
                "id": call_id(step, index),
                "type": "function",
                "function": {"name": name[:MAX_NAME] or "unnamed", "arguments": _sendable(raw)},
            }
            for index, (name, raw) in enumerate(streamed.calls)
        ]
    elif not streamed.text:
        message["content"] = ""
    return message


def _sendable(raw: str) -> str:
    """Arguments as they may be sent back: endpoints refuse a conversation with broken JSON."""
    try:
        json.loads(raw or "{}")
    except (ValueError, RecursionError):
        return json.dumps({MALFORMED: raw[:2000]}, ensure_ascii=False)
    return raw or "{}"


def _path(raw: str) -> str | None:
    """The path a call is about, for people who read the history."""
    try:
        arguments = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    path = arguments.get("path") if isinstance(arguments, dict) else None
    return plain(path[:MAX_PATH]) if isinstance(path, str) else None
