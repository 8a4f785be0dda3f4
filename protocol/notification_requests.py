"""Notifications to people: destinations, occasions and content."""

from typing import Literal

from pydantic import Field

from protocol.data_model import Data

JobOccasion = Literal["waiting", "limit", "blocked", "end"]
Occasion = Literal[JobOccasion, "digest"]
OCCASIONS: tuple[JobOccasion, ...] = ("waiting", "limit", "blocked", "end")
DIGEST: Occasion = "digest"
MOST_CONTENT = 2000


class Destination(Data):
    on: list[Occasion]
    url: str = ""
    url_variable: str = ""
    headers: dict[str, str] = Field(default_factory=dict)
    command: str = ""
    name: str = ""
    timeout: float = 10
    environment: list[str] = Field(default_factory=list)


class Notification(Data):
    """A notification. Everything but `content` is names, fixed words and figures."""

    key: str
    """Unique per notification, and the same for every attempt to send it."""
    event: Occasion
    job: str
    project: str = ""
    agent: str = ""
    status: str
    reason: str = ""
    """One word: the reason of the wait, the limit, the feature, or the outcome."""
    text: str
    remedy: str = ""
    command: str = ""
    content: str = ""


class NotifyRequest(Data):
    notification: Notification
    to: list[Destination] = Field(max_length=50)


class Sending(Data):
    notification: Notification
    to: Destination
    number: int


class Sent(Data):
    status: int = 0
    """HTTP status; 0 for a hook, or when an earlier attempt had already arrived."""


class Notifying(Data):
    """Whom a job or project notifies, and what it has notified them of."""

    to: list[Destination] = Field(default_factory=list)
    content: bool = False
    count: int = 0
    waits: dict[str, str] = Field(default_factory=dict)
    """The wait that people were notified of, by job; removed when the wait ends."""
    asked: str = ""
    """Id of the last question or request that a person was notified of."""
    limits: list[str] = Field(default_factory=list)
    """Limits that are 80 % used."""
    blocked: list[str] = Field(default_factory=list)
    ended: bool = False
