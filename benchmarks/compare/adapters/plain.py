"""A loop of twenty lines: ask, run the calls, stop at the first reply without one."""

import asyncio
import json
from typing import Any

from openai import AsyncOpenAI

from benchmarks.compare.adapter_task import (
    KEY,
    TOOL,
    AdapterTask,
    Outcome,
    failed_adapter_outcome,
    task_tool,
)
from benchmarks.compare.scenario_tools import adapter_tools, work

OFFERED: Any = {
    "type": "function",
    "function": {
        "name": "write_file",
        "description": TOOL,
        "parameters": {
            "type": "object",
            "properties": {"path": {"type": "string"}, "content": {"type": "string"}},
            "required": ["path", "content"],
            "additionalProperties": False,
        },
    },
}


async def run_plain(task: AdapterTask) -> Outcome:
    client = AsyncOpenAI(base_url=task.base_url, api_key=KEY)
    try:
        async with asyncio.timeout(task.cap):
            await _run_plain_loop(client, task)
    except TimeoutError:
        return Outcome("time")
    except Exception as error:
        return failed_adapter_outcome(error)
    return Outcome("finished")


async def _run_plain_loop(client: AsyncOpenAI, task: AdapterTask) -> None:
    write = task_tool(task)
    messages: list[Any] = [
        {"role": "system", "content": task.system},
        {"role": "user", "content": task.prompt},
    ]
    while True:
        answer = await client.chat.completions.create(
            model=task.model,
            messages=messages,
            tools=_plain_loop_tools(task),
            temperature=0,
        )
        reply = answer.choices[0].message
        messages.append(reply.model_dump(exclude_none=True))
        if not reply.tool_calls:
            return
        for call in reply.tool_calls:
            if call.type == "function":
                result = await _run_plain_loop_call(
                    write, call.function.name, call.function.arguments
                )
                messages.append({"role": "tool", "tool_call_id": call.id, "content": result})


def _plain_loop_tools(task: AdapterTask) -> list[Any]:
    if not task.scenario:
        return [OFFERED]
    names = [each.__name__ for each in adapter_tools(task)]
    return [{"type": "function", "function": {"name": name}} for name in names]


async def _run_plain_loop_call(write: Any, name: str, arguments: str) -> str:
    try:
        if name == "work":
            return await work(**json.loads(arguments))
        if name != "write_file":
            return f"Error: there is no tool {name}."
        return str(write(**json.loads(arguments)))
    except (ValueError, TypeError) as error:
        return f"Error: {error}"
