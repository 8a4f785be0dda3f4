"""The team that a start belongs to, and what its jobs note for it in Temporal's memo."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Annotated

from pydantic import Field

from protocol.usage import Spend

TeamName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,39}$")]
TEAM, RUN, SPENT, TODAY = "team", "run", "spent", "today"
"""Keys of the memo."""


def own_memo(memo: Mapping[str, object], run_id: str | None) -> Mapping[str, object]:
    """Return a job's memo if it has written it itself, and nothing if it has not yet.

    Anyone who starts a job can set its memo, but not know the id that the server gives to its run.
    """
    return memo if memo.get(RUN) == run_id else {}


def spend_memo(total: Spend, day: str, today: Spend) -> dict[str, str]:
    """Return what a job notes of its spend, in all and on a day such as `2026-11-29`."""
    return {SPENT: f"{total.cost} {total.tokens}", TODAY: f"{day} {today.cost} {today.tokens}"}


def noted_spend(memo: Mapping[str, object], day: str = "") -> Spend:
    """Return what a job has noted, in all or on the day; nothing if it has not."""
    noted = str(memo.get(TODAY if day else SPENT) or "").removeprefix(f"{day} " if day else "")
    with suppress(ValueError):
        cost, tokens = noted.split(" ")
        return Spend(cost=max(0.0, float(cost)), tokens=max(0, int(tokens)))
    return Spend()
