"""Parses limits from the command line: `cost=20 phase.model_calls=800`."""

from __future__ import annotations

from typing import Any

from cli.output import UserError
from protocol.payload_reading import InvalidPayload, read_signal_payload


def parse_limit_arguments(words: list[str]) -> dict[str, Any]:
    """Return the payload of the signal `limit`.

    Raises:
        UserError: Not key=value, a repeated key, or a payload that the signal refuses.
    """
    limits: dict[str, Any] = {}
    for word in words:
        name, _, value = word.partition("=")
        if not (name and value):
            raise UserError(f"{word!r}: expected key=value, such as cost=20")
        section, key = limits, name
        if name.startswith("phase."):
            section, key = limits.setdefault("phase", {}), name.removeprefix("phase.")
        if not isinstance(section, dict) or key in section:
            raise UserError(f"{name} is given twice")
        section[key] = _parse_limit_number(value)
    try:
        read_signal_payload("limit", (limits,))
    except InvalidPayload as refusal:
        # The command sets the key `by` itself.
        raise UserError(f"limit: {refusal.without('by')}") from None
    return limits


def _parse_limit_number(text: str) -> int | float | str:
    """Return the number; other text unchanged, for the payload's schema to refuse."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
