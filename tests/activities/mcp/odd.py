"""A server with every unusual behaviour: slow, crashing, garbled, changing.

    odd.py <ledger> [sdk | http <port>]

It writes a line to the file `<ledger>` for each call that arrives.
"""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

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
ROWS = {
    "type": "object", "properties": {"rows": {"type": "integer"}}, "required": ["rows"]
}  # fmt: skip
TEXTS = [{"type": "text", "text": "3 rows were written"}]
ODDLY: dict[str, dict[str, Any]] = {
    "misfit": {"content": TEXTS, "structuredContent": {"rows": "three"}},
    "unstructured": {"content": TEXTS},
    "shapeless": {"rows": 3, "written": True},
    "mistyped": {"content": "3 rows were written"},
    "failed": {"content": "no rows", "isError": True},
}
"""Answers that violate the protocol, or the schema that was declared."""
READS = {"readOnlyHint": True}
AGAIN = {"readOnlyHint": False, "idempotentHint": True}


def tool(
    name: str, description: str, schema: dict[str, Any], hints: dict[str, bool] | None = None
) -> dict[str, Any]:
    declaration = {"name": name, "description": description, "inputSchema": schema}
    return {**declaration, "annotations": hints} if hints else declaration


def tools() -> list[dict[str, Any]]:
    first = "listed" not in ledger()
    declarations = [
        tool("note", "Note a text.\n\nIt is kept.", TEXT),
        tool("look", "See it.", NOTHING, READS),
        tool("slow", "Take long.", NOTHING),
        tool("crash", "Die.", NOTHING),
        tool("stumble", "Die once.", NOTHING, READS),
        tool("fall", "Die always.", NOTHING, AGAIN),
        tool("huge", "Say much.", NOTHING, READS),
        tool("refuse", "Say no.", NOTHING, READS),
        tool("fault", "Fail.", {"type": "object", "properties": {"code": {}, "message": {}}}),
        tool("variables", "Tell.", NOTHING, READS),
        tool("context", "Odd names.", {
            "type": "object", "properties": {"context": {"type": "string"}}}),
        tool("wrong", "Wrong.", {
            "type": "object", "properties": {"a": {"type": "no such type"}}}),
        tool("with space/ü", "Named oddly.", NOTHING),
        *({**tool(name, "Answer oddly.", NOTHING), "outputSchema": ROWS} for name in ODDLY),
    ]  # fmt: skip
    if first:
        enter("listed")
        return declarations
    return [each for each in declarations if each["name"] != "context"]


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


async def called(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    # Output outside the protocol, such as a greeting that a library prints.
    os.write(2, b"at work\n")
    if name in ODDLY:
        enter(name)
        return ODDLY[name]
    text = "no tea today" if name == "refuse" else await call(name, arguments)
    return {"content": [{"type": "text", "text": text}], "isError": name == "refuse"}


async def over_stdio() -> None:
    """Serve without the SDK, which takes half a second to load; dozens of tests do this."""
    loop, lines = asyncio.get_running_loop(), asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    answering: dict[int, asyncio.Task[None]] = {}
    async for line in lines:
        message = json.loads(line)
        if message["method"] == "notifications/cancelled":
            answering[message["params"]["requestId"]].cancel()
        else:
            answering[message["id"]] = asyncio.create_task(answer(message))


async def answer(request: dict[str, Any]) -> None:
    response: dict[str, Any] = {"jsonrpc": "2.0", "id": request["id"]}
    common = {"resultType": "complete", "cacheScope": "private", "ttlMs": 0}
    match request["method"], request["params"]:
        case "server/discover", _:
            supported = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
            response["result"] = {**common, **supported}
        case "tools/list", _:
            response["result"] = {**common, "tools": tools()}
        case "tools/call", {"name": "fault", "arguments": {"code": code, **more}}:
            enter("fault")
            response["error"] = {"code": code, "message": more.get("message", "out of water")}
        case "tools/call", {"name": name, "arguments": arguments}:
            response["result"] = {"resultType": "complete", **await called(name, arguments)}
        case _:
            response["error"] = {"code": -32601, "message": "Method not found"}
    sys.stdout.write(f"{json.dumps(response)}\n")
    sys.stdout.flush()


def by_the_sdk(port: int | None) -> None:
    """Serve with the SDK, as most servers do: over HTTP, or over stdio without a port."""
    from mcp.server import Server  # noqa: PLC0415
    from mcp.server.stdio import stdio_server  # noqa: PLC0415
    from mcp.types import CallToolRequestParams, CallToolResult, ListToolsResult  # noqa: PLC0415

    async def on_list(_: Any, __: Any) -> ListToolsResult:
        return ListToolsResult.model_validate({"tools": tools()})

    async def on_call(_: Any, params: CallToolRequestParams) -> CallToolResult:
        return CallToolResult.model_validate(await called(params.name, params.arguments or {}))

    server: Server[Any] = Server("odd", on_list_tools=on_list, on_call_tool=on_call)

    async def on_stdio() -> None:
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())

    if port is None:
        asyncio.run(on_stdio())
    else:
        import uvicorn  # noqa: PLC0415

        uvicorn.run(server.streamable_http_app(), port=port, log_level="error")


if __name__ == "__main__":
    form = sys.argv[2:]
    if form[:1] != ["http"]:
        os.write(1, b"Welcome to odd!\n\xff\xfe\n")
    if form:
        by_the_sdk(int(form[1]) if form[1:] else None)
    else:
        asyncio.run(over_stdio())
