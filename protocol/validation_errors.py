"""Wording of Pydantic's errors within one line, for people."""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError


def validation_error_key(loc: tuple[Any, ...]) -> str:
    return ".".join(str(part) for part in loc if part != "[key]") or "the whole"


def lowered_validation_error(message: str) -> str:
    text = message.removeprefix("Value error, ")
    first = text.partition(" ")[0]
    return text if len(first) > 1 and first.isupper() else text[:1].lower() + text[1:]


def validation_error_message(item: Mapping[str, Any]) -> str:
    """Pydantic's message, reworded where it names one of our classes, unknown to the model."""
    if item["type"] == "model_type":
        return "Input should be an object"
    if item["type"] == "extra_forbidden":
        return "unknown key"
    if item["type"] == "string_pattern_mismatch" and item["ctx"]["pattern"] == r"\S":
        return "must not be blank"
    return str(item["msg"]).removeprefix("Value error, ")


def short_error_value(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def all_validation_errors(error: ValidationError) -> str:
    """All errors in one line: each reason with its keys."""
    keys: dict[str, list[str]] = {}
    for item in error.errors():
        keys.setdefault(lowered_validation_error(validation_error_message(item)), []).append(
            validation_error_key(item["loc"])
        )
    return "; ".join(f"{', '.join(places)}: {why}" for why, places in keys.items())


def first_validation_errors(error: ValidationError) -> str:
    """The first errors in one line, each key with the reason; the subject for the whole value."""
    return "; ".join(
        f"{validation_error_key(item['loc'])}: {lowered_validation_error(message)}"
        if item["loc"]
        else lowered_validation_error(message)
        for item in error.errors()[:5]
        for message in [validation_error_message(item)]
    )
