"""A server for everything that the public ones do not do: slow, crashing, garbled, changing.

    odd.py <ledger> [http <port>]

What it does outside shows in the file `<ledger>`, a line for each call that came in.
"""

from __future__ import annotations

import asyncio
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from mcp.server import Server
from mcp.server.stdio import stdio_server
from mcp.types import CallToolRequestParams, CallToolResult, ListToolsResult, TextContent, Tool
from mcp.types import ToolAnnotations as Hints

LEDGER = Path(sys.argv[1])
TEXT = {
    "type": "object",
    "properties": {
        "text": {"type": "string", "pattern": "^[a-z ]+$", "description": "What to note."},
        "times": {"type": "integer", "minimum": 1},
    },
    "required": ["text"],
    "additionalProperties": False,
}
NOTHING: dict[str, Any] = {"type": "object", "properties": {}}
READS = Hints(read_only_hint=True)
AGAIN = Hints(read_only_hint=False, idempotent_hint=True)


def tools() -> list[Tool]:
    first = "listed" not in ledger()
    found = [
        Tool(name="note", description="Note a text.\n\nIt is kept.", input_schema=TEXT),
        Tool(name="look", description="See it.", input_schema=NOTHING, annotations=READS),
        Tool(name="slow", description="Take long.", input_schema=NOTHING),
        Tool(name="crash", description="Die.", input_schema=NOTHING),
        Tool(name="stumble", description="Die once.", input_schema=NOTHING, annotations=READS),
        Tool(name="fall", description="Die always.", input_schema=NOTHING, annotations=AGAIN),
        Tool(name="huge", description="Say much.", input_schema=NOTHING, annotations=READS),
        Tool(name="refuse", description="Say no.", input_schema=NOTHING, annotations=READS),
        Tool(name="variables", description="Tell.", input_schema=NOTHING, annotations=READS),
        Tool(name="context", description="Odd names.", input_schema={
            "type": "object", "properties": {"context": {"type": "string"}}}),
        Tool(name="wrong", description="Wrong.", input_schema={
            "type": "object", "properties": {"a": {"type": "no such type"}}}),
        Tool(name="with space/ü", description="Named oddly.", input_schema=NOTHING),
    ]  # fmt: skip
    if first:
        enter("listed")
        return found
    return [tool for tool in found if tool.name != "context"]


def ledger() -> str:
    return LEDGER.read_text() if LEDGER.exists() else ""


def enter(line: str) -> None:
    with LEDGER.open("a") as file:
        file.write(f"{line}\n")


def fail(line: str) -> None:
    enter(line)
    print("out of paper", file=sys.stderr, flush=True)
    os._exit(3)


async def call(name: str, arguments: dict[str, Any]) -> str:
    match name:
        case "note" | "context":
            enter(f"{name} {arguments}")
        case "slow":
            enter("slow")
            await asyncio.sleep(60)
        case "crash":
            fail("crash")
        case "stumble" if "stumble" not in ledger():
            fail("stumble")
        case "fall":
            fail("fall")
        case "huge":
            return "tea " * 1_000_000
        case "look":
            return ledger()
        case "variables":
            return " ".join(f"{name}={value}" for name, value in sorted(os.environ.items()))
    return "done"


async def on_call(_: Any, params: CallToolRequestParams) -> CallToolResult:
    # No protocol at all, as a library that greets its users would do.
    os.write(2, b"at work\n")
    if params.name == "refuse":
        refusal = TextContent(type="text", text="no tea today")
        return CallToolResult(content=[refusal], is_error=True)
    text = await call(params.name, params.arguments or {})
    return CallToolResult(content=[TextContent(type="text", text=text)])


async def on_list(_: Any, __: Any) -> ListToolsResult:
    return ListToolsResult(tools=tools())


async def main(server: Server[Any]) -> None:
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    odd = Server("odd", on_list_tools=on_list, on_call_tool=on_call)
    if len(sys.argv) > 2:
        # Late: it takes as long to load as all else.
        import_module("uvicorn").run(
            odd.streamable_http_app(), port=int(sys.argv[3]), log_level="error"
        )
    else:
        os.write(1, b"Welcome to odd!\n\xff\xfe\n")
        asyncio.run(main(odd))
