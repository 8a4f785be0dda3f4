"""Observation of running activities; a no-op unless traces or metrics are exported.

The worker sets a watcher before an activity runs (`engine.otel`). It receives the job's position
and figures of model calls, but no prompts, arguments or results.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from protocol.usage import Usage

if TYPE_CHECKING:
    from openai import AsyncOpenAI

    from config.schema.model_settings import ModelConfig


class TracedReply(Protocol):
    """The measured parts of a model's reply."""

    @property
    def usage(self) -> Usage: ...

    @property
    def answered_by(self) -> str: ...

    @property
    def finish(self) -> str: ...


ReplyCallback = Callable[[TracedReply], None]


@dataclass(frozen=True)
class ModelRequest:
    model: str
    host: str
    port: int | None
    max_tokens: int
    temperature: float | None
    stream: bool


class ActivityTracer(Protocol):
    def note_position(self, agent: str, phase: int, step: int) -> None:
        """Record the agent and position of the opened checkpoint."""

    def tool(self, name: str, call: str) -> None:
        """Record that the activity runs this tool call."""

    def chat(self, request: ModelRequest) -> AbstractContextManager[ReplyCallback]:
        """Wrap a request to a model's endpoint."""


WATCHER: ContextVar[ActivityTracer | None] = ContextVar("WATCHER", default=None)


PLACE: ContextVar[dict[str, int] | None] = ContextVar("PLACE", default=None)
"""Phase and step of the running activity, for log records."""


def begin_activity_tracing() -> None:
    """Share positions noted by the activity's threads with the whole activity."""
    PLACE.set({})


def trace_activity_position(agent: str, phase: int, step: int) -> None:
    place = PLACE.get()
    if place is None:
        PLACE.set(place := {})
    place.update(phase=phase, step=step)
    if watcher := WATCHER.get():
        watcher.note_position(agent, phase, step)


def trace_activity_tool(name: str, call: str) -> None:
    if watcher := WATCHER.get():
        watcher.tool(name, call)


def trace_activity_model_call(
    model: ModelConfig, client: AsyncOpenAI
) -> AbstractContextManager[ReplyCallback]:
    watcher = WATCHER.get()
    if watcher is None:
        return nullcontext(lambda _: None)
    where = client.base_url
    return watcher.chat(
        ModelRequest(
            model.name, where.host, where.port,
            model.max_output_tokens, model.temperature, model.stream,
        )
    )  # fmt: skip
