"""Fetches one page from the web, within limits on address, size, type and time."""

import asyncio
import ssl
from dataclasses import dataclass, replace

import httpx2

from activities.runtime.addresses import resolve_host
from activities.runtime.http_encoding import ACCEPT_HEADERS, BodyDecoder, DamagedBody
from activities.web.page_addresses import (
    PageRefused,
    Resolve,
    parse_page_address,
    resolve_page_host,
)
from config.schema.web import Web
from protocol.short_text import one_line

MAX_REDIRECTS = 5
CONNECT_SECONDS = 10
_MOVED = (301, 302, 303, 307, 308)
_OTHERS = frozenset(
    {
        *("application/json", "application/xml", "application/xhtml+xml", "application/pdf"),
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        *("application/octet-stream", "binary/octet-stream", ""),
    }
)


@dataclass(frozen=True)
class FetchedPage:
    url: str
    """The requested address, normalised."""
    final_url: str
    """The address after redirects."""
    media_type: str
    """Media type declared by the server, such as text/html; empty if none."""
    charset: str | None
    """Encoding declared by the server."""
    data: bytes
    """Decompressed content."""


def download_page(
    address: str, web: Web, *, resolver: Resolve = resolve_host, trust: ssl.SSLContext | None = None
) -> FetchedPage:
    """Fetch a page.

    For every redirect the host's addresses are checked anew and one of them connected to.
    Certificates are verified against the host's name. No proxy, cookies or credentials are used.

    Args:
        trust: Trusted certificates; None for the system's.

    Raises:
        PageRefused: There is no page; the message is for the model.
    """
    return asyncio.run(_follow_redirects(address, web, resolver, trust))


async def _follow_redirects(
    address: str, web: Web, resolver: Resolve, trust: ssl.SSLContext | None
) -> FetchedPage:
    requested = url = parse_page_address(address)
    trust = trust or httpx2.create_ssl_context()
    try:
        # One limit for everything: a server that drips a byte a second never times out.
        async with asyncio.timeout(web.page_seconds):
            for _ in range(MAX_REDIRECTS + 1):
                answer = await _get_page(
                    url, await resolve_page_host(url, web, resolver), web, trust
                )
                if isinstance(answer, FetchedPage):
                    return replace(answer, url=str(requested))
                url = parse_page_address(answer, url)
    except TimeoutError:
        raise PageRefused(
            f"{url}: took more than {web.page_seconds} s and was given up. Try another source."
        ) from None
    raise PageRefused(
        f"{requested}: more than {MAX_REDIRECTS} redirects, the last to {url}; it goes in circles."
    )


async def _get_page(
    url: httpx2.URL, addresses: list[str], web: Web, trust: ssl.SSLContext
) -> FetchedPage | str:
    """Return the page, or the address it redirects to."""
    for place, address in enumerate(addresses, 1):
        try:
            return await _download_page_from(url, address, web, trust)
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            if place == len(addresses):
                reason = _download_error_line(error)
                raise PageRefused(
                    f"{url}: no connection ({reason}). Try again later or take another source."
                ) from None
        except httpx2.TimeoutException:
            raise PageRefused(
                f"{url}: silent for more than {web.read_seconds} s. Try again later or take "
                "another source."
            ) from None
        except (httpx2.HTTPError, DamagedBody) as error:
            raise PageRefused(
                f"{url}: the answer broke off or is damaged ({_download_error_line(error)})."
            ) from None
    raise PageRefused(f"{url.raw_host.decode()}: no such host. Check the address.")


async def _download_page_from(
    url: httpx2.URL, address: str, web: Web, trust: ssl.SSLContext
) -> FetchedPage | str:
    timeout = httpx2.Timeout(web.read_seconds, connect=min(CONNECT_SECONDS, web.page_seconds))
    host = url.raw_host.decode().rstrip(".")
    # One client per request: clients keep cookies and connections by IP address, which hosts share.
    async with (
        httpx2.AsyncClient(verify=trust, trust_env=False, timeout=timeout) as client,
        client.stream(
            "GET",
            url.copy_with(host=address),
            headers={
                "Host": url.netloc.decode(),
                "User-Agent": "longhaul",
                **ACCEPT_HEADERS,
                "Accept": "text/html, text/plain, text/markdown, application/pdf, */*;q=0.5",
            },
            extensions={"sni_hostname": host},
        ) as response,
    ):
        if response.status_code in _MOVED and "location" in response.headers:
            return response.headers["location"]
        if response.status_code != 200:
            # Do not quote the server, whose text may be long and arbitrary.
            status = response.status_code
            reason = httpx2.codes.get_reason_phrase(status)
            passes = status in (408, 429) or status >= 500
            raise PageRefused(
                f"{url}: the server answered {f'{status} {reason}'.strip()}. "
                f"{'Try again later' if passes else 'Check the address'} or take another source."
            )
        media = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if not (media.startswith("text/") or media.endswith(("+json", "+xml")) or media in _OTHERS):
            raise PageRefused(
                f"{url}: a page of type {media[:80]}; HTML, text, Markdown, JSON, XML, PDF and "
                "DOCX can be read. Take another source."
            )
        too_large = PageRefused(
            f"{url}: larger than {web.page_bytes:,} bytes. Take a smaller part or another source."
        )
        length = response.headers.get("content-length", "")
        if length.isdecimal() and len(length) < 20 and int(length) > web.page_bytes:
            raise too_large
        data = bytearray()
        body = BodyDecoder(response.headers.get_list("content-encoding", split_commas=True))
        async for raw in response.aiter_raw():
            for piece in body.decode_pieces(raw):
                data += piece
                if len(data) > web.page_bytes:
                    raise too_large
        body.check_complete()
        return FetchedPage(str(url), str(url), media, response.charset_encoding, bytes(data))


def _download_error_line(error: Exception) -> str:
    return one_line(str(error), 200) or type(error).__name__
