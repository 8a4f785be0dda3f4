"""The web: pages fetched from permitted addresses, and searches through a provider."""

from activities.runtime.addresses import resolve_host
from activities.web.page_addresses import PageRefused, Resolve
from activities.web.page_fetch import FetchedPage, download_page
from activities.web.page_sources import (
    FOLDER,
    find_page_sources,
    page_source_stem,
    read_page_source,
)
from activities.web.search_providers import SearchUnavailable, query_search_provider

__all__ = [
    "FOLDER",
    "FetchedPage",
    "PageRefused",
    "Resolve",
    "SearchUnavailable",
    "download_page",
    "find_page_sources",
    "page_source_stem",
    "query_search_provider",
    "read_page_source",
    "resolve_host",
]
