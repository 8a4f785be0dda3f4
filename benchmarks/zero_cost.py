"""A model that costs next to nothing, so that benchmarks measure the runner.

It looks only at the todo list and the last reply, and carries its progress in its own calls.
"""

import json
import re
from dataclasses import dataclass
from typing import Any, Literal

from rehearsal.wire import Arguments, Reply, Request

_HEADER = re.compile(r"Todo list · (strategic|tactical) phase (\d+)")
_COUNT = re.compile(r"\d+")
_FILES = 50
Call = tuple[str, Arguments]
LOG = "output/log.md"
_LATER_LOG = "output/log_{:03d}.md"


@dataclass(frozen=True)
class ZeroCost:
    """Completes a job in the fewest possible replies, except for tactical ones.

    Args:
        steps: Model calls of each tactical phase, `todo_complete` included.
        tool: The tool called in every step.
        size: Characters written by one call.
        appends: Appends per log file; 0 appends everything to one.
        todos: Todos of each tactical phase, 5 to 20.
        phases: Number of tactical phases.
    """

    steps: int = 100
    tool: Literal["append_file", "write_file", "read_file"] = "append_file"
    size: int = 200
    appends: int = 0
    todos: int = 5
    phases: int = 1

    def __call__(self, request: Request) -> Reply:
        if not request.get("tools"):
            return Reply(content="The steps were carried out.")
        messages = request["messages"]
        listed: str = messages[-1]["content"]
        header = _HEADER.search(listed)
        if header is None or header.group(1) == "tactical":
            return self._tactical(messages, listed)
        return self._strategic(int(header.group(2)), messages[-3], listed)

    def _tactical(self, messages: list[dict[str, Any]], listed: str) -> Reply:
        ticked = listed.count("\n☑ ")
        total = ticked + 1 + listed.count("\n☐ ")
        count = self._count(messages[-3], self.steps * ticked // total) + 1
        if count >= self.steps * (ticked + 1) // total:
            return Reply(calls=[("todo_complete", {"notes": str(count)})])
        if self.tool == "read_file":
            # Carry the count in a limit that no file reaches.
            return Reply(calls=[("read_file", {"path": "plan.md", "limit": count % 5000 or 1})])
        appends = self.tool == "append_file"
        path = self._log(count) if appends else f"output/file_{count % _FILES:02d}.md"
        content = f"{count} ".ljust(self.size - 1, ".") + "\n"
        return Reply(calls=[(self.tool, {"path": path, "content": content})])

    def _log(self, count: int) -> str:
        number = count // self.appends if self.appends else 0
        return _LATER_LOG.format(number) if number else LOG

    def _count(self, last: dict[str, Any], start: int) -> int:
        """Return the count carried in the last reply; `start` if there is none."""
        for entry in last.get("tool_calls") or ():
            try:
                arguments = json.loads(entry["function"]["arguments"])
            except ValueError:
                continue
            carried = arguments.get("content") or arguments.get("notes") or arguments.get("limit")
            if match := _COUNT.match(str(carried)):
                return max(int(match.group()), start)
        return start

    def _strategic(self, number: int, last: dict[str, Any], listed: str) -> Reply:
        current = listed.partition("\n▶ ")[2].partition("\n")[0]
        passed = number // 2
        done: Call = ("todo_complete", {"notes": ""})
        if passed >= self.phases:
            # Reading alone completes nothing that a job was asked for.
            read = [self._write_log()] if self.tool == "read_file" else []
            return Reply(calls=[self._plan(self.phases), *read, self._finish()])
        if "todo_write" in current:
            names = [entry["function"]["name"] for entry in last.get("tool_calls") or ()]
            return Reply(calls=[done if "todo_write" in names else self._todos(passed + 1)])
        if "plan.md" in current and not current.partition(". ")[2].startswith("Check"):
            return Reply(calls=[self._plan(passed), done])
        return Reply(calls=[done])

    def _todos(self, number: int) -> Call:
        todos = [{"id": n + 1, "content": f"Make step {n + 1}"} for n in range(self.todos)]
        arguments = {"phase": f"Steps {number}", "description": "", "todos": todos}
        return ("todo_write", arguments)

    def _plan(self, done: int) -> Call:
        lines = ["# Plan"]
        for number in range(1, self.phases + 1):
            box = "x" if number <= done else " "
            lines += ["", f"## Phase {number}: Steps {number}", "", f"- [{box}] Make the steps"]
        return ("write_file", {"path": "plan.md", "content": "\n".join(lines) + "\n"})

    def _write_log(self) -> Call:
        return ("write_file", {"path": LOG, "content": f"{self.phases * self.steps} reads.\n"})

    def _finish(self) -> Call:
        arguments = {
            "summary": f"{self.phases} phases of {self.steps} steps were made.",
            "deliverables": ["output/file_01.md" if self.tool == "write_file" else LOG],
            "confidence": 1.0,
        }
        return ("job_complete", arguments)
