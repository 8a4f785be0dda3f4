"""Calling people: where to, on which occasions, and what they read."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from protocol.state import Data

Occasion = Literal["waiting", "limit", "blocked", "end"]
OCCASIONS: tuple[Occasion, ...] = ("waiting", "limit", "blocked", "end")
MOST_CONTENT = 2000


class Destination(Data):
    """One address or one hook."""

    on: list[Occasion]
    url: str = ""
    url_variable: str = ""
    headers: dict[str, str] = Field(default_factory=dict)
    command: str = ""
    """Of a hook."""
    name: str = ""
    timeout: float = 10
    environment: list[str] = Field(default_factory=list)


class Notification(Data):
    """What a person is called for. Everything but `content` is names, words of ours and figures."""

    key: str
    """The same for every attempt to send it, and for no other."""
    event: Occasion
    job: str
    """The job or project that it is about."""
    project: str = ""
    """Whose job that is."""
    agent: str = ""
    status: str
    reason: str = ""
    """A word: why it waits, which limit, which feature, how it ended."""
    text: str
    """All of it in a sentence or two."""
    remedy: str = ""
    command: str = ""
    """What a person types."""
    content: str = ""


class NotifyRequest(Data):
    """Input of the workflow `Notify`."""

    notification: Notification
    to: list[Destination] = Field(max_length=50)


class Sending(Data):
    """One notification to one destination."""

    notification: Notification
    to: Destination
    number: int
    """Of the destination, among those of the notification."""


class Sent(Data):
    """What came of it."""

    status: int = 0
    """That of the answer; 0 for a hook, and where an earlier attempt had arrived."""


class Notifying(Data):
    """Whom a job or project calls, and what it has called them for."""

    to: list[Destination] = Field(default_factory=list)
    content: bool = False
    count: int = 0
    """Notifications so far."""
    waits: dict[str, str] = Field(default_factory=dict)
    """By job, the wait that people were called for; removed once it ends."""
    asked: str = ""
    """Id of the question or request that a person was called for last."""
    limits: list[str] = Field(default_factory=list)
    """Limits of which 80 % are used."""
    blocked: list[str] = Field(default_factory=list)
    ended: bool = False
