"""A model that writes sixty files in six phases, with as many calls in a reply as it is allowed.

It sees only its requests and remembers nothing. Its model calls in a job show the cost of phases
and todos, compared with the minimum, which a plain loop needs.
"""

import re
from collections.abc import Iterator
from typing import Any

from rehearsal.wire import Arguments, Reply, Request

FILES = 60
PER_PHASE = 10
MOST_CALLS = 32
_HEADER = re.compile(r"Todo list · (strategic|tactical) phase (\d+)")
_TODO = re.compile(r"^([☑▶☐]) \d+\. (.*)$", re.MULTILINE)
_PATH = re.compile(r"output/file_(\d+)\.md")
Call = tuple[str, Arguments]
DONE: Call = ("todo_complete", {"notes": "As planned."})


def capable_file_content(number: int) -> str:
    return f"# File {number}\n\nIts square is {number * number}.\n"


def capable_file_path(number: int) -> str:
    return f"output/file_{number:02d}.md"


class Capable:
    """The model.

    Args:
        most: Maximum number of calls in one reply.
        files: How many it writes, a multiple of ten.
    """

    def __init__(self, most: int = MOST_CALLS, files: int = FILES) -> None:
        self._most = most
        self._files = files
        self.calls = 0
        """Requests received, summaries included."""

    def __call__(self, request: Request) -> Reply:
        self.calls += 1
        if not request.get("tools"):
            return Reply("The phase went as its todos say.")
        messages = request["messages"]
        header = _HEADER.search(str(messages[-1]["content"]))
        if header is None:
            planned = self._left_alone(messages)
        elif header.group(1) == "tactical":
            planned = _capable_tactical_calls(messages)
        else:
            planned = _capable_strategic_calls(messages, self._most > 1, self._files)
        calls = [call for call, _ in zip(planned, range(self._most), strict=False)]
        return Reply(calls=calls) if calls else Reply("All files are there.")

    def _left_alone(self, messages: list[dict[str, Any]]) -> Iterator[Call]:
        """Yield writes of all files after those written so far, in a plain loop."""
        written = sum(message["role"] == "tool" for message in messages)
        return (_capable_write_call(number) for number in range(written + 1, self._files + 1))


def _capable_write_call(number: int) -> Call:
    return (
        "write_file",
        {"path": capable_file_path(number), "content": capable_file_content(number)},
    )


def _capable_calls_in_phase(messages: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Return the phase's calls so far: tool and arguments."""
    calls = (call["function"] for m in messages for call in m.get("tool_calls") or [])
    return [(call["name"], str(call["arguments"])) for call in calls]


def _capable_tactical_calls(messages: list[dict[str, Any]]) -> Iterator[Call]:
    written = {
        arguments for name, arguments in _capable_calls_in_phase(messages) if name == "write_file"
    }
    for mark, text in _TODO.findall(str(messages[-1]["content"])):
        if mark == "☑":
            continue
        match = _PATH.search(text)
        number = int(match.group(1)) if match else 1
        if not any(capable_file_path(number) in arguments for arguments in written):
            yield _capable_write_call(number)
        yield DONE


def _capable_strategic_calls(
    messages: list[dict[str, Any]], batches: bool, files: int
) -> Iterator[Call]:
    """Yield the calls the phase still lacks; without batching, complete each todo separately."""
    earlier = _capable_calls_in_phase(messages)
    todos = _TODO.findall(str(messages[-1]["content"]))
    first = next((message for message in messages if message["role"] == "user"), {})
    opening = str(first.get("content"))
    begun = opening.startswith("The job begins.")
    written = 0 if begun else max(map(int, re.findall(r"- \[x\] .*file_(\d+)", opening)), default=0)
    for mark, text in todos:
        if mark == "☑":
            continue
        call: Call | None = None
        if "todo_write" in text or "job_complete" in text:
            yield _capable_finish_call(files) if written >= files else _capable_handover(written)
            return
        if "workspace.md" in text:
            note = f"# Workspace\n\nFiles 1 to {written} of {files} are in output/.\n"
            call = ("write_file", {"path": "workspace.md", "content": note})
        elif begun and text.startswith("Write plan.md"):
            call = ("write_file", {"path": "plan.md", "content": _capable_plan(files)})
        if call and not any(name == call[0] and call[1]["path"] in raw for name, raw in earlier):  # type: ignore[index]
            yield call
        if not batches:
            yield DONE


def _capable_plan(files: int) -> str:
    lines = ["# Plan", "", "Each file by itself; its number says what is in it."]
    for phase, first in enumerate(range(1, files + 1, PER_PHASE), 1):
        last = first + PER_PHASE - 1
        lines += ["", f"## Phase {phase}: Files {first} to {last}", "", "They are written."]
        lines += [f"- [ ] Write {capable_file_path(number)}." for number in range(first, last + 1)]
    return "\n".join(lines) + "\n"


def _capable_handover(written: int) -> Call:
    numbers = range(written + 1, written + PER_PHASE + 1)
    todos = [{"content": f"Write {capable_file_path(n)}.", "items": [f"P{n}"]} for n in numbers]
    name = f"Files {numbers[0]} to {numbers[-1]}"
    return ("todo_write", {"phase": name, "description": "They are written.", "todos": todos})


def _capable_finish_call(files: int) -> Call:
    deliverables = [capable_file_path(number) for number in range(1, files + 1)]
    return (
        "job_complete",
        {"summary": "All files are written.", "deliverables": deliverables, "confidence": 0.9},
    )
