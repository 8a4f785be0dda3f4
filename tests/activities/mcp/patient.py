"""A server made with the SDK that asks people and runs tasks.

    patient.py <ledger> [older] [http <port>] [<seconds that it remembers its questions>.0]

With `older` (HTTP only) it speaks no protocol after 2025-11-25, the last in which a server asks
during a call.

It writes a line to the file `<ledger>` for each thing it does. Its tasks are stored next to that
file, so they outlive its process.
"""

import json
import sys
import time
import uuid
from pathlib import Path
from typing import Annotated, Any, Literal

from mcp.server.context import ServerRequestContext
from mcp.server.extension import Extension, MethodBinding
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.resolve import Elicit, Resolve
from mcp.server.request_state import RequestStateSecurity
from mcp.shared.exceptions import MCPError
from mcp.types import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    CallToolRequestParams,
    RequestParams,
    Result,
)
from pydantic import BaseModel, Field

LEDGER = Path(sys.argv[1])
TASKS = LEDGER.with_name(f"{LEDGER.name}.tasks")
CUP = {
    "type": "object",
    "properties": {"cup": {"type": "string", "enum": ["blue", "red"]}},
    "required": ["cup"],
}


def enter(line: str) -> None:
    with LEDGER.open("a") as file:
        file.write(f"{line}\n")


class Size(BaseModel):
    size: Literal["small", "large"] = Field("small", description="How much.")
    sugar: bool = False


class Sure(BaseModel):
    name: str


class CreatedTask(Result):
    result_type: Literal["task"] = "task"
    task_id: str
    status: str = "working"
    created_at: str = "2026-07-28T00:00:00Z"
    last_updated_at: str = "2026-07-28T00:00:00Z"
    ttl_ms: int | None = None
    poll_interval_ms: int = 200


class TaskParams(RequestParams):
    task_id: str
    input_responses: dict[str, Any] | None = None


class Tasks(Extension):
    identifier = "io.modelcontextprotocol/tasks"

    def methods(self) -> list[MethodBinding]:
        return [
            MethodBinding("tasks/get", TaskParams, self.get),
            MethodBinding("tasks/update", TaskParams, self.update),
            MethodBinding("tasks/cancel", TaskParams, self.cancel),
        ]

    async def intercept_tool_call(
        self, params: CallToolRequestParams, ctx: ServerRequestContext[Any, Any], call_next: Any
    ) -> Any:
        if params.name != "brew":
            return await call_next(ctx)
        arguments = params.arguments or {}
        task = uuid.uuid4().hex
        TASKS.mkdir(exist_ok=True)
        self.write(task, {"ends": time.time() + arguments["seconds"], **arguments})
        enter(f"brew {task}")
        return CreatedTask(task_id=task)

    async def get(self, _: Any, params: TaskParams) -> dict[str, Any]:
        task = self.read(params.task_id)
        enter("poll")
        task_state: dict[str, Any] = {
            "resultType": "complete", "taskId": params.task_id, "status": "working",
            "createdAt": "2026-07-28T00:00:00Z", "lastUpdatedAt": "2026-07-28T00:00:00Z",
            "ttlMs": None, "pollIntervalMs": 200, "statusMessage": "the water boils",
        }  # fmt: skip
        if task.get("cancelled"):
            return {**task_state, "status": "cancelled"}
        if task.get("asks") and "answer" not in task:
            cup_form = {"mode": "form", "message": "Which cup?", "requestedSchema": CUP}
            requests = {"cup": {"method": "elicitation/create", "params": cup_form}}
            return {**task_state, "status": "input_required", "inputRequests": requests}
        if time.time() < task["ends"]:
            return task_state
        if how := task.get("fails"):
            error = {"code": -32603, "message": how}
            return {**task_state, "status": "failed", "error": error}
        text = f"tea is ready {task.get('answer', '')}".strip()
        result = {"content": [{"type": "text", "text": text}], "isError": False}
        return {**task_state, "status": "completed", "result": task.get("result") or result}

    async def update(self, _: Any, params: TaskParams) -> dict[str, Any]:
        task = self.read(params.task_id)
        enter("update")
        task["answer"] = json.dumps((params.input_responses or {})["cup"].get("content"))
        self.write(params.task_id, task)
        return {"resultType": "complete"}

    async def cancel(self, _: Any, params: TaskParams) -> dict[str, Any]:
        self.write(params.task_id, self.read(params.task_id) | {"cancelled": True})
        enter("cancel")
        return {"resultType": "complete"}

    def read(self, task: str) -> dict[str, Any]:
        try:
            record: dict[str, Any] = json.loads((TASKS / task).read_text())
        except OSError:
            raise MCPError(INVALID_PARAMS, "Task not found") from None
        return record

    def write(self, task: str, record: dict[str, Any]) -> None:
        (TASKS / task).write_text(json.dumps(record))


async def ask_size(kind: str) -> Elicit[Size]:
    return Elicit(f"How much {kind}?", Size)


async def ask_name(kind: str) -> Elicit[Sure]:
    return Elicit(f"Who drinks the {kind}?", Sure)


def serve(ttl: float) -> MCPServer[Any]:
    server: MCPServer[Any] = MCPServer(
        "patient",
        extensions=[Tasks()],
        # Longer than 32 bytes, and the same in every process.
        request_state_security=RequestStateSecurity(keys=[b"k" * 32], ttl=ttl),
    )

    @server.tool()
    async def order(kind: str, size: Annotated[Size, Resolve(ask_size)]) -> str:
        """Order something, of a size that a person says."""
        enter(f"order {kind} {size.size} {size.sugar}")
        return f"ordered {size.size} {kind}"

    @server.tool()
    async def sign(
        kind: str,
        name: Annotated[Sure, Resolve(ask_name)],
        size: Annotated[Size, Resolve(ask_size)],
    ) -> str:
        """Order something for somebody."""
        enter(f"sign {kind} {name.name} {size.size}")
        return f"{size.size} {kind} for {name.name}"

    @server.tool()
    async def reserve(kind: str, context: Context[Any, Any]) -> str:
        """Reserve something, and ask in the midst of it how much."""
        enter(f"reserve {kind}")
        answer = await context.elicit(f"How much {kind}?", Size)
        size = answer.data.size if answer.action == "accept" else answer.action
        enter(f"reserved {kind} {size}")
        return f"reserved {size} {kind}"

    @server.tool()
    async def pledge(kind: str, context: Context[Any, Any]) -> str:
        """Ask in the midst of it for what has no default."""
        answer = await context.elicit(f"Who drinks the {kind}?", Sure)
        enter(f"pledge {answer.action}")
        return f"pledged: {answer.action}"

    @server.tool(structured_output=False)
    async def brew(
        seconds: float, asks: bool = False, fails: str = "", result: dict[str, Any] | None = None
    ) -> str:
        """Brew for long."""
        raise AssertionError("it is answered with a task")

    return server


async def refuse_discovery(context: Any, params: RequestParams) -> Any:
    raise MCPError(METHOD_NOT_FOUND, "Method not found")


if __name__ == "__main__":
    form = sys.argv[2:]
    older = form[:1] == ["older"] and bool(form.pop(0))
    ttl = float(form.pop()) if form[-1:] and form[-1].endswith(".0") else 600.0
    server = serve(ttl)
    if older:
        server._lowlevel_server.add_request_handler(
            "server/discover", RequestParams, refuse_discovery
        )
    if form:
        server.run("streamable-http", port=int(form[1]))
    else:
        server.run("stdio")
