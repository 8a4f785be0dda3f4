"""Tests that were seen to fail with a work, and without it, in all runs that a job made.

A test that fails by chance on the untouched tree as well says nothing of the work; one that fails
by chance with the work alone may be what it broke. So no luck of a later run excuses it.
"""

import hashlib
from contextlib import suppress
from dataclasses import dataclass, field

from pydantic import Field

from activities.job.result_cache import ResultCache
from activities.projects.runner_reports import RunCounts
from protocol.data_model import Data


class FailedTests(Data):
    """Names of the tests that failed in some run."""

    with_work: set[str] = Field(default_factory=set)
    without: set[str] = Field(default_factory=set)

    @property
    def unexplained(self) -> set[str]:
        return self.with_work - self.without


@dataclass
class SeenFailures:
    """The failures of one work, kept for when it is proved again."""

    cache: ResultCache | None
    work: str
    """What names the work, what it began from, and how the tests are run."""
    tests: FailedTests = field(default_factory=FailedTests)

    def __post_init__(self) -> None:
        if self.cache and (data := self.cache.find(self._key)) is not None:
            with suppress(ValueError):
                self.tests = FailedTests.model_validate_json(data)

    @property
    def _key(self) -> str:
        return f"failed-{hashlib.sha256(self.work.encode()).hexdigest()}"

    def add(self, counts: RunCounts | None, *, with_work: bool) -> None:
        """Add the failures of a run."""
        seen = self.tests.with_work if with_work else self.tests.without
        seen.update(counts.named("failed") if counts else ())
        if self.cache:
            self.cache.put(self._key, self.tests.model_dump_json().encode())
