"""Pages of tools as servers send them: one that does not fit takes no other away."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp.types import ListToolsResult

from activities.mcp.declarations import declare_tools
from activities.mcp.raw_answers import mend_tool_page
from config.agent_files import load_agent
from config.schema.agent import ConfigError

GOOD = {"name": "good", "inputSchema": {"type": "object", "properties": {}}}
BOTH = ("2025-11-25", "2026-07-28")
FRAMES: dict[str, dict[str, Any]] = {
    "2025-11-25": {},
    "2026-07-28": {"resultType": "complete", "cacheScope": "private", "ttlMs": 0},
}


def schema(**more: Any) -> dict[str, Any]:
    return {"inputSchema": {"type": "object", "properties": {"a": {"type": "string"}}, **more}}


KEPT: dict[str, dict[str, Any]] = {
    "odd icons": {**schema(), "icons": "tea.png"},
    "icons without a source": {**schema(), "icons": [{"sizes": 3}]},
    "odd annotations": {**schema(), "annotations": ["reads"]},
    "an odd hint": {**schema(), "annotations": {"readOnlyHint": "perhaps"}},
    "an odd description": {**schema(), "description": {"en": "x"}},
    "an odd title": {**schema(), "title": 4},
    "an odd output schema": {**schema(), "outputSchema": "rows"},
    "an odd execution": {**schema(), "execution": {"taskSupport": "sometimes"}},
    "odd metadata": {**schema(), "_meta": 3},
    "alternatives at the top": schema(anyOf=[{"required": ["a"]}, {"required": ["b"]}]),
    "no type at the top": {"inputSchema": {"anyOf": [{"required": ["a"]}]}},
    "several at once": {**schema(), "icons": 1, "annotations": 2, "title": 3},
}
LEFT_OUT: dict[str, Any] = {
    "no schema": {"name": "bad"},
    "null": {"name": "bad", "inputSchema": None},
    "a text": {"name": "bad", "inputSchema": "object"},
    "a list": {"name": "bad", "inputSchema": []},
    "no name": schema(),
    "an odd name": {"name": 7, **schema()},
    "no object": "bad",
    "nothing": None,
}


@pytest.mark.parametrize("version", BOTH)
@pytest.mark.parametrize("form", KEPT)
def test_a_tool_is_kept_without_what_it_can_do_without(form: str, version: str) -> None:
    left_out: dict[str, str] = {}
    page = {**FRAMES[version], "tools": [GOOD, {"name": "odd", **KEPT[form]}, GOOD]}
    mended = mend_tool_page(page, version, left_out)
    assert not left_out
    read = ListToolsResult.model_validate(mended)
    assert [tool.name for tool in read.tools] == ["good", "odd", "good"]
    assert mended["tools"][0] == GOOD
    assert read.tools[1].input_schema["type"] == "object"


@pytest.mark.parametrize("version", BOTH)
@pytest.mark.parametrize("form", LEFT_OUT)
def test_a_tool_that_does_not_fit_is_left_out_alone(form: str, version: str) -> None:
    left_out: dict[str, str] = {}
    page = {**FRAMES[version], "tools": [GOOD, LEFT_OUT[form]], "nextCursor": ""}
    mended = mend_tool_page(page, version, left_out)
    assert mended["tools"] == [GOOD]
    assert "nextCursor" not in mended
    [(name, why)] = left_out.items()
    assert name in ("bad", "number 2")
    assert why


def test_what_is_no_page_is_left_to_the_client() -> None:
    for page in ({}, {"tools": None}, {"tools": [], "ttlMs": "soon"}):
        assert mend_tool_page(page, "2026-07-28", {}) == page


SERVER = """
import json, sys
tools = json.loads(sys.argv[1])
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    if message["method"] == "initialize":
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                  "serverInfo": {"name": "odd", "version": "1"}}
    elif message["method"] == "tools/list":
        result = {"tools": tools}
    else:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"],
                          "error": {"code": -32601, "message": "Method not found"}}), flush=True)
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""


def test_a_job_starts_with_the_tools_that_fit(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(SERVER)
    tools = [GOOD, {"name": "iconic", **KEPT["odd icons"]}, LEFT_OUT["no schema"]]
    command = [sys.executable, str(tmp_path / "server.py"), json.dumps(tools)]
    config = load_agent("generalist", {"mcp": {"odd": {"command": command}}})
    assert declare_tools(config) == ["the tool bad of odd is left out: it declares no inputSchema"]
    assert [tool.tool for tool in config.server_tools] == ["good", "iconic"]
    # One that is asked for by name is known, and told; another name is a mistake.
    asked = {"command": command, "tools": ["good", "bad"]}
    config = load_agent("generalist", {"mcp": {"odd": asked}})
    assert len(declare_tools(config)) == 1
    assert [tool.tool for tool in config.server_tools] == ["good"]
    wrong = load_agent("generalist", {"mcp": {"odd": {**asked, "tools": ["other"]}}})
    with pytest.raises(ConfigError, match="other is no tool of the server"):
        declare_tools(wrong)
