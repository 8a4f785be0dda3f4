"""The base of all data that is stored, sent or configured."""

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel, ConfigDict

NAMING_FIELDS = frozenset({"environment", "env", "headers"})
"""Fields whose values are names of the worker's variables, as are those of fields `…_variable`."""


class Data(BaseModel):
    """Base of stored, sent and configured data; an unknown key is an error."""

    # No process uses all of them, so each is built when it is first used: a fifth of a start.
    model_config = ConfigDict(extra="forbid", defer_build=True)

    @property
    def named_variables(self) -> set[str]:
        """Names of the worker's variables that this data names, at any depth."""
        return {name for field, value in self for name in _list_named_variables(field, value)}


def _list_named_variables(field: str, value: Any) -> Iterator[str]:
    if isinstance(value, Data):
        yield from value.named_variables
    elif isinstance(value, dict | list | tuple):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _list_named_variables(field, each)
    elif isinstance(value, str) and value:
        is_name = field in NAMING_FIELDS or field.endswith("_variable")
        yield from [value] if is_name else []
