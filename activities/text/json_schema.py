"""Applies JSON Schemas written by other people and models, without fetching what they refer to."""

from collections.abc import Iterator
from typing import Any

import re2
from jsonschema import ValidationError as SchemaViolation
from jsonschema import validators
from jsonschema.exceptions import SchemaError
from jsonschema.protocols import Validator
from referencing import Registry
from referencing.exceptions import Unresolvable

from config.regexes import compile_cached_regex

MAX_VIOLATIONS = 5
MAX_TEXT = 300


def schema_validator(schema: dict[str, Any]) -> Validator:
    kind = validators.validator_for(schema, default=validators.Draft202012Validator)
    # Use a linear-time engine for patterns, and an empty registry, so that nothing is fetched.
    safe = validators.extend(kind, {"pattern": _check_json_schema_pattern})
    validator: Validator = safe(schema, registry=Registry())
    return validator


def schema_problem(schema: dict[str, Any]) -> str | None:
    try:
        type(schema_validator(schema)).check_schema(schema)
    except SchemaError as error:
        return f"{error.json_path}: {error.message[:MAX_TEXT]}"
    except RecursionError:
        return "it is nested too deeply"
    return None


def list_json_schema_violations(schema: dict[str, Any], value: object) -> list[str]:
    try:
        errors = sorted(
            schema_validator(schema).iter_errors(value), key=lambda error: error.json_path
        )
    except Unresolvable as error:
        raise ValueError(f"the schema refers to what it does not hold: {error.ref}") from None
    except RecursionError:
        raise ValueError("the schema refers to itself without an end") from None
    named = [f"{error.json_path}: {error.message[:MAX_TEXT]}" for error in errors[:MAX_VIOLATIONS]]
    if more := len(errors) - len(named):
        named.append(f"and {more:,} more")
    return named


def _check_json_schema_pattern(
    _: Validator, pattern: str, instance: object, schema: object
) -> Iterator[SchemaViolation]:
    try:
        expression = compile_cached_regex(pattern)
    except re2.error:  # the engine does not support lookarounds and the like
        return
    if isinstance(instance, str) and not expression.search(instance):
        yield SchemaViolation(f"{instance[:100]!r} does not match {pattern!r}")
