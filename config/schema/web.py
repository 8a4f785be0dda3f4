"""The schema of `web`: what agents may reach on the web."""

from ipaddress import ip_network
from typing import Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from config.schema.config_data import ConfigData

SearchKind = Literal["searxng", "brave"]
KEYED: dict[SearchKind, str] = {"brave": "https://api.search.brave.com"}
"""Providers that require a key, with their addresses."""


class Search(ConfigData):
    """The provider that `web_search` asks."""

    kind: SearchKind
    """The provider's protocol."""
    url: str | None = None
    """The provider's address; null: the public one of `brave`."""
    api_key_variable: str | None = None
    """Environment variable of the worker with the key; `brave` needs it."""
    results: int = Field(8, ge=1, le=20)
    """Maximum number of results of one search."""

    @field_validator("url")
    @classmethod
    def _is_http(cls, url: str | None) -> str | None:
        if url is None:
            return None
        if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
            raise ValueError("expected an address that begins with http:// or https://")
        return url.rstrip("/")

    @model_validator(mode="after")
    def _has_needed_keys(self) -> Self:
        if self.kind in KEYED and not self.api_key_variable:
            raise ValueError(f"{self.kind} needs api_key_variable")
        if self.kind not in KEYED and not self.url:
            raise ValueError(f"{self.kind} needs url")
        return self

    @property
    def address(self) -> str:
        """Its base address, without a trailing slash."""
        return self.url or KEYED[self.kind]


class Web(ConfigData):
    """Pages that `fetch_page` accepts, and the search provider."""

    allow_private: list[str] = Field(default_factory=list)
    """Private hosts and address ranges that fetch_page may reach."""
    page_bytes: int = Field(10_000_000, ge=1000, le=50_000_000)
    """Maximum bytes of a page, decompressed."""
    page_seconds: int = Field(60, ge=1, le=120)
    """Time limit of one page including redirects, in seconds."""
    read_seconds: int = Field(15, ge=1, le=120)
    """Longest pause in the server's response, in seconds."""
    search: Search | None = None
    """The search provider of web_search; null: none, and web_search then reports that."""

    @field_validator("allow_private")
    @classmethod
    def _normalize_private_hosts(cls, entries: list[str]) -> list[str]:
        return [_normalize_private_web_host(entry) for entry in entries]


def _normalize_private_web_host(entry: str) -> str:
    try:
        return str(ip_network(entry))
    except ValueError:
        pass
    if not entry or any(letter in "/:@*" or letter.isspace() for letter in entry):
        raise ValueError("expected host names, addresses or ranges such as 10.1.0.0/16")
    return entry.lower()
