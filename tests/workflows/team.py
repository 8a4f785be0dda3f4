"""The agents of a project, played by one model: each recognized by its instructions."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from protocol.handoffs import SAME_TASK
from rehearsal import Answer, Reply, Request
from rehearsal.request_view import RequestView, is_error_result, parse_request_view
from tests.workflows.short import DONE, SET, Call, close, hand_over, plan

TODOS = {
    # These jobs plan like any other, so that a test can make them do anything.
    "todos.work": [],
    "todos.bootstrap": ["Plan"],
    "todos.fork": ["Rethink"],
    "todos.rewind": ["Rethink"],
    "todos.transition": ["Mark"],
}
STEP = "Do S1-S99, B1-B99"
"""The step of their plan, in which whatever they owe has its place."""
Writes = Callable[[str], Sequence[Call]]
"""The calls of a job's tactical phase, from its instructions."""
ENDS_REPLY = ("todo_write", "todo_complete", "request_clarification")


def write(path: str, content: str) -> Call:
    return ("write_file", {"path": path, "content": content})


def answer(path: str, data: Any) -> Call:
    return write(path, json.dumps(data))


def in_replies(calls: Sequence[Call]) -> list[list[Call]]:
    """Split these calls into the fewest replies: some calls end the reply they are in."""
    replies: list[list[Call]] = [[]]
    for call in calls:
        replies[-1].append(call)
        if call[0] in ENDS_REPLY:
            replies.append([])
    return [reply for reply in replies if reply]


@dataclass
class Team:
    """The model. `does` maps a text in the instructions to the work; the first match wins."""

    does: dict[str, Writes]
    asked: list[str] = field(default_factory=list)
    """The first request of each job, with its instructions."""
    summary: str = "Did it."
    """The summary that each job gives at its end."""
    unresolved: Sequence[str] = ()
    """What each job leaves open."""
    shortened: Answer = field(default_factory=lambda: Reply(content="In short."))
    """The answer when a text that was too long is summarized."""
    long: int = 0
    """Number of such summaries."""

    def __call__(self, request: Request) -> Answer:
        if not request.get("tools"):
            if "shorten what an agent reports" in str(request["messages"][0]):
                self.long += 1
                return self.shortened
            return Reply(content="Summary.")
        view = parse_request_view(request)
        verb = view.current_todo.text.partition(" ")[0] if view.current_todo else ""
        if verb in ("Plan", "Rethink") and not view.calls and view.replies == 0:
            self.asked.append(view.opening)
        replies = in_replies(self._calls(view, verb))
        return Reply(calls=replies[min(view.replies, len(replies) - 1)])

    def _calls(self, view: RequestView, verb: str) -> list[Call]:
        if verb in ("Plan", "Rethink"):
            # The job's task is copied to workspace.md, as tactical phases do not see it.
            before, _, amended = view.opening.partition("## Amended")
            known = "; ".join(text for text in self.does if text in before)
            task = f"{known}\n{amended}" if SAME_TASK in amended else amended or before
            # Lessons from earlier jobs are no part of it.
            task = task.partition("# What earlier jobs ran into")[0]
            task_copy = write("workspace.md", task[:8000])
            return [plan(f"[ ] {STEP}"), task_copy, hand_over({}), DONE]
        if verb == "Mark":
            if view.calls and is_error_result(view.calls[-1].result):
                return [("todo_rewind", {"issue": view.calls[-1].result})]
            return [
                plan(f"[x] {STEP}"),
                close(summary=self.summary, unresolved=list(self.unresolved)),
            ]
        for text, writes in self.does.items():
            if text in view.workspace:
                return [*writes(view.workspace), DONE]
        raise AssertionError(f"nobody does {view.workspace[:300]}")


def project(form: str, **details: Any) -> dict[str, Any]:
    """Return the input of a project of short jobs."""
    more = details.pop("set", {})
    base = {"form": form, "instructions": "Make a tea room.", "set": {**SET, **TODOS, **more}}
    return {**base, **details}
