"""The text of a digest: names, fixed words and figures, as of every notification."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from protocol.data_model import Data
from protocol.short_text import one_line
from protocol.usage import Spend
from protocol.waiting import QUOTA

MOST_JOBS = 20
"""Jobs that are named in each part."""
MOST_NAME, MOST_LINE = 100, 500
"""Characters: whoever starts a job chooses its id."""


class DigestJob(Data):
    """A job or project, as a digest shows it."""

    id: str
    ending: str = ""
    """How it ended; empty while it is open."""
    reason: str = ""
    """What it waits for."""
    command: str = ""
    """What lets it go on."""
    spent: Spend = Spend()
    """Since the last digest."""
    unproven: Spend = Spend()
    """Since its last proof or completed item."""
    is_known: bool = True
    """Whether it could be asked what it has spent."""

    @property
    def figures(self) -> str:
        if not self.is_known:
            return "it did not answer"
        spent = f"spent {self.spent.words}"
        return (
            spent
            if self.ending
            else f"{spent}; {self.unproven.words} since its last proof or completed item"
        )


def digest_text(since: int, jobs: Sequence[DigestJob], unread: int) -> str:
    """Return the message on these jobs.

    Args:
        since: Time of the last digest, in epoch seconds.
        jobs: Those that are open, or have ended since then.
        unread: How many more there are.
    """
    done = [job for job in jobs if job.ending]
    waiting = [job for job in jobs if not job.ending and job.reason]
    running = [job for job in jobs if not job.ending and not job.reason]
    total = sum((job.spent for job in jobs), Spend())
    lines = [
        f"Since {datetime.fromtimestamp(since, UTC):%Y-%m-%d %H:%M} UTC: {len(done)} ended, "
        f"{len(waiting)} waiting, {len(running)} running; spent {total.words}.",
        *_lines("Ended", done, lambda job: job.ending),
        *_lines("Waiting", waiting, lambda job: f"{job.reason}. Type: {job.command}"),
        *_lines("Running", running, lambda job: "at work" if job.is_known else "unclear"),
    ]
    if unread:
        lines.append(f"{unread} more jobs are not counted here: `starter.py list` has them.")
    return "\n".join(lines)


def _lines(word: str, jobs: list[DigestJob], describe: Callable[[DigestJob], str]) -> list[str]:
    """Return a line for each job: those that nobody can help last, those that spent most first."""

    def rank(job: DigestJob) -> tuple[bool, bool, float, int, str]:
        return (
            job.reason == QUOTA,
            bool(job.ending) or job.is_known,
            -job.spent.cost,
            -job.spent.tokens,
            job.id,
        )

    lines = [
        one_line(
            f"{word}: {one_line(job.id, MOST_NAME)}: {describe(job)} ({job.figures})", MOST_LINE
        )
        for job in sorted(jobs, key=rank)[:MOST_JOBS]
    ]
    more = len(jobs) - MOST_JOBS
    return [*lines, f"{word}: {more} more"] if more > 0 else lines
