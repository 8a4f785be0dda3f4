"""What typed failures of activities carry beside their message."""

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
    return str(_read_detail(details, _MEND, ""))


def helps_detail(helps: str) -> dict[str, str]:
    return {_HELPS: helps}


def read_helps_detail(details: Sequence[Any]) -> str:
    return str(_read_detail(details, _HELPS, ""))


def unfinished_detail(usage: Usage) -> dict[str, Any]:
    return {_UNFINISHED: usage.model_dump(exclude_defaults=True)}


def read_unfinished_detail(details: Sequence[Any]) -> Usage:
    return Usage.model_validate(_read_detail(details, _UNFINISHED, {}))


def _read_detail(details: Sequence[Any], key: str, default: object) -> Any:
    return next((each[key] for each in details if isinstance(each, dict) and key in each), default)
