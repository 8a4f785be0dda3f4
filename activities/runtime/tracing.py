"""What watches an activity at work: nothing, unless traces or metrics are exported.

The worker puts a watcher here before an activity runs (`engine.otel`). It learns where the job
stands and how model calls went; prompts, arguments and results it may not let out.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from protocol.requests import Usage

if TYPE_CHECKING:
    from openai import AsyncOpenAI

    from config.schema.agent_sections import ModelConfig


class ChatReply(Protocol):
    """What of a model's reply is measured."""

    @property
    def usage(self) -> Usage: ...

    @property
    def answered_by(self) -> str: ...

    @property
    def finish(self) -> str: ...


ReplyCallback = Callable[[ChatReply], None]
"""To be called with the reply."""


@dataclass(frozen=True)
class ModelRequest:
    """A request to a model, without what is asked."""

    model: str
    host: str
    port: int | None
    max_tokens: int
    temperature: float | None
    stream: bool


class ActivityWatcher(Protocol):
    def note_position(self, agent: str, phase: int, step: int) -> None:
        """Whose checkpoint was opened, and where it stands."""

    def tool(self, name: str, call: str) -> None:
        """The activity runs this call of a tool."""

    def chat(self, request: ModelRequest) -> AbstractContextManager[ReplyCallback]:
        """Around a request to a model's endpoint."""


WATCHER: ContextVar[ActivityWatcher | None] = ContextVar("WATCHER", default=None)


PLACE: ContextVar[dict[str, int] | None] = ContextVar("PLACE", default=None)
"""Phase and step of the activity at work, for what is logged meanwhile."""


def begin_activity() -> None:
    """What a thread of the activity finds out by `note_position` is known in all of it."""
    PLACE.set({})


def note_position(agent: str, phase: int, step: int) -> None:
    place = PLACE.get()
    if place is None:
        PLACE.set(place := {})
    place.update(phase=phase, step=step)
    if watcher := WATCHER.get():
        watcher.note_position(agent, phase, step)


def note_tool(name: str, call: str) -> None:
    if watcher := WATCHER.get():
        watcher.tool(name, call)


def watch_model_call(
    model: ModelConfig, client: AsyncOpenAI
) -> AbstractContextManager[ReplyCallback]:
    watcher = WATCHER.get()
    if watcher is None:
        return nullcontext(_ignore_reply)
    where = client.base_url
    return watcher.chat(
        ModelRequest(
            model.name, where.host, where.port,
            model.max_output_tokens, model.temperature, model.stream,
        )
    )  # fmt: skip


def _ignore_reply(reply: ChatReply) -> None:
    return None
