"""What a tool takes: a signature of ours, or the JSON Schema that a server declared."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import re2
from jsonschema import ValidationError as SchemaViolation
from jsonschema import validators
from jsonschema.protocols import Validator
from pydantic import BaseModel, ValidationError
from referencing import Registry

from activities.toolkit.json_schemas import argument_facts, brief_schema, offerable_schema
from config.patterns import compile_cached
from protocol.errors import Refusal
from protocol.validation_errors import error_message

MAX_VIOLATIONS = 5
"""Violations that one message names."""


class InvalidArguments(Refusal):
    """Arguments that do not fit; the message names each field that is wrong."""


@dataclass(frozen=True)
class Argument:
    """One of them, as it is told of."""

    name: str
    required: bool
    description: str
    facts: list[str]
    """Its values, bounds and default."""


class Arguments(Protocol):
    """All that a call is checked against and documentation is made from."""

    @property
    def schema(self) -> dict[str, Any]:
        """JSON Schema for the model's API."""

    @property
    def listed(self) -> list[Argument]:
        """The arguments, in order."""

    def check(self, values: dict[str, Any]) -> dict[str, Any]:
        """The arguments by name, as the tool takes them. Raises InvalidArguments."""


@dataclass(frozen=True)
class ModelArguments:
    """Those of a function in the registry."""

    model: type[BaseModel]

    @property
    def schema(self) -> dict[str, Any]:
        return brief_schema(self.model.model_json_schema())

    @property
    def listed(self) -> list[Argument]:
        schema = self.model.model_json_schema()
        properties = schema.get("properties", {})
        return [
            Argument(
                name,
                field.is_required(),
                field.description or "",
                argument_facts(properties.get(name), schema),
            )
            for name, field in self.model.model_fields.items()
        ]

    def check(self, values: dict[str, Any]) -> dict[str, Any]:
        try:
            checked = self.model.model_validate(values)
        except ValidationError as error:
            raise InvalidArguments(
                "; ".join(
                    f"{'.'.join(map(str, item['loc'])) or 'arguments'}: {error_message(item)}"
                    for item in error.errors()[:MAX_VIOLATIONS]
                )
            ) from None
        return {name: getattr(checked, name) for name in self.model.model_fields}


class SchemaArguments:
    """Those of a tool that is somewhere else. What they lack is left to the other side."""

    def __init__(self, declared: dict[str, Any]) -> None:
        self._declared = declared

    @cached_property
    def schema(self) -> dict[str, Any]:
        return offerable_schema(self._declared)

    @property
    def listed(self) -> list[Argument]:
        required = self.schema.get("required", [])
        arguments = []
        for name, field in self.schema.get("properties", {}).items():
            raw_description = field.get("description", "") if isinstance(field, dict) else ""
            description = " ".join(str(raw_description).split())
            known = argument_facts(field, self.schema)
            arguments.append(Argument(str(name), name in required, description, known))
        return arguments

    def check_schema(self) -> None:
        """Raises jsonschema's SchemaError."""
        type(self._validator).check_schema(self._declared)

    def check(self, values: dict[str, Any]) -> dict[str, Any]:
        try:
            errors = sorted(self._validator.iter_errors(values), key=lambda error: error.json_path)
        except MemoryError:
            raise
        except Exception:
            # A reference to nowhere or in a circle: the server checks for itself.
            return values
        if errors:
            raise InvalidArguments("; ".join(map(_violation_text, errors[:MAX_VIOLATIONS])))
        return values

    @cached_property
    def _validator(self) -> Validator:
        kind = validators.validator_for(self._declared, default=validators.Draft202012Validator)
        # Patterns in a linear-time engine; a registry of its own, so that nothing is fetched.
        safe = validators.extend(kind, {"pattern": _check_pattern})
        validator: Validator = safe(self._declared, registry=Registry())
        return validator


def _check_pattern(
    _: Validator, pattern: str, instance: object, schema: object
) -> Iterator[SchemaViolation]:
    try:
        expression = compile_cached(pattern)
    except re2.error:  # lookarounds and the like: the server's to check
        return
    if isinstance(instance, str) and not expression.search(instance):
        yield SchemaViolation(f"{instance[:100]!r} does not match {pattern!r}")


def _violation_text(error: SchemaViolation) -> str:
    where = ".".join(map(str, error.absolute_path)) or "arguments"
    return f"{where}: {error.message[:300]}"
