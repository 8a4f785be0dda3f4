"""Checks which addresses may be fetched.

A host name is resolved once, and the connection uses that result, so a later change of the name's
address has no effect.
"""

import asyncio
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from ipaddress import IPv6Address, ip_address, ip_network
from typing import TypeVar

import httpx2

from activities.runtime.addresses import Address, is_public_address
from config.schema.web import Web
from protocol.errors import Refusal
from protocol.short_text import fork_command

MAX_ADDRESSES = 4
"""Number of a host's addresses that are tried."""
T = TypeVar("T")

Resolve = Callable[[str, int], list[str]]
"""Returns the IP addresses of a host. Raises OSError if there are none."""

MAX_ADDRESS = 2000
"""Maximum length of a fetched URL."""
_PORTS = (80, 443)
_FREE_PORTS = 1024


class PageRefused(Refusal):
    """A page that is not fetched; the message says why and what to do instead."""


def parse_page_address(address: str, base: httpx2.URL | None = None) -> httpx2.URL:
    """Return the address without its fragment, if it is one that can be fetched.

    Raises:
        PageRefused: Not http or https, no host, user name or password included, or invalid port.
    """
    shown = address[:200]
    if len(address) > MAX_ADDRESS:
        raise PageRefused(
            f"{shown}…: longer than {MAX_ADDRESS:,} characters; give the page's own address."
        )
    try:
        url = base.join(address) if base else httpx2.URL(address.strip())
    except (httpx2.InvalidURL, ValueError) as error:
        raise PageRefused(f"{shown}: not an address ({error}).") from None
    if url.port is not None and url.port > 65_535:
        raise PageRefused(f"{shown}: not an address (there is no port {url.port}).")
    if url.scheme not in ("http", "https") or not url.raw_host:
        raise PageRefused(f"{shown}: only http:// and https:// addresses of a host can be fetched.")
    if url.userinfo:
        raise PageRefused(
            f"{url.scheme}://{url.netloc.decode()}: the address holds a user name or password. "
            "Pages that need one cannot be fetched; give the address without it."
        )
    return url.copy_with(fragment=None)


def check_page_addresses(url: httpx2.URL, addresses: list[str], web: Web) -> list[str]:
    """Return the addresses to connect to: all of the host's, provided none is refused.

    Raises:
        PageRefused: One is neither public nor allowed, or the port is not a web server's.
    """
    host = url.raw_host.decode()
    named = host.rstrip(".") in web.allow_private
    for text in addresses:
        address = ip_address(text)
        if named or _is_page_address_allowed(address, web):
            continue
        if not is_public_address(address):
            meant = "" if text == host else f" ({text})"
            raise PageRefused(
                f"{host}{meant} is not a public address, and fetch_page reaches only those. Use a "
                "public source; a person can allow the host under web.allow_private, for a job "
                f"under way in a fork: {fork_command(f'web.allow_private=[{host}]')}."
            )
        if url.port is not None and url.port not in _PORTS and url.port < _FREE_PORTS:
            raise PageRefused(f"{host}: port {url.port} is not a web server's; leave it out.")
    return addresses


def _is_page_address_allowed(address: Address, web: Web) -> bool:
    # The kernel connects a mapped address to the IPv4 host, so that one must be allowed.
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return any(
        address in ip_network(entry) for entry in web.allow_private if _is_address_range(entry)
    )


def _is_address_range(entry: str) -> bool:
    try:
        ip_network(entry)
    except ValueError:
        return False
    return True


async def resolve_page_host(url: httpx2.URL, web: Web, resolver: Resolve) -> list[str]:
    host = url.raw_host.decode()
    port = url.port or (443 if url.scheme == "https" else 80)
    try:
        resolved = await _run_dns_lookup_in_thread(lambda: resolver(host, port))
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or error
        if isinstance(error, socket.gaierror) and error.errno == socket.EAI_AGAIN:
            raise PageRefused(
                f"{host}: its address cannot be looked up now ({reason}). Try again later or take "
                "another source."
            ) from None
        raise PageRefused(f"{host}: no such host ({reason}). Check the address.") from None
    return check_page_addresses(url, resolved, web)[:MAX_ADDRESSES]


async def _run_dns_lookup_in_thread(work: Callable[[], T]) -> T:
    """Run the function in a thread and abandon it on cancellation.

    A resolver may hang for minutes, and asyncio waits for threads of its own executor.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle_future(result: T | None, error: Exception | None) -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)  # type: ignore[arg-type]

    def run_work() -> None:
        result, error = None, None
        try:
            result = work()
        except Exception as raised:
            error = raised
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(settle_future, result, error)

    threading.Thread(target=run_work, daemon=True).start()
    return await future
