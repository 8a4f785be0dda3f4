"""What people should know of a job, project or trial, beside its status."""

from datetime import UTC, datetime
from typing import Any, Literal

from pydantic import ConfigDict, SerializerFunctionWrapHandler, model_serializer

from protocol.data_model import Data

MAX_NOTICES = 20
MOST_TEXT = 500
TIME = "%Y-%m-%d %H:%M:%S UTC"

Topic = Literal[
    "",
    "act",
    "refused signal",
    "refused call",
    "advice",
    "document",
    "folder",
    "model",
    "traces",
    "report",
]


class Notice(Data):
    """An event; only `str(notice)` makes its sentence, and programs read the fields."""

    model_config = ConfigDict(frozen=True)

    text: str
    topic: Topic = ""
    """What it is about, as far as programs distinguish such notices."""
    signal: str = ""
    step: int = 0
    """The step at which it happened; 0 for none in particular."""
    phase: int = 0

    def __str__(self) -> str:
        if self.step:
            return f"step {self.step}: {self.text}"
        return f"phase {self.phase}: {self.text}" if self.phase else self.text

    @model_serializer(mode="wrap")
    def _without_empty_fields(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {key: value for key, value in handler(self).items() if value}


class PersonAct(Data):
    """What a person did to a job, project or trial by a signal."""

    at: int
    by: str = ""
    """The sender; empty when the payload named none."""
    phase: int = 0
    signal: str
    did: str
    """The act as a predicate: `paused the job`."""
    id: str = ""
    """Id of the request that they answered; empty without one."""
    detail: str = ""
    """The person's words, or the subject of the act."""
    refused: str = ""
    edited: bool = False
    to: str = ""
    """The job to which a project passed it; empty if it did not."""

    def __str__(self) -> str:
        """Return `ada@host told the agent at 2026-11-25 11:20:03 UTC: Use metric units.`"""
        if self.refused:
            sender = f" (sent by {self.by})" if self.by else ""
            return f"refused: signal {self.signal}: {self.refused}{sender}"
        if self.to:
            return f"signal {self.signal}: handed on to job {self.to}"
        id_ = f" ({self.id})" if self.id else ""
        return self._sentence(f"{id_} at {datetime.fromtimestamp(self.at, UTC):{TIME}}")

    @property
    def without_time(self) -> str:
        """`ada@host told the agent: Use metric units.`"""
        return self._sentence("")

    @property
    def notice(self) -> Notice:
        topic: Topic = "refused signal" if self.refused else "act"
        return Notice(text=str(self), topic=topic, signal=self.signal)

    def _sentence(self, when: str) -> str:
        detail = f": {self.detail}" if self.detail else ""
        return f"{self.by or 'A person'} {self.did}{when}{detail}"


def as_notice(event: str | Notice) -> Notice:
    notice = event if isinstance(event, Notice) else Notice(text=event)
    return notice.model_copy(update={"text": notice.text[:MOST_TEXT]})
