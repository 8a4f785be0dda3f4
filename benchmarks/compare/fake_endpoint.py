"""The fake endpoint, in its own process: `python -m benchmarks.compare.fake_endpoint LOG`.

It is the rehearsal server with three models, distinguished by name:

- `steps-N-…` writes N files, one tool call per reply, and then says that it is done.
- `drift-RATE-…` is `benchmarks.drifting_model`.
- `calls-5+5_9-…` calls `work` twice for 5 seconds in its first reply, once for 9 in its second.

The log has one line per call; costs are measured from it, not reported by the runner.
"""

import argparse
import json
import re
import threading
import time
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from benchmarks.compare.adapter_task import PROMPT_OF_B
from benchmarks.drifting_model import Drifting, even_drift_rates
from benchmarks.zero_cost import ZeroCost
from rehearsal import Reply, Request, wire
from rehearsal.server import ModelServer
from rehearsal.wire import Model

CALLS = "output/calls.md"
"""What a job of Longhaul hands over in a scenario."""
SIZE = 500
"""Characters per file."""
PHASE = 80
"""Files per phase of Longhaul, which has 20 todos."""
_PHASE = re.compile(r"Todo list · \w+ phase (\d+)")
_TOLD = ("Updated file", "Wrote")


@dataclass(frozen=True)
class Stepping:
    """Writes a file in each reply, for any runner."""

    steps: int

    def __call__(self, request: Request) -> Reply:
        tools = {tool["function"]["name"] for tool in request.get("tools") or ()}
        if not tools or "todo_complete" in tools:
            return self._reply_to_longhaul(request)
        last = next(
            (message for message in reversed(request["messages"]) if message.get("tool_calls")),
            None,
        )
        count = 0
        if last is not None:
            arguments = json.loads(last["tool_calls"][0]["function"]["arguments"])
            count = int(arguments["content"].partition(" ")[0])
        if count >= self.steps:
            return Reply("All files have been written.")
        content = f"{count + 1} ".ljust(SIZE - 1, ".") + "\n"
        return wire.call("write_file", path=f"output/file_{count + 1:04d}.md", content=content)

    def _reply_to_longhaul(self, request: Request) -> Reply:
        """Reply to Longhaul: as many phases as needed, the files of each spread over its todos."""
        phases = max(1, round(self.steps / PHASE))
        files = round(self.steps / phases)
        todos = min(20, max(5, files // 4))
        reply = ZeroCost(files + todos, "write_file", SIZE, todos=todos, phases=phases)(request)
        header = _PHASE.search(str(request["messages"][-1]["content"]))
        phase = int(header.group(1)) // 2 if header else 0
        return Reply(
            reply.content,
            [_fake_call_in_phase_folder(name, arguments, phase) for name, arguments in reply.calls],
        )


def _fake_call_in_phase_folder(name: str, arguments: Any, phase: int) -> tuple[str, Any]:
    """Put the files of `ZeroCost`, which overwrites them, into a folder per phase."""
    if name == "write_file" and arguments["path"] != "plan.md":
        number = int(arguments["content"].partition(" ")[0])
        return name, {**arguments, "path": f"output/phase_{phase}/file_{number:04d}.md"}
    if name == "job_complete":
        return name, {**arguments, "deliverables": ["output/phase_1/file_0001.md"]}
    return name, arguments


@dataclass(frozen=True)
class Calling:
    """Calls `work`, for any runner."""

    replies: list[list[dict[str, float]]]
    """Arguments of the calls of each reply."""

    def __call__(self, request: Request) -> Reply:
        asked = sum(
            call["function"]["name"] == "work"
            for message in request["messages"]
            for call in message.get("tool_calls") or ()
        )
        for reply in self.replies:
            if reply[0]["number"] > asked:
                seen = _version_seen_by_model(request)
                return Reply(calls=[("work", {**each, "version": seen}) for each in reply])
        if "job_complete" not in str(request.get("tools")):
            return Reply("All calls were made.")
        ending = {"summary": "All calls were made.", "deliverables": [CALLS], "confidence": 1.0}
        write = ("write_file", {"path": CALLS, "content": "All calls were made.\n"})
        return Reply(calls=[write, ("todo_complete", {}), ("job_complete", ending)])


def _version_seen_by_model(request: Request) -> str:
    marks = {"prompt": PROMPT_OF_B in str(request["messages"])}
    marks["tool"] = "tool_of_b" in str(request.get("tools"))
    return " and ".join(mark for mark, seen in marks.items() if seen)


@dataclass
class Behaviours:
    """All models of the endpoint by name; each has its own memory."""

    models: dict[str, Model] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._lock = threading.Lock()

    def __call__(self, request: Request) -> wire.Answer:
        name = str(request.get("model"))
        with self._lock:
            model = self.models.get(name)
            if model is None:
                model = self.models[name] = _fake_model_from_name(name)
        return adapt_fake_answer(request, model)


def _fake_model_from_name(name: str) -> Model:
    kind, _, rest = name.partition("-")
    value = rest.partition("-")[0]
    if kind == "calls":
        numbers = count(1)
        replies = [reply.split("+") for reply in value.split("_")]
        return Calling(
            [[{"number": next(numbers), "seconds": float(x)} for x in reply] for reply in replies]
        )
    if kind == "drift":
        return Drifting(even_drift_rates(float(value)))
    return Stepping(int(value))


def adapt_fake_answer(request: Request, model: Model) -> wire.Answer:
    """Return the model's answer, adapted to the tools it is offered.

    Deep Agents have their own `write_file`, whose path argument is `file_path` and whose result
    begins with `Updated file`. A hosted model reads that from the tool's description; this one
    cannot.
    """
    if not any(
        "file_path" in _fake_endpoint_tool_parameters(tool) for tool in request.get("tools") or ()
    ):
        return model(request)
    answer = model(
        {
            **request,
            "messages": [_message_for_fake_model(message) for message in request["messages"]],
        }
    )
    if isinstance(answer, Reply):
        calls = [
            (name, {**arguments, "file_path": "/" + arguments["path"].lstrip("/")})
            if name == "write_file" and isinstance(arguments, dict)
            else (name, arguments)
            for name, arguments in answer.calls
        ]
        for _, arguments in calls:
            if isinstance(arguments, dict):
                arguments.pop("path", None)
        return Reply(answer.content, calls, answer.finish)
    return answer


def _fake_endpoint_tool_parameters(tool: dict[str, Any]) -> Any:
    function = tool.get("function", {})
    if function.get("name") != "write_file":
        return ()
    return function.get("parameters", {}).get("properties", {})


def _message_for_fake_model(message: dict[str, Any]) -> dict[str, Any]:
    content = message.get("content")
    if message.get("role") == "tool" and isinstance(content, str):
        return {**message, "content": content.replace(*_TOLD, 1)}
    return message


@dataclass
class Endpoint(ModelServer):
    """Logs the time, model and size of each call."""

    calls_log: Path = field(kw_only=True)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def on_request(self, incoming: wire.WireRequest) -> None:
        line = (time.perf_counter(), str(incoming.request.get("model")), incoming.size)
        with self._lock, self.calls_log.open("a", encoding="utf-8") as log:
            log.write(json.dumps(line) + "\n")


def serve_fake_endpoint() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("log", type=Path)
    server = Endpoint(Behaviours(), calls_log=parser.parse_args().log)
    print(server.base_url, flush=True)
    server.serve()


if __name__ == "__main__":
    serve_fake_endpoint()
