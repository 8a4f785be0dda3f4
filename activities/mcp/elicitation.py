"""Questions of a server to a person, and how the person's words answer them."""

import json
from dataclasses import dataclass
from typing import Any

from jsonschema import Draft202012Validator
from mcp.types import (
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitRequestParams,
    ElicitRequestURLParams,
    ElicitResult,
    InputRequests,
)

from activities.redaction.secrets import redact
from activities.text.safe_text import replace_surrogates
from protocol.errors import Refusal
from protocol.short_text import one_line

MOST = 1500
"""Longest question, in characters: it goes into history, and onto a person's screen."""
NO = ("decline", "no", "nein")
YES = ("accept", "yes", "ok", "done", "ja")
NOBODY = "none: the server hears that nobody answered"


class Misread(Refusal):
    """A person's words do not answer the question; the message says why."""


@dataclass(frozen=True)
class Elicited:
    key: str
    """The server's id of the question."""
    params: ElicitRequestParams

    @property
    def question(self) -> str:
        return redact(replace_surrogates(f"{one_line(self.params.message, MOST)} {self._form}"))[
            :MOST
        ]

    @property
    def default(self) -> str:
        values = self._defaults
        return redact(json.dumps(values, ensure_ascii=False)) if values else NOBODY

    def lapsed(self) -> ElicitResult:
        """Return what the server gets without an answer: its own defaults if they suffice."""
        if values := self._defaults:
            return ElicitResult(action="accept", content=values)
        return ElicitResult(action="cancel")

    def read_answer(self, text: str) -> ElicitResult:
        """Return the answer that a person's words give. Raises Misread."""
        word = text.strip().casefold().rstrip(".!")
        named = list(self._properties)
        if word == "decline" or (word in NO and not named):
            return ElicitResult(action="decline")
        if isinstance(self.params, ElicitRequestURLParams) or not named:
            if word not in YES:
                raise Misread("neither `accept` nor `decline`")
            is_form = isinstance(self.params, ElicitRequestFormParams)
            return ElicitResult(action="accept", content={} if is_form else None)
        values = self._values(text.strip(), named)
        schema = {"type": "object", "additionalProperties": False} | self._schema
        for problem in Draft202012Validator(schema).iter_errors(values):
            raise Misread(one_line(problem.message, 200))
        return ElicitResult(action="accept", content=values)

    def _values(self, text: str, named: list[str]) -> dict[str, Any]:
        try:
            read = json.loads(text)
        except ValueError:
            read = None
        if isinstance(read, dict):
            return {**self._present, **read}
        if len(named) == 1:
            return {named[0]: _convert_elicited_answer(self._properties[named[0]], text)}
        values = dict(self._present)
        for line in filter(str.strip, text.replace(";", "\n").splitlines()):
            name, parted, value = line.partition("=")
            if not parted or name.strip() not in named:
                raise Misread(f"{one_line(line, 40)!r} is not name=value")
            values[name.strip()] = _convert_elicited_answer(
                self._properties[name.strip()], value.strip()
            )
        return values

    @property
    def _schema(self) -> dict[str, Any]:
        if isinstance(self.params, ElicitRequestFormParams):
            return self.params.requested_schema
        return {}

    @property
    def _properties(self) -> dict[str, dict[str, Any]]:
        properties: dict[str, dict[str, Any]] = self._schema.get("properties") or {}
        return properties

    @property
    def _present(self) -> dict[str, Any]:
        """Return the server's proposed values."""
        return {n: each["default"] for n, each in self._properties.items() if "default" in each}

    @property
    def _defaults(self) -> dict[str, Any]:
        """Return the proposed values if they answer the whole question; silence never agrees."""
        values = self._present
        complete = all(name in values for name in self._schema.get("required") or [])
        return values if complete else {}

    @property
    def _form(self) -> str:
        if isinstance(self.params, ElicitRequestURLParams):
            return f"Open {self.params.url}, then answer `accept`; or `decline`."
        named = {name: _requested_type(each) for name, each in self._properties.items()}
        match len(named):
            case 0:
                return "Answer `accept` or `decline`."
            case 1:
                [(name, kind)] = named.items()
                return f"Answer with {name} ({kind}), or `decline`."
        listed = "; ".join(f"{name}=… ({kind})" for name, kind in named.items())
        return f"Answer with {listed}; or `decline`."


def elicited_question(requests: InputRequests | None) -> list[Elicited]:
    """Return the questions among a server's requests. Raises ValueError for other requests."""
    questions = []
    for key, request in (requests or {}).items():
        if not isinstance(request, ElicitRequest):
            raise ValueError(request.method)
        questions.append(Elicited(key, request.params))
    return questions


def _requested_type(schema: dict[str, Any]) -> str:
    label = schema.get("description") or schema.get("title") or ""
    choices = [*schema.get("enum", []), *(each.get("const") for each in schema.get("oneOf", []))]
    kind = " | ".join(map(str, choices)) or str(schema.get("type", "text"))
    return one_line(f"{kind}: {label}" if label else kind, 200)


def _convert_elicited_answer(schema: dict[str, Any], text: str) -> Any:
    """Convert a person's word to the requested type; leave it unchanged if that fails."""
    match schema.get("type"):
        case "boolean":
            word = text.casefold().rstrip(".!")
            known = dict.fromkeys(("yes", "true", "ja", "1"), True)
            return (known | dict.fromkeys(("no", "false", "nein", "0"), False)).get(word, text)
        case "integer" | "number":
            try:
                number = float(text)
            except ValueError:
                return text
            return int(number) if number.is_integer() else number
        case "array":
            return [part.strip() for part in text.split(",")]
    return text
