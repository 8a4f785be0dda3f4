"""A model for jobs that delegate: it plays the agent and its helpers."""

from typing import Any

from rehearsal import Reply, Request
from rehearsal.request_view import RequestView
from tests.workflows.short import DONE, Call, Short, close

SET: dict[str, Any] = {"tools": ["files", "todos", "job", "delegation"]}


def is_helper(request: Request) -> bool:
    return str(request["messages"][0]["content"]).startswith("You read for another agent")


def task_of(request: Request) -> str:
    return str(request["messages"][1]["content"])


def results(request: Request) -> list[str]:
    return [each["content"] for each in request["messages"] if each["role"] == "tool"]


def delegate(task: str, *files: str) -> Call:
    return ("delegate", {"task": task, "files": list(files)})


def read(path: str) -> Call:
    return ("read_file", {"path": path})


class Delegating:
    """An agent that writes leaves, has helpers read them, and notes their answers."""

    def __init__(self, *calls: Call, leaves: int = 4) -> None:
        self.calls = list(calls)
        self.leaves = leaves
        self.answers: list[str] = []
        self.requests: list[Request] = []
        self.agent = Short({"Work": self.work, "Close": [close("output/tea.md")]})

    def work(self, view: RequestView) -> list[Call]:
        if view.replies == 0:
            names = [f"notes/leaf_{n}.md" for n in range(self.leaves)]
            return [("write_file", {"path": name, "content": f"Leaf {name}"}) for name in names]
        if view.replies == 1:
            return self.calls
        self.answers = [
            done_call.result for done_call in view.calls if done_call.tool == "delegate"
        ]
        return [("write_file", {"path": "output/tea.md", "content": "tea"}), DONE]

    def help(self, request: Request) -> Any:
        """Reads what the task names, then answers with it."""
        tool_results = results(request)
        if not tool_results:
            paths = task_of(request).rpartition("\n\n")[2].splitlines()
            return Reply(calls=[read(path.removeprefix("- ")) for path in paths])
        return Reply(
            content=f"Read {len(tool_results)}: {tool_results[0].splitlines()[-1].strip()}"
        )

    def __call__(self, request: Request) -> Any:
        self.requests.append(request)
        return self.help(request) if is_helper(request) else self.agent(request)
