"""The line that Temporal Web shows of a job's activity."""

from typing import NamedTuple, Self

MOST_SUMMARY = 180
_PHASE = "phase "
_SEPARATOR = " · "


class StepSummary(NamedTuple):
    phase: int
    """Number of the phase; 0 of what belongs to none."""
    what: str

    def __str__(self) -> str:
        """Return `phase 2 · todo 3 · write_file notes/a.md`."""
        text = f"{_PHASE}{self.phase}{_SEPARATOR}{self.what}" if self.phase else self.what
        return text[:MOST_SUMMARY]

    @classmethod
    def read(cls, line: str) -> Self:
        first, _, what = line.partition(_SEPARATOR)
        number = first.removeprefix(_PHASE)
        return cls(int(number), what) if what and number.isdecimal() else cls(0, line)
