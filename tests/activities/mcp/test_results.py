"""What the model sees of a server's answer."""

from typing import Any

import pytest
from mcp.types import CallToolResult, TextContent

from activities.mcp.results import result_text


@pytest.mark.parametrize(
    ("texts", "structured", "shown"),
    [
        ([], {"rows": [1]}, '{"rows": [1]}'),
        (["3 rows"], {"rows": ["ä", 2, 3]}, '3 rows\n\n{"rows": ["ä", 2, 3]}'),
        (["3 rows"], {"result": 4}, '3 rows\n\n{"result": 4}'),
        # Repeating the same content would only cost tokens.
        (['{\n "b": 2,\n "a": 1}'], {"a": 1, "b": 2}, '{\n "b": 2,\n "a": 1}'),
        (["note", '{"a": 1}'], {"a": 1}, 'note\n\n{"a": 1}'),
        (["tea"], {"result": "tea"}, "tea"),
        (["5"], {"result": 5}, "5"),
        (["5"], {"result": "5"}, "5"),
        (['{"a": 1}', "tea"], {"result": [{"a": 1}, "tea"]}, '{"a": 1}\n\ntea'),
        ([], {"result": []}, '{"result": []}'),
        (["green\n"], {"content": "green\n"}, "green\n"),
    ],
)
def test_structured_content_is_shown_once(
    texts: list[str], structured: dict[str, Any], shown: str
) -> None:
    content = [TextContent(type="text", text=text) for text in texts]
    assert result_text(CallToolResult(content=[*content], structured_content=structured)) == shown
