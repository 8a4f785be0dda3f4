"""Web search through a configured provider; each provider is one function.

The operator chooses the provider's address, so the rules for pages do not apply: a private SearXNG
usually has a private address.
"""

import asyncio
import html
import json
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import httpx2

from activities.redaction.credentials import api_key_credential
from activities.web.page_addresses import PageRefused
from config.schema.web import Search, SearchKind
from protocol.errors import Unavailable
from protocol.short_text import one_line

SECONDS = 30
MAX_ANSWER = 2_000_000
TITLE, ADDRESS, SNIPPET = 200, 1000, 400
"""Maximum length of each part of a result."""
_TAG = re.compile(r"<[^>]{0,200}>")
_ACCESS = (401, 402, 403)
_LATER = (408, 425, 429)


class SearchUnavailable(Unavailable):
    """The provider is unreachable, misconfigured or refuses access; the message is for a person."""


@dataclass(frozen=True)
class SearchResult:
    title: str
    url: str
    snippet: str


@dataclass(frozen=True)
class SearchRequest:
    """The request to the provider, and how to read its response."""

    path: str
    params: dict[str, str]
    headers: dict[str, str]
    read_results: Callable[[Any], list[SearchResult]]


Provider = Callable[[Search, str, str], SearchRequest]
"""Maps configuration, query and key to a request."""


def _searxng_request(settings: Search, query: str, key: str) -> SearchRequest:
    # As documented for SearXNG's search API.
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    return SearchRequest(
        "/search",
        {"q": query, "format": "json"},
        headers,
        lambda answer: [_parse_search_result(result, "content") for result in answer["results"]],
    )


def _brave_request(settings: Search, query: str, key: str) -> SearchRequest:
    # https://api-dashboard.search.brave.com/api-reference/web/search/get
    return SearchRequest(
        "/res/v1/web/search",
        {"q": query, "count": str(settings.results)},
        {"X-Subscription-Token": key, "Accept": "application/json"},
        # A response without results lacks this part.
        lambda answer: [
            _parse_search_result(result, "description")
            for result in answer.get("web", {"results": []})["results"]
        ],
    )


PROVIDERS: dict[SearchKind, Provider] = {"searxng": _searxng_request, "brave": _brave_request}


def query_search_provider(settings: Search, query: str) -> list[SearchResult]:
    """Return the provider's results, best first, at most `settings.results`.

    Raises:
        PageRefused: The provider does not accept this query.
        SearchUnavailable: The model cannot fix the problem.
    """
    key = ""
    if settings.api_key_variable:
        with suppress(ValueError):
            key = api_key_credential(settings.api_key_variable)
        if not key:
            raise SearchUnavailable(
                f"web_search needs the key of {settings.kind}: set {settings.api_key_variable} "
                "in the worker's environment and restart it."
            )
    request = PROVIDERS[settings.kind](settings, query, key)
    try:
        status, body = asyncio.run(
            _fetch_provider_answer(f"{settings.address}{request.path}", request)
        )
    except (httpx2.HTTPError, httpx2.InvalidURL, TimeoutError) as error:
        reason = one_line(str(error), 200) or f"no answer within {SECONDS} s"
        raise SearchUnavailable(
            f"The search provider {settings.address} cannot be reached ({reason}). Start "
            "it, or correct web.search.url."
        ) from None
    if status != 200:
        raise _provider_status_error(settings, status)
    try:
        hits = request.read_results(json.loads(body))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise SearchUnavailable(
            f"The search provider {settings.address} does not speak the protocol of "
            f"{settings.kind}. Correct web.search."
        ) from None
    return [hit for hit in hits if hit.url.startswith(("http://", "https://"))][: settings.results]


async def _fetch_provider_answer(address: str, request: SearchRequest) -> tuple[int, bytes]:
    data = bytearray()
    async with (
        asyncio.timeout(SECONDS),
        httpx2.AsyncClient(trust_env=False, timeout=SECONDS) as client,
        client.stream("GET", address, params=request.params, headers=request.headers) as response,
    ):
        async for piece in response.aiter_bytes():
            data += piece
            if len(data) > MAX_ANSWER:
                raise httpx2.ReadError(f"an answer of more than {MAX_ANSWER:,} bytes")
        return response.status_code, bytes(data)


def _provider_status_error(settings: Search, status: int) -> Exception:
    who = f"The search provider {settings.address} answered {status}"
    if status in _ACCESS:
        what = (
            "allow the format json under search.formats of its settings"
            if settings.kind == "searxng" and not settings.api_key_variable
            else f"check the key in {settings.api_key_variable} and the account"
        )
        return SearchUnavailable(f"{who}: it refuses access; {what}.")
    if status >= 500 or status in _LATER:
        return SearchUnavailable(
            f"{who}: it has trouble or too much to do; it is asked again later."
        )
    if status in (400, 413, 414, 422):
        return PageRefused(f"{who}: it does not take this query. Use a few plain words.")
    return SearchUnavailable(f"{who}: correct web.search.url.")


def _parse_search_result(result: dict[str, Any], snippet: str) -> SearchResult:
    return SearchResult(
        _clean_result_text(result.get("title"), TITLE),
        # Leave out an address that is too long: a truncated one would lead elsewhere.
        url if len(url := str(result["url"])) <= ADDRESS and url.isprintable() else "",
        _clean_result_text(result.get(snippet), SNIPPET),
    )


def _clean_result_text(text: object, most: int) -> str:
    words = " ".join(html.unescape(_TAG.sub("", str(text or ""))).split())
    return words if len(words) <= most else f"{words[: most - 1]}…"
