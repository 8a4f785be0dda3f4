"""Limits as they are typed: `cost=20 phase.model_calls=800`."""

from __future__ import annotations

from typing import Any

from cli.output import Mistake
from protocol.payloads import Refused, read_signal


def payload(words: list[str]) -> dict[str, Any]:
    """The payload of the signal `limit`.

    Raises:
        Mistake: not key=value, a key twice, or what the signal itself refuses.
    """
    made: dict[str, Any] = {}
    for word in words:
        name, _, value = word.partition("=")
        if not (name and value):
            raise Mistake(f"{word!r}: expected key=value, such as cost=20")
        section, key = made, name
        if name.startswith("phase."):
            section, key = made.setdefault("phase", {}), name.removeprefix("phase.")
        if not isinstance(section, dict) or key in section:
            raise Mistake(f"{name} is given twice")
        section[key] = _number(value)
    try:
        read_signal("limit", (made,))
    except Refused as refusal:
        # Who sent it is not typed.
        told = str(refusal).removeprefix("signal ").replace("its keys are: by, ", "its keys are: ")
        raise Mistake(told) from None
    return made


def _number(text: str) -> int | float | str:
    """The number, or what is none as it is: the payload's schema says what is wrong with it."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
