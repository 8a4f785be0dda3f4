"""The web: pages fetched from permitted addresses, and searches through a provider."""

from activities.runtime.addresses import resolve_host
from activities.web.page_addresses import PageRefused, Resolve
from activities.web.page_fetch import FetchedPage, fetch_page
from activities.web.page_sources import FOLDER, page_source_stem, read_source, sources_from
from activities.web.search_providers import SearchUnavailable, search_web

__all__ = [
    "FOLDER",
    "FetchedPage",
    "PageRefused",
    "Resolve",
    "SearchUnavailable",
    "fetch_page",
    "page_source_stem",
    "read_source",
    "resolve_host",
    "search_web",
    "sources_from",
]
