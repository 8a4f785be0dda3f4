"""A job of a few replies with its model: a test decides what each verb of a todo list does."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from rehearsal import Reply, Request
from rehearsal.request_view import (
    RequestView,
    is_error_result,
    is_judge_request,
    parse_request_view,
)
from rehearsal.wire import Arguments

Call = tuple[str, Arguments]
Does = Callable[[RequestView], Sequence[Call]]
SET = {
    "limits.min_todos": 1,
    "todos.bootstrap": ["Plan"],
    "todos.transition": ["Mark"],
    "todos.rewind": ["Rethink", "Hand over"],
    "todos.final": ["Close"],
}
DONE: Call = ("todo_complete", {})


def job(**details: Any) -> dict[str, Any]:
    """Return the input of such a job."""
    base = {"agent": "generalist", "instructions": "Make tea."}
    return {**base, **details, "set": {**SET, **details.get("set", {})}}


def plan(*boxes: str) -> Call:
    """Return a call that writes a plan of one phase with these lines, such as `[x] Boil`."""
    text = "# Plan\n\n## Phase 1: Tea\n" + "".join(f"- {box}\n" for box in boxes)
    return ("write_file", {"path": "plan.md", "content": text})


def hand_over(*todos: dict[str, Any]) -> Call:
    listed = [{"id": n, "content": "Work", **todo} for n, todo in enumerate(todos, 1)]
    return ("todo_write", {"phase": "Tea", "description": "", "todos": listed})


def close(*deliverables: str, **details: Any) -> Call:
    base = {"summary": "Tea was made.", "deliverables": deliverables, "confidence": 0.5}
    return ("job_complete", {**base, **details})


def in_turn(*replies: Reply) -> Callable[[Request], Reply]:
    """Return a judge or reviewer that gives these answers, and then the last one forever."""
    left = list(replies)
    return lambda _: left.pop(0) if len(left) > 1 else left[0]


@dataclass
class Short:
    """The model. What a verb does is a list of calls, or a function of what the model sees.

    A list is gone through reply by reply where a call ends the reply, and begun again when it is
    used up. "Plan" writes the plan and then does what "Hand" does, unless a test says otherwise.
    Only where a test says what "Close" does is there a final phase.
    """

    verbs: dict[str, Sequence[Call] | Does] = field(default_factory=dict)
    reviewer: Callable[[Request], Reply] = field(default=lambda request: Reply(content="Hm."))
    judge: Callable[[Request], Reply] = field(default=lambda request: Reply(content="PASS"))
    _refused: dict[tuple[int, int], str] = field(default_factory=dict)

    @property
    def refusals(self) -> list[str]:
        """Results of the refused calls of job_complete."""
        return list(self._refused.values())

    def __call__(self, request: Request) -> Reply:
        if not request.get("tools"):
            return self.judge(request) if is_judge_request(request) else Reply(content="Summary.")
        view = parse_request_view(request)
        if "judge_statements" in view.tools:
            return self.reviewer(request)
        if (
            view.calls
            and view.calls[-1].tool == "job_complete"
            and is_error_result(view.calls[-1].result)
        ):
            self._refused[view.number, len(view.calls)] = view.calls[-1].result
        verb = view.current_todo.text.partition(" ")[0] if view.current_todo else ""
        if verb == "Plan" and verb not in self.verbs:
            first = [] if _called("write_file", view) else [plan("[ ] Boil", "[ ] Brew")]
            return Reply(calls=[*first, *self._calls("Hand", view)])
        return Reply(calls=self._calls(verb, view))

    def _calls(self, verb: str, view: RequestView) -> list[Call]:
        does = {**(FINAL if "Close" in self.verbs else DEFAULTS), **self.verbs}[verb]
        return list(does(view)) if callable(does) else [does[view.replies % len(does)]]


def _called(tool: str, view: RequestView) -> bool:
    return any(done_call.tool == tool for done_call in view.calls)


def _placing(view: RequestView) -> dict[str, Any]:
    """Return a todo for the whole scope, where it has several items, as that of a fork may have."""
    owed = [each for each in view.open_items if not each.startswith("P")]
    return {"items": owed} if len(owed) > 1 else {}


MARKED = plan("[x] Boil", "[x] Brew")
TEA: Call = ("write_file", {"path": "output/tea.md", "content": "tea"})
DEFAULTS: dict[str, Sequence[Call] | Does] = {
    "Hand": lambda view: [DONE if _called("todo_write", view) else hand_over(_placing(view))],
    "Work": lambda view: [TEA, DONE],
    "Mark": lambda view: [MARKED, close("output/tea.md")],
    "Rethink": [DONE],
    "Close": [close("output/tea.md")],
}
FINAL = {**DEFAULTS, "Mark": lambda view: [MARKED, DONE]}
