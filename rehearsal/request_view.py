"""A parsed request: the only input of the rehearsal model."""

import json
import re
from dataclasses import dataclass, field
from typing import Any

from protocol.short_text import one_line
from rehearsal.wire import Request

_HEADER = re.compile(r'Todo list · (strategic|tactical) phase (\d+)(?: "(.*?)")?(?: · |$)', re.M)
_TODO = re.compile(r"^([☑▶☐]) (-?\d+)\. (.*)$")
_LIMITS = re.compile(r"(\d+) to\s+(\d+) todos")
_SCOPE = re.compile(r"^- ([SBPA]\d+) \(open\): (.*)$", re.MULTILINE)
_SAME = re.compile(r"The same result as that of (.*) above, to the letter")
SHOWN_CALL = 200
"""Characters of the call shown in a result that refers to another call."""
_WORKSPACE = "## workspace.md as this phase began"
_JUDGED = "# The task (instructions.md)"
_DEFERRED = "## Tools on demand"


@dataclass(frozen=True)
class Todo:
    id: int
    text: str
    mark: str


@dataclass(frozen=True)
class AnsweredCall:
    """A tool call with its result."""

    tool: str
    arguments: str
    """Canonical JSON, for comparison."""
    result: str


@dataclass
class RequestView:
    """The parts of a request that the rules need."""

    kind: str
    number: int
    phase: str
    todos: list[Todo]
    system: str
    opening: str
    """The phase's first message."""
    tools: frozenset[str]
    calls: list[AnsweredCall] = field(default_factory=list)
    """Calls since the last `todo_complete`, oldest first."""
    replies: int = 0
    """Number of replies that contained those calls."""
    refusal: str = ""
    """Why the last `todo_complete` was refused; empty when it was not."""

    @property
    def current_todo(self) -> Todo | None:
        return next((todo for todo in self.todos if todo.mark == "▶"), None)

    @property
    def agent(self) -> str:
        return self.system.partition("\n")[0].lstrip("# ").partition(" · ")[0]

    @property
    def is_bootstrap(self) -> bool:
        return self.opening.startswith("The job begins.")

    @property
    def workspace(self) -> str:
        """`workspace.md` at the beginning of the phase."""
        return self.system.partition(_WORKSPACE)[2].strip()

    @property
    def deferred(self) -> frozenset[str]:
        """Tools that need a search before they can be called."""
        listed = self.system.partition(_WORKSPACE)[0].partition(_DEFERRED)[2]
        return frozenset(re.findall(r"^- `(\S+)`: ", listed, re.MULTILINE)) - self.tools

    @property
    def open_items(self) -> dict[str, str]:
        """Scope items, and steps that left the plan, open when the phase began: text by id."""
        return dict(_SCOPE.findall(self.opening))

    @property
    def issue(self) -> str:
        """Why the previous phase was rewound; empty if it was not."""
        match = re.search(r"The issue: (.*)", self.opening)
        return match.group(1) if match else ""

    @property
    def archive(self) -> str:
        """The last archive page, from the phase's first message."""
        matches = list(re.finditer(r"^# archive.*$", self.opening, re.MULTILINE))
        return self.opening[matches[-1].end() :].strip() if matches else ""

    @property
    def todo_limits(self) -> tuple[int, int]:
        match = _LIMITS.search(self.system)
        return (int(match.group(1)), int(match.group(2))) if match else (5, 20)


def parse_request_view(request: Request) -> RequestView:
    messages = request["messages"]
    last = request_message_text(messages[-1])
    header = _HEADER.search(last)
    view = RequestView(
        kind=header.group(1) if header else "strategic",
        number=int(header.group(2)) if header else 0,
        phase=(header.group(3) or "") if header else "",
        todos=_parse_request_todos(last),
        system=request_message_text(messages[0]),
        opening=request_message_text(messages[1]) if len(messages) > 2 else "",
        tools=frozenset(tool["function"]["name"] for tool in request.get("tools") or []),
    )
    _collect_request_calls(view, messages)
    return view


def request_message_text(message: dict[str, Any]) -> str:
    """Return a message's text; one that marks what a provider caches has it in parts."""
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    return "".join(str(part.get("text") or "") for part in content)


def canonical_arguments(arguments: dict[str, Any] | str) -> str:
    """Return arguments in canonical form, for comparison."""
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except ValueError:
            return str(arguments)
    return json.dumps(arguments, sort_keys=True)


def is_error_result(result: str) -> bool:
    return result.startswith("Error")


def _parse_request_todos(text: str) -> list[Todo]:
    return [
        Todo(int(match.group(2)), match.group(3), match.group(1))
        for line in text.splitlines()
        if (match := _TODO.match(line))
    ]


def _collect_request_calls(view: RequestView, messages: list[dict[str, Any]]) -> None:
    """Collect calls back to the last `todo_complete`, since only these belong to this todo."""
    results = {
        message.get("tool_call_id", ""): request_message_text(message)
        for message in messages
        if message.get("role") == "tool"
    }
    calls = [call for message in messages for call in message.get("tool_calls") or []]
    latest: dict[str, str] = {}
    for call in calls:
        function, text = call["function"], results.get(call["id"], "")
        if named := _SAME.match(text):
            results[call["id"]] = latest.get(named[1], text)
        else:
            latest[one_line(f"{function['name']} {function['arguments']}", SHOWN_CALL)] = text
    for message in reversed(messages[1:-1]):
        calls = message.get("tool_calls") or []
        if not calls:
            continue
        for entry in reversed(calls):
            function, result = entry["function"], results.get(entry["id"], "")
            if function["name"] == "todo_complete":
                view.refusal = result if is_error_result(result) else ""
                view.calls.reverse()
                return
            view.calls.append(
                AnsweredCall(function["name"], canonical_arguments(function["arguments"]), result)
            )
        view.replies += 1
    view.calls.reverse()


def is_judge_request(request: Request) -> bool:
    return request_message_text(request["messages"][-1]).startswith(_JUDGED)
