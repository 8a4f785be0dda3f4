"""The base of configured data, whose fields are described by the texts below them."""

import ast
import inspect
from itertools import pairwise

from pydantic import BaseModel, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from protocol.data_model import Data


class ConfigData(Data):
    """Base of the sections of a configuration file."""

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        schema = handler(core)
        properties = handler.resolve_ref_schema(schema)["properties"]
        for name, text in field_texts(cls).items():
            properties[name]["description"] = text
        return schema


def field_texts(kind: type[BaseModel]) -> dict[str, str]:
    """Return the texts below the fields of some data, by field.

    They are read from its source when somebody wants to see them: Pydantic could do so too, for
    every section in every process, which takes a tenth of a command's start.
    """
    texts: dict[str, str] = {}
    for base in kind.__bases__:
        texts |= field_texts(base) if issubclass(base, ConfigData) else {}
    [section] = ast.parse(inspect.getsource(kind)).body
    for field, below in pairwise(section.body if isinstance(section, ast.ClassDef) else ()):
        match field, below:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                texts[name] = " ".join(text.split())
    return texts
