"""The schema of `notify`: recipients, and the addresses that notifications can go to."""

import re
from typing import Annotated, Self
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from pydantic import Field, field_validator, model_validator
from pydantic_core import PydanticCustomError

from config.schema.config_data import ConfigData
from config.schema.mcp_servers import Variable
from protocol.notification_requests import OCCASIONS, JobOccasion

HeaderName = Annotated[str, Field(pattern=r"^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}$")]
MOST_ADDRESS = 2000
RESERVED = ("content-length", "content-type", "host", "idempotency-key", "transfer-encoding")
"""Headers that Longhaul sets itself."""


def notification_address_fault(url: str) -> str:
    """Why no notification can be sent to this address; empty when one can.

    The reason does not repeat the address: it may be a credential.
    """
    if not 0 < len(url) <= MOST_ADDRESS:
        return f"expected an address of at most {MOST_ADDRESS:,} characters"
    if re.search(r"[\s\x00-\x1f\x7f\\]", url):
        return "the address has white space, a backslash or control characters"
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        return f"not an address ({error})"
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return "expected http:// or https:// and a host"
    if port == 0:
        return "there is no port 0"
    if parts.username is not None or parts.password is not None:
        return "the address holds a user name or password; put them into a header, under `headers`"
    return "a fragment (#…) is never sent; leave it out" if parts.fragment else ""


def digest_time(digest: str) -> tuple[int, int, str]:
    """Return hour, minute and zone of `08:00 Europe/Berlin`. Raises ValueError."""
    clock, _, zone = digest.partition(" ")
    if not re.fullmatch(r"([01][0-9]|2[0-3]):[0-5][0-9]", clock):
        raise ValueError("expected a time of day such as 08:00 or 08:00 Europe/Berlin")
    try:
        ZoneInfo(zone or "UTC")
    except (KeyError, ValueError, OSError):
        raise ValueError(f"{zone[:40]} is no time zone that is known here") from None
    return int(clock[:2]), int(clock[3:]), zone or "UTC"


class Notify(ConfigData):
    """Recipients of notifications by HTTP."""

    url: str | None = None
    """Address to which notifications are sent by POST, as a JSON object."""
    url_variable: Variable | None = None
    """Variable of the worker with the address, if the address is a credential."""
    headers: dict[HeaderName, Variable] = Field(default_factory=dict, max_length=20)
    """HTTP headers, each with the name of the worker's variable that has the whole value."""
    on: list[JobOccasion] = Field(list(OCCASIONS), min_length=1)
    """Occasions: the job waits for a person, 80 % of a limit, a blocked feature, group or stage,
    the end."""
    digest: str | None = None
    """Time of a daily message on all jobs of the agents that have it, such as `08:00` (UTC) or
    `08:00 Europe/Berlin`; null: none."""
    content: bool = False
    """Whether the address and hooks also receive title, question, summary and reasons; else only
    names and a word for the reason."""

    @field_validator("url")
    @classmethod
    def _check_notification_url(cls, url: str | None) -> str | None:
        if url is not None and (why := notification_address_fault(url)):
            # Errors of this type are reported without the value, which may be a credential.
            raise PydanticCustomError("credential", "{why}", {"why": why})
        return url

    @field_validator("digest")
    @classmethod
    def _check_digest_time(cls, digest: str | None) -> str | None:
        if digest is not None:
            digest_time(digest)
        return digest

    @model_validator(mode="after")
    def _check_notification_address(self) -> Self:
        if self.url is not None and self.url_variable is not None:
            raise ValueError("expected either url or url_variable")
        if self.headers and self.url is None and self.url_variable is None:
            raise ValueError("headers are of an address: expected url or url_variable")
        if reserved := [name for name in self.headers if name.lower() in RESERVED]:
            raise ValueError(f"headers: {reserved[0]} is set by the system")
        return self
