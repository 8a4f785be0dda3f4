"""Count what replies that broke off have used, over the attempts of one activity.

The endpoint charges for them, and reports nothing. The next reply carries the count into the job's
usage, or the failure after which the activity ends.
"""

from __future__ import annotations

from contextlib import suppress

from pydantic import TypeAdapter, ValidationError

from activities.job.result_cache import ResultCache
from protocol.usage import Usage

_BY_MODEL = TypeAdapter(dict[str, Usage])


class UnfinishedReplies:
    """What unfinished replies have used so far. An attempt on another host begins at nothing."""

    def __init__(self, cache: ResultCache, key: str) -> None:
        self._cache = cache
        self._key = f"{key}.unfinished"

    @property
    def by_model(self) -> dict[str, Usage]:
        """The usage by the name of the model."""
        if (data := self._cache.find(self._key)) is not None:
            # A power cut may have damaged the file.
            with suppress(ValidationError):
                return _BY_MODEL.validate_json(data)
        return {}

    def add(self, model: str, usage: Usage) -> None:
        """Add the usage of one more reply, so that later attempts know of it."""
        if usage == Usage():
            return
        by_model = self.by_model
        by_model.setdefault(model, Usage()).add(usage)
        # A full disk is reported where the reply itself is to be kept.
        with suppress(OSError):
            self._cache.put(self._key, _BY_MODEL.dump_json(by_model, exclude_defaults=True))

    @property
    def total(self) -> Usage:
        """The usage of all models."""
        total = Usage()
        for usage in self.by_model.values():
            total.add(usage)
        return total
