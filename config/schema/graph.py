"""The graph's schema as data: kinds of nodes and relations, and their properties."""

import re
from typing import Annotated, Any, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from config.schema.config_data import ConfigData
from protocol.validation_errors import short_error_value

PropertyType = Literal["text", "number", "integer", "truth", "list"]
Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_]{0,63}$")]
"""Narrow enough to be safe between the backticks of a query."""
EXPECTED: dict[PropertyType, str] = {
    "text": "text",
    "number": "a number",
    "integer": "a whole number",
    "truth": "true or false",
    "list": "a list of texts",
}
JOB = "job"
"""Property that the system fills in for kinds that have it."""
MAX_CHARACTERS = 20_000


class Property(ConfigData):
    type: PropertyType
    """Type of its values."""
    required: bool = False
    """Whether each node or relation must have it."""
    description: str = ""
    """Meaning, for the model."""
    values: list[str] = Field(default_factory=list)
    """Allowed values; empty: any."""
    minimum: float | None = None
    """Smallest number."""
    maximum: float | None = None
    """Largest number."""

    @model_validator(mode="after")
    def _fits_its_type(self) -> Self:
        if self.values and self.type != "text":
            raise ValueError(f"values is for type text, not {self.type}")
        bounded = self.minimum is not None or self.maximum is not None
        if bounded and self.type not in ("number", "integer"):
            raise ValueError(f"minimum and maximum are for numbers, not {self.type}")
        return self

    def find_problem(self, value: object) -> str:
        """Why this value is invalid, for a message; empty when it is valid."""
        if not _has_graph_property_type(self.type, value):
            return f"found {short_error_value(value)}, expected {EXPECTED[self.type]}"
        if self.values and value not in self.values:
            return f"found {short_error_value(value)}, expected one of {', '.join(self.values)}"
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            low, high = self.minimum, self.maximum
            if (low is not None and value < low) or (high is not None and value > high):
                return f"found {value}, expected {low} to {high}"
        if len(str(value)) > MAX_CHARACTERS:
            return f"found {len(str(value)):,} characters, expected at most {MAX_CHARACTERS:,}"
        return ""


class _GraphKind(ConfigData):
    description: str = ""
    """Meaning, for the model."""
    properties: dict[Name, Property] = Field(default_factory=dict)
    """By name."""

    def find_problems(self, values: dict[str, Any], *, partial: bool = False) -> list[str]:
        """The problems of these properties, one line each."""
        problems = []
        for name, value in values.items():
            if name not in self.properties:
                known = ", ".join(self.properties)
                problems.append(f"{name}: there is no such property; expected one of {known}")
            elif wrong := self.properties[name].find_problem(value):
                problems.append(f"{name}: {wrong}")
        lacking = [n for n, p in self.properties.items() if p.required and n not in values]
        return problems + ([] if partial else [f"{name}: it is required" for name in lacking])


class NodeKind(_GraphKind):
    key: Name
    """The property that identifies a node."""
    known_by: list[Name] = Field(default_factory=list)
    """Further properties whose words are searched for a node, besides the key."""

    @model_validator(mode="after")
    def _names_what_it_has(self) -> Self:
        for name in [self.key, *self.known_by]:
            if name not in self.properties:
                raise ValueError(f"{name} is not among its properties")
        if self.properties[self.key].type != "text":
            raise ValueError(f"the key {self.key} must be of type text")
        return self


class RelationKind(_GraphKind):
    ends: list[tuple[str, str]] = Field(min_length=1)
    """Allowed pairs of start and end nodes."""


class GraphSchema(ConfigData):
    """All kinds, by name."""

    nodes: dict[Name, NodeKind] = Field(default_factory=dict)
    """By name."""
    relations: dict[Name, RelationKind] = Field(default_factory=dict)
    """By name."""

    def find_undeclared(self) -> str:
        """Names a relation with an undeclared end; empty when there is none."""
        for name, relation in self.relations.items():
            for index, pair in enumerate(relation.ends):
                for end in pair:
                    if end not in self.nodes:
                        known = ", ".join(self.nodes) or "none"
                        return (
                            f"relations.{name}.ends.{index}: found {end!r}, expected one of the "
                            f"nodes: {known}"
                        )
        if both := sorted(
            n for n in self.nodes if n.lower() in {r.lower() for r in self.relations}
        ):
            return f"relations.{both[0]}: found the name of a node, expected one of its own"
        return ""


def _has_graph_property_type(kind: PropertyType, value: object) -> bool:
    if kind == "list":
        return isinstance(value, list) and all(isinstance(item, str) for item in value)
    if kind == "truth":
        return isinstance(value, bool)
    if isinstance(value, bool):
        return False
    if kind == "text":
        return isinstance(value, str)
    # Python writes Infinity and NaN as JSON, but other parsers refuse them.
    if isinstance(value, float) and not re.fullmatch(r"[-+.0-9e]+", repr(value)):
        return False
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return False
    return isinstance(value, int) or (kind == "number" and isinstance(value, float))
