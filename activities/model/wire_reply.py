"""What the readers of both APIs have in common: the end of a reply, and an error in its place."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from activities.model.call_assembly import ReadCall
from activities.model.endpoint_wordings import FAILED_FINISH

EMPTY_STREAM = "the stream ended without a word of a reply"
MESSAGES = ("message", "detail", "msg", "error_msg", "status_msg", "error_message")
"""Where an error says what is wrong."""


class WireReply(ABC):
    """A reply, as far as it has come by one of the APIs."""

    prompt_count: ClassVar[str]
    """Name of the prompt's tokens in the usage."""
    usage: object = None
    model: object = ""
    finish = ""
    """The finish reason in terms of Chat Completions; empty if none came."""
    is_over = False
    """Whether its end has come."""
    is_thinking = False
    """Whether the model is working on hidden output, so that silence means nothing."""
    is_refusal = False
    """Whether the model marked its text as a refusal."""

    @abstractmethod
    def add(self, event: dict[str, Any], name: str) -> None:
        """Read one event of a stream; `name` is that of its `event` line."""

    @abstractmethod
    def add_whole(self, answer: dict[str, Any]) -> None:
        """Read a reply that came in one piece."""

    @abstractmethod
    def close(self) -> None:
        """Handle a connection that was closed in order, without a final event."""

    def end_stream(self) -> None:
        self.is_over = True

    @property
    @abstractmethod
    def is_complete(self) -> bool:
        """Whether it ended, and says something."""

    @property
    @abstractmethod
    def partial_characters(self) -> int:
        """Characters of everything that has come."""

    @property
    @abstractmethod
    def cut_message(self) -> str:
        """Why it is not complete."""

    @property
    @abstractmethod
    def text(self) -> str: ...

    @property
    @abstractmethod
    def reasoning_text(self) -> str: ...

    @abstractmethod
    def read_calls(self, tools: frozenset[str]) -> list[ReadCall]:
        """Return the calls in order, each once; `tools` are the names in the request."""

    def fields(self) -> dict[str, Any]:
        return {}

    def returnable_items(self) -> list[dict[str, Any]]:
        """Return what goes back unchanged instead of our form; empty if it cannot."""
        return []


def reply_event_kind(event: dict[str, Any], name: str) -> str:
    kind = event.get("type")
    return kind if kind and isinstance(kind, str) else name


def reply_event_error(event: dict[str, Any], name: str = "") -> object:
    """Return the error that an event or an answer reports, wherever it is; None without one."""
    if error := event.get("error"):
        return error
    kind, response = reply_event_kind(event, name), event.get("response")
    if kind in ("error", "response.error"):
        return event
    for each in (response, event if event.get("object") == "response" else None):
        if isinstance(each, dict) and (error := each.get("error")):
            return error
        if isinstance(each, dict) and (kind == "response.failed" or each.get("status") == "failed"):
            return {"message": "the reply failed"}
    if kind == "response.failed":
        return {"message": "the reply failed"}
    for choice in event.get("choices") or []:
        if error := choice.get("error") or (choice.get("message") or {}).get("error"):
            return error
        finish = choice.get("finish_reason")
        if isinstance(finish, str) and FAILED_FINISH.search(finish):
            return {"message": f"it ended with the finish_reason {finish}", "code": finish}
    return _bare_failure(event, kind, response)


def _bare_failure(event: dict[str, Any], kind: str, response: object) -> object:
    """Return an event that is itself an error: words without any part of a reply."""
    status = event.get("base_resp")
    if isinstance(status, dict) and status.get("status_code"):
        return {"code": status["status_code"], "message": status.get("status_msg")}
    if response is not None or kind.startswith("response.") or "choices" in event:
        return None
    return event if any(isinstance(event.get(key), str) for key in MESSAGES) else None


def reply_failure_message(error: object) -> str:
    """Return what an error says; a sentence of our own if it says nothing."""
    if isinstance(error, dict):
        texts = (error.get(key) for key in MESSAGES)
        error = next((text for text in texts if text and isinstance(text, str)), "")
    return error if error and isinstance(error, str) else "An error occurred during streaming"
