"""What `@tool` refuses: mistakes that would otherwise show when a job comes to the tool."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from activities.toolkit.arguments import open_json_texts
from activities.toolkit.registry import REGISTRY, tool
from activities.toolkit.tool_context import ToolContext
from activities.toolkit.tool_errors import ToolError
from config.schema.agent import ConfigError


def without_context(path: str) -> str:
    """Count."""
    return path


def without_a_type(context: ToolContext, path) -> str:
    """Count."""
    return str(path)


def without_names(context: ToolContext, *paths: str) -> str:
    """Count."""
    return "".join(paths)


def private(context: ToolContext, _path: str) -> str:
    """Count."""
    return _path


async def waits(context: ToolContext) -> str:
    """Count."""
    await asyncio.sleep(0)
    return ""


def read_file(context: ToolContext, path: str) -> str:
    """Read otherwise."""
    return path


def undocumented(context: ToolContext) -> str:
    return ""


def fine(context: ToolContext, path: str) -> Any:
    """Count."""
    return None


@pytest.mark.parametrize(
    ("function", "declared", "expected"),
    [
        (without_context, {}, "the first parameter is to be context: ToolContext"),
        (without_a_type, {}, "path: has no type; write it as path: str"),
        (without_names, {}, "*paths: str: the model gives arguments by name"),
        (private, {}, "_path: the name of an argument begins with a letter"),
        (waits, {}, "is async"),
        (read_file, {}, "the name is taken ("),
        (undocumented, {}, "has no docstring"),
        (fine, {"effect": "read"}, "effect: found 'read', expected one of reads, writes, outside"),
        (fine, {"phases": "tactical"}, "phases: found 'tactical', expected some of"),
        (fine, {"phases": ("tactic",)}, "phases: found ('tactic',)"),
        (fine, {"effect": "outside"}, "reaches outside: it needs local=False"),
    ],
)
def test_a_tool_that_cannot_work_is_refused_in_a_line(
    function: Callable[..., Any], declared: dict[str, Any], expected: str
) -> None:
    before = dict(REGISTRY)
    with pytest.raises(ConfigError) as raised:
        tool("counting", **{"effect": "reads", **declared})(function)
    message = str(raised.value)
    assert message.startswith(f"{__file__}: tool {function.__name__}: ")
    assert expected in message
    assert "\n" not in message
    assert before == REGISTRY


def test_an_answer_that_is_no_text_names_the_tool() -> None:

    try:
        tool("counting", effect="reads")(fine)
        with pytest.raises(TypeError, match="fine returned NoneType; a tool returns text"):
            REGISTRY["fine"].run(None, {"path": "a"})  # type: ignore[arg-type]
    finally:
        REGISTRY.pop("fine", None)


def test_lists_and_objects_that_arrive_as_text_are_opened() -> None:
    todos = [{"content": "Brew tea."}]
    sent = {"phase": "[1]", "description": "Tea", "todos": json.dumps(todos)}
    parsed = REGISTRY["todo_write"].load_arguments(json.dumps(sent))
    # A text that the schema takes as a text stays one, whatever it spells.
    assert parsed == {**sent, "todos": todos}
    for other in ('{"content": "Brew tea."}', "Brew tea.", '"Brew tea."'):
        with pytest.raises(ToolError, match="todos: "):
            REGISTRY["todo_write"].parse(json.dumps({**sent, "todos": other}))


def test_only_a_schema_without_text_opens_a_text() -> None:
    fields = {
        "object": {"type": ["object", "null"]},
        "either": {"type": ["array", "string"]},
        "any": {},
    }
    sent = dict.fromkeys((*fields, "unknown"), '{"a": [1]}')
    assert open_json_texts(sent, {"properties": fields}) == {**sent, "object": {"a": [1]}}
