"""A call that a small model writes as its text, since it leaves out the marks of a call."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError
from pydantic_core import from_json

_FENCED = re.compile(r"```(?:json)?\s*\n(.*?)\n?\s*```", re.DOTALL)
_TAGGED = re.compile(r"<tool_call>(.*?)</tool_call>", re.DOTALL)
ARGUMENTS = ("arguments", "parameters")


def read_bare_call(text: str, tools: list[dict[str, Any]]) -> tuple[str, str] | None:
    """Return name and arguments if a text is one call and nothing else; else None.

    Args:
        text: The reply.
        tools: The tools of the request, one of which it has to name with arguments that fit.
    """
    text = text.strip()
    for form in (_FENCED, _TAGGED):
        if match := form.fullmatch(text):
            text = match[1].strip()
    with suppress(ValueError):
        call = from_json(text, allow_inf_nan=False)
        if isinstance(call, dict) and isinstance(call.get("function"), dict):
            call = call["function"]
        if not isinstance(call, dict):
            return None
        arguments = next((call[key] for key in ARGUMENTS if key in call), None)
        functions = [tool.get("function", tool) for tool in tools]
        named = [each for each in functions if each["name"] == call.get("name")]
        if named and isinstance(arguments, dict) and _fit(arguments, named[0]["parameters"]):
            return named[0]["name"], json.dumps(arguments, ensure_ascii=False)
    return None


def _fit(arguments: dict[str, Any], schema: dict[str, Any]) -> bool:
    known = schema.get("properties") or {}
    try:
        return arguments.keys() <= known.keys() and Draft202012Validator(schema).is_valid(arguments)
    except SchemaError:
        return False
