"""The web: pages fetched by rules of address, and searches asked of a provider."""

from activities.web.addresses import Refused, Resolve, resolve
from activities.web.page_fetch import Fetched, fetch
from activities.web.search_providers import Away, search
from activities.web.sources import FOLDER, as_source, name_stem, sources_from

__all__ = [
    "FOLDER",
    "Away",
    "Fetched",
    "Refused",
    "Resolve",
    "as_source",
    "fetch",
    "name_stem",
    "resolve",
    "search",
    "sources_from",
]
