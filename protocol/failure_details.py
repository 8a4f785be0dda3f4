"""What typed failures of activities carry beside their message."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from protocol.usage import Usage

BY_FALLBACK = "fallback"
"""A fallback refused the request, and not the model itself."""
GIVEN_UP = "GivenUp"
"""Type of the failure of a cancelled activity that has something to say."""
OUTAGE = "outage"
"""What failed comes back without anything being done to the job, which tries again by itself."""
LARGE = "large"
"""The endpoint refused a large request for a cause that is not known: perhaps it is too long."""
_MEND = "mend"
_HELPS = "helps"
_UNFINISHED = "unfinished"


def mend_detail(mend: str) -> dict[str, str]:
    """Return the detail that says what a person can mend, as the beginning of a sentence."""
    return {_MEND: mend}


def read_mend_detail(details: Sequence[Any]) -> str:
    """Return what a person can mend; empty if the failure does not say."""
    values = (detail[_MEND] for detail in details if isinstance(detail, dict) and _MEND in detail)
    return str(next(values, ""))


def helps_detail(helps: str) -> dict[str, str]:
    """Return the detail that says what may help, as the end of a sentence."""
    return {_HELPS: helps}


def read_helps_detail(details: Sequence[Any]) -> str:
    """Return what may help; empty if the failure does not say."""
    values = (detail[_HELPS] for detail in details if isinstance(detail, dict) and _HELPS in detail)
    return str(next(values, ""))


def unfinished_detail(usage: Usage) -> dict[str, Any]:
    """Return the detail with what replies that broke off have used."""
    return {_UNFINISHED: usage.model_dump(exclude_defaults=True)}


def read_unfinished_detail(details: Sequence[Any]) -> Usage:
    """Return what replies that broke off have used; nothing if the failure does not say."""
    values = (
        detail[_UNFINISHED]
        for detail in details
        if isinstance(detail, dict) and _UNFINISHED in detail
    )
    return Usage.model_validate(next(values, {}))
