"""Hosts that commands may reach, as the configuration names them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import ip_address

DEFAULT_PORTS = frozenset({80, 443})
_ENTRY = re.compile(r"(?:\[(?P<six>[^\]]+)\]|(?P<host>[^:\[\]]+))(?::(?P<port>\d{1,5}))?")
_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_NAME = re.compile(rf"(?:\*\.)?(?:{_LABEL}\.)*(?=[^.]*[a-z]){_LABEL}")


@dataclass(frozen=True)
class HostEntry:
    """One entry: a name, `*.` and a name, or an address, with or without a port."""

    host: str
    port: int | None
    is_address: bool

    @property
    def may_be_private(self) -> bool:
        """Whether it may lead to an address that is not public: it names one place exactly."""
        return self.is_address or (self.port is not None and not self.host.startswith("*."))

    def covers_place(self, host: str, port: int) -> bool:
        """Return whether the entry allows this host, in the form of `plain_host`, and port."""
        if port not in ({self.port} if self.port is not None else DEFAULT_PORTS):
            return False
        return host == self.host or (self.host[:2] == "*." and host.endswith(self.host[1:]))


def plain_host(host: str) -> str:
    """Return a name in lower case without a final dot, or an address in its usual spelling."""
    try:
        return str(ip_address(host.strip("[]")))
    except ValueError:
        return host.lower().removesuffix(".")


def parse_host_entry(text: str) -> HostEntry:
    """Read one entry of the configuration.

    Raises:
        ValueError: It is invalid; the message lists the valid forms.
    """
    forms = "expected a host such as pypi.org, *.example.com, localhost:4873, 10.0.0.5 or [::1]:80"
    try:
        return HostEntry(str(ip_address(text)), None, is_address=True)
    except ValueError:
        parts = _ENTRY.fullmatch(text)
    port = int(parts["port"]) if parts and parts["port"] else None
    if parts is None or port == 0 or (port or 0) > 65_535:
        raise ValueError(f"{forms}; {text!r} is none")
    host = plain_host(parts["six"] or parts["host"])
    try:
        return HostEntry(str(ip_address(host)), port, is_address=True)
    except ValueError:
        if parts["six"] or not _NAME.fullmatch(host):
            raise ValueError(f"{forms}; {text!r} is none") from None
    return HostEntry(host, port, is_address=False)
