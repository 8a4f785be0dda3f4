"""Request and reply of the daily digest: what was done, what waits, and what it cost."""

from pydantic import Field

from protocol.data_model import Data
from protocol.notification_requests import Destination, Notification
from protocol.requests import Reply
from protocol.usage import Spend


class DigestMark(Reply):
    """Where the last digest ended; the result of its workflow, which the next one begins with."""

    at: int = 0
    """Epoch seconds; 0 before the first digest."""
    spent: dict[str, Spend] = Field(default_factory=dict)
    """What each open job had spent by then."""
    ended: list[str] = Field(default_factory=list)
    """The runs whose end it reported."""


class DigestRequest(Data):
    digest: str
    """The time, as `notify.digest` of the configuration has it."""
    since: DigestMark = Field(default_factory=DigestMark)


class DigestMessage(Data):
    notification: Notification
    to: list[Destination]


class DigestReply(Reply):
    messages: list[DigestMessage] = Field(default_factory=list)
    mark: DigestMark
