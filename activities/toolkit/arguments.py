"""Arguments of a tool: from a function's signature, or from a server's JSON Schema."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

from jsonschema import ValidationError as SchemaViolation
from jsonschema.protocols import Validator
from pydantic import BaseModel, ValidationError
from pydantic_core import from_json

from activities.text.json_schema import MAX_VIOLATIONS, schema_validator
from activities.toolkit.tool_schemas import brief_schema, offerable_schema, schema_argument_facts
from protocol.errors import Refusal
from protocol.validation_errors import validation_error_message


class InvalidArguments(Refusal):
    """Invalid arguments; the message names each wrong field."""


@dataclass(frozen=True)
class Argument:
    name: str
    required: bool
    description: str
    facts: list[str]


class Arguments(Protocol):
    """Arguments of a tool, to check calls and to generate documentation."""

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema for the model's API."""

    @property
    def listed(self) -> list[Argument]:
        """The arguments, in order."""

    def check(self, values: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments by name, converted for the tool. Raises InvalidArguments."""


@dataclass(frozen=True)
class ModelArguments:
    model: type[BaseModel]

    # Pydantic generates a schema anew at each call, which would take half the time of a start.
    @cached_property
    def schema(self) -> dict[str, Any]:
        return brief_schema(self.model.model_json_schema())

    @cached_property
    def listed(self) -> list[Argument]:
        schema = self.model.model_json_schema()
        properties = schema.get("properties", {})
        return [
            Argument(
                name,
                field.is_required(),
                field.description or "",
                schema_argument_facts(properties.get(name), schema),
            )
            for name, field in self.model.model_fields.items()
        ]

    def check(self, values: dict[str, Any]) -> dict[str, Any]:
        try:
            checked = self.model.model_validate(values)
        except ValidationError as error:
            raise InvalidArguments(
                "; ".join(
                    f"{_argument_place(item['loc'])}: {validation_error_message(item)}"
                    for item in error.errors()[:MAX_VIOLATIONS]
                )
            ) from None
        return {name: getattr(checked, name) for name in self.model.model_fields}


def _argument_place(loc: Sequence[int | str]) -> str:
    """Return `todos, entry 1, content`: entries count from 1, as todos are shown."""
    names = [f"entry {part + 1}" if isinstance(part, int) else part for part in loc]
    return ", ".join(names) or "arguments"


def open_json_texts(values: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments with lists and objects in place of their JSON text.

    Models often send a nested value as a string. It is opened only where the schema takes a list
    or an object and no text.
    """
    fields = schema.get("properties", {})
    opened = {
        name: inner
        for name, value in values.items()
        if isinstance(value, str) and (inner := _nested_json_value(value, fields.get(name)))
    }
    return {**values, **opened}


def _nested_json_value(text: str, field: object) -> list[Any] | dict[str, Any] | None:
    declared = field.get("type") if isinstance(field, dict) else None
    types = set(declared if isinstance(declared, list) else [declared])
    if not types & {"array", "object"} or "string" in types:
        return None
    try:
        value = from_json(text, allow_inf_nan=False)
    except ValueError:
        return None
    if isinstance(value, list):
        return value if "array" in types else None
    return value if isinstance(value, dict) and "object" in types else None


class SchemaArguments:
    """Arguments of a remote tool. Defaults are left to its server."""

    def __init__(self, declared: dict[str, Any]) -> None:
        self._declared = declared

    @cached_property
    def schema(self) -> dict[str, Any]:
        return offerable_schema(self._declared)

    @cached_property
    def listed(self) -> list[Argument]:
        required = self.schema.get("required", [])
        arguments = []
        for name, field in self.schema.get("properties", {}).items():
            raw_description = field.get("description", "") if isinstance(field, dict) else ""
            description = " ".join(str(raw_description).split())
            known = schema_argument_facts(field, self.schema)
            arguments.append(Argument(str(name), name in required, description, known))
        return arguments

    def check_schema(self) -> None:
        """Raise jsonschema's SchemaError if the schema itself is invalid."""
        type(self._validator).check_schema(self._declared)

    def check(self, values: dict[str, Any]) -> dict[str, Any]:
        try:
            errors = sorted(self._validator.iter_errors(values), key=lambda error: error.json_path)
        except MemoryError:
            raise
        except Exception:
            # The schema has a dangling or circular reference; the server validates by itself.
            return values
        if errors:
            raise InvalidArguments(
                "; ".join(map(_argument_violation_text, errors[:MAX_VIOLATIONS]))
            )
        return values

    @cached_property
    def _validator(self) -> Validator:
        return schema_validator(self._declared)


def _argument_violation_text(error: SchemaViolation) -> str:
    where = ".".join(map(str, error.absolute_path)) or "arguments"
    return f"{where}: {error.message[:300]}"
