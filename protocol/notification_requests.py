"""Notifications to people: destinations, occasions and content."""

from typing import Literal
from urllib.parse import urlsplit

from pydantic import Field

from protocol.data_model import Data

JobOccasion = Literal["waiting", "limit", "blocked", "end"]
Occasion = Literal[JobOccasion, "digest"]
OCCASIONS: tuple[JobOccasion, ...] = ("waiting", "limit", "blocked", "end")
DIGEST: Occasion = "digest"
MOST_CONTENT = 2000
NOTIFY = "/notify/"
"""Between the job and the notification's key in the id of the workflow that sends it."""
RECIPIENTS, LOST = "to", "lost"
"""Keys of that workflow's memo: the names of all recipients, and whom it did not reach."""


class Destination(Data):
    on: list[Occasion]
    url: str = ""
    url_variable: str = ""
    headers: dict[str, str] = Field(default_factory=dict)
    command: str = ""
    name: str = ""
    timeout: float = 10
    environment: list[str] = Field(default_factory=list)

    @property
    def title(self) -> str:
        """A name that is no secret: of the hook, the variable, or the host."""
        return self.name or self.url_variable or urlsplit(self.url).hostname or "the address"


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
    team: str = ""
    """The team of the job, as metrics have it."""


class Sending(Data):
    notification: Notification
    to: Destination
    number: int


class Sent(Data):
    status: int = 0
    """HTTP status; 0 for a hook, or when an earlier attempt had already arrived."""


class LostNotification(Data):
    """A recipient whom a notification did not reach, as the memo of its workflow has it."""

    to: str
    """Its name."""
    why: str
    """Why the last attempt failed."""


class Notifying(Data):
    """Whom a job or project notifies, and what it has notified them of."""

    to: list[Destination] = Field(default_factory=list)
    team: str = ""
    """Its team, as metrics have it."""
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
