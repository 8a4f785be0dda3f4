"""The web: pages fetched by rules of address, and searches asked of a provider."""

from activities.web.addresses import Refused, Resolve, resolve
from activities.web.fetching import Fetched, fetch
from activities.web.searching import Away, Hit, search
from activities.web.sources import FOLDER, Source, as_source, name_stem, sources_from

__all__ = [
    "FOLDER",
    "Away",
    "Fetched",
    "Hit",
    "Refused",
    "Resolve",
    "Source",
    "as_source",
    "fetch",
    "name_stem",
    "resolve",
    "search",
    "sources_from",
]
