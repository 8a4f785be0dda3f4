"""How an error of Pydantic's is worded within a line for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError


def error_key(loc: tuple[Any, ...]) -> str:
    """The dotted key that an error is about; a wrong key is named by itself."""
    return ".".join(str(part) for part in loc if part != "[key]") or "the whole"


def lowered_message(message: str) -> str:
    """What is wrong, as it goes on within a line. Names and patterns in it stay as they are."""
    text = message.removeprefix("Value error, ")
    first = text.partition(" ")[0]
    return text if len(first) > 1 and first.isupper() else text[:1].lower() + text[1:]


def error_message(item: Mapping[str, Any]) -> str:
    """Pydantic's own words, but where they name a class of ours, which no model can know."""
    if item["type"] == "model_type":
        return "Input should be an object"
    return str(item["msg"]).removeprefix("Value error, ")


def short_repr(value: object) -> str:
    """A value as it is written in a message, bounded."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def all_errors(error: ValidationError) -> str:
    """All that is wrong, in one line: for each reason the keys that it is true of."""
    keys: dict[str, list[str]] = {}
    for item in error.errors():
        keys.setdefault(lowered_message(error_message(item)), []).append(error_key(item["loc"]))
    return "; ".join(f"{', '.join(places)}: {why}" for why, places in keys.items())


def first_errors(error: ValidationError) -> str:
    """The first of what is wrong, in one line: each key, and why.

    What is wrong with the whole says by itself what it is about.
    """
    return "; ".join(
        f"{error_key(item['loc'])}: {lowered_message(item['msg'])}"
        if item["loc"]
        else lowered_message(item["msg"])
        for item in error.errors()[:5]
    )
