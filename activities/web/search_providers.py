"""Searches of the web. Who is asked is configured; each provider is one function.

The provider's address is the operator's, so the rules for pages do not hold for it: a SearXNG of
one's own usually is on a private address.
"""

from __future__ import annotations

import asyncio
import html
import json
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import httpx2

from activities.redaction.credentials import key_in
from activities.web.addresses import Refused
from config.schema.web import Search, SearchKind
from protocol.errors import Unavailable
from protocol.text import one_line

SECONDS = 30
LARGEST = 2_000_000
TITLE, ADDRESS, SNIPPET = 200, 1000, 400
"""Most characters of each part of a result."""
_TAG = re.compile(r"<[^>]{0,200}>")
_ACCESS = (401, 402, 403)
_LATER = (408, 425, 429)


class Away(Unavailable):
    """The provider is away, refuses access or is none; the message tells a person what to do."""


@dataclass(frozen=True)
class Hit:
    """A result: what the provider says of a page."""

    title: str
    url: str
    snippet: str


@dataclass(frozen=True)
class Ask:
    """What to send to the provider, and where its answer has the results."""

    path: str
    params: dict[str, str]
    headers: dict[str, str]
    hits: Callable[[Any], list[Hit]]


Provider = Callable[[Search, str, str], Ask]
"""From configuration, query and key to what is asked."""


def _searxng(asked: Search, query: str, key: str) -> Ask:
    # What SearXNG calls its search API.
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    return Ask(
        "/search",
        {"q": query, "format": "json"},
        headers,
        lambda answer: [_hit(one, "content") for one in answer["results"]],
    )


def _brave(asked: Search, query: str, key: str) -> Ask:
    # https://api-dashboard.search.brave.com/api-reference/web/search/get
    return Ask(
        "/res/v1/web/search",
        {"q": query, "count": str(asked.results)},
        {"X-Subscription-Token": key, "Accept": "application/json"},
        # Without results, the part is missing.
        lambda answer: [
            _hit(one, "description") for one in answer.get("web", {"results": []})["results"]
        ],
    )


PROVIDERS: dict[SearchKind, Provider] = {"searxng": _searxng, "brave": _brave}


def search(asked: Search, query: str) -> list[Hit]:
    """What the provider finds, best first, at most `asked.results`.

    Raises:
        Refused: the provider does not take this query.
        Away: nothing the model does would help.
    """
    key = ""
    if asked.api_key_variable:
        with suppress(ValueError):
            key = key_in(asked.api_key_variable)
        if not key:
            raise Away(
                f"web_search needs the key of {asked.kind}: set {asked.api_key_variable} in the "
                "worker's environment and restart it."
            )
    ask = PROVIDERS[asked.kind](asked, query, key)
    try:
        status, body = asyncio.run(_answer(f"{asked.address}{ask.path}", ask))
    except (httpx2.HTTPError, httpx2.InvalidURL, TimeoutError) as error:
        told = one_line(str(error), 200) or f"no answer within {SECONDS} s"
        raise Away(
            f"The search provider {asked.address} cannot be reached ({told}). Start it, or correct "
            "web.search.url."
        ) from None
    if status != 200:
        raise _refused(asked, status)
    try:
        hits = ask.hits(json.loads(body))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise Away(
            f"The search provider {asked.address} does not speak the protocol of {asked.kind}. "
            "Correct web.search."
        ) from None
    return [hit for hit in hits if hit.url.startswith(("http://", "https://"))][: asked.results]


async def _answer(address: str, ask: Ask) -> tuple[int, bytes]:
    data = bytearray()
    async with (
        asyncio.timeout(SECONDS),
        httpx2.AsyncClient(trust_env=False, timeout=SECONDS) as client,
        client.stream("GET", address, params=ask.params, headers=ask.headers) as response,
    ):
        async for piece in response.aiter_bytes():
            data += piece
            if len(data) > LARGEST:
                raise httpx2.ReadError(f"an answer of more than {LARGEST:,} bytes")
        return response.status_code, bytes(data)


def _refused(asked: Search, status: int) -> Exception:
    who = f"The search provider {asked.address} answered {status}"
    if status in _ACCESS:
        what = (
            "allow the format json under search.formats of its settings"
            if asked.kind == "searxng" and not asked.api_key_variable
            else f"check the key in {asked.api_key_variable} and the account"
        )
        return Away(f"{who}: it refuses access; {what}.")
    if status >= 500 or status in _LATER:
        return Away(f"{who}: it has trouble or too much to do; it is asked again later.")
    if status in (400, 413, 414, 422):
        return Refused(f"{who}: it does not take this query. Use a few plain words.")
    return Away(f"{who}: correct web.search.url.")


def _hit(one: dict[str, Any], snippet: str) -> Hit:
    return Hit(
        _plain(one.get("title"), TITLE),
        # Cut, an address is another one; a result without any is left out.
        url if len(url := str(one["url"])) <= ADDRESS and url.isprintable() else "",
        _plain(one.get(snippet), SNIPPET),
    )


def _plain(text: object, most: int) -> str:
    words = " ".join(html.unescape(_TAG.sub("", str(text or ""))).split())
    return words if len(words) <= most else f"{words[: most - 1]}…"
