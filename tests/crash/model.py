"""The model of the crash tests: it writes with `append_file` and depends on the request alone.

Each line of a job is unique, so a duplicated or a lost one shows in the file itself.
"""

import hashlib
from dataclasses import dataclass
from typing import Any

from rehearsal import Answer, Reply, Request
from rehearsal.rehearsal_model import REVIEWER_TOOL, review_statements
from rehearsal.request_view import RequestView, parse_request_view
from rehearsal.wire import Arguments
from tests.soak import soak

Call = tuple[str, Arguments]
LEDGER = "output/ledger.md"
TODOS = 6
LINES = "abcd"


@dataclass(frozen=True)
class Ledger:
    """A job under somebody's name, and the model that does it.

    Args:
        name: Whose ledger; jobs of different names send different requests.
        phases: Tactical phases.
        todos: Of each of them, with 4 lines each: the first in 2 replies, the others in one.
    """

    name: str
    phases: int = soak(1, 2)
    todos: int = TODOS

    def start(self, **settings: object) -> dict[str, Any]:
        """The input of the workflow."""
        begin = [f"Describe {self.name}", f"Plan {self.name}", f"Hand over {self.name}"]
        return {
            "agent": "generalist",
            "instructions": f"Keep the ledger of {self.name} for {self.phases} phases.",
            "set": {
                "limits.min_todos": self.todos,
                "todos.bootstrap": begin,
                "todos.transition": begin,
                "todos.final": [f"Close {self.name}"],
                # Small enough for several runs of the workflow in one job.
                "limits.history_events": 100,
                **settings,
            },
        }

    @property
    def text(self) -> str:
        """The expected final ledger."""
        return "".join(
            self._line(2 * phase, todo, letter)
            for phase in range(1, self.phases + 1)
            for todo in range(1, self.todos + 1)
            for letter in LINES
        )

    def __call__(self, request: Request) -> Answer:
        return self.reply(request)

    def reply(self, request: Request) -> Reply:
        if not request.get("tools"):
            return Reply(content=f"Lines: {str(request['messages']).count('append_file(')}.")
        view = parse_request_view(request)
        if REVIEWER_TOOL in view.tools:
            return review_statements(request)
        verb = view.current_todo.text.partition(" ")[0] if view.current_todo else ""
        does = {
            "Describe": self._describe,
            "Plan": self._plan,
            "Hand": self._hand_over,
            "Enter": self._enter,
            "Close": self._close,
        }
        return Reply(calls=does[verb](view))

    def _describe(self, view: RequestView) -> list[Call]:
        text = f"# Workspace of {self.name}\n\nSeen in phase {view.number}.\n"
        return [("write_file", {"path": "workspace.md", "content": text}), _done("described")]

    def _plan(self, view: RequestView) -> list[Call]:
        lines = ["# Plan", ""]
        for number in range(1, self.phases + 1):
            box = "x" if number <= view.number // 2 else " "
            lines += [f"## Phase {number}: Enter", "", f"- [{box}] Make the entries", ""]
        return [("write_file", {"path": "plan.md", "content": "\n".join(lines)}), _done("planned")]

    def _hand_over(self, view: RequestView) -> list[Call]:
        number = view.number // 2 + 1
        if number > self.phases or view.replies:
            return [_done("handed over")]
        todos = [{"id": n, "content": f"Enter {self.name} {n}"} for n in range(1, self.todos + 1)]
        return [("todo_write", {"phase": f"Enter {number}", "description": "", "todos": todos})]

    def _enter(self, view: RequestView) -> list[Call]:
        """Make several calls in a reply: some in one workflow task, some with a regular tool."""
        todo = view.current_todo.id if view.current_todo else 0
        first, second = self._entries(view.number, todo)
        if todo > 1:
            rest = (self._entries(view.number, n) for n in range(todo, self.todos + 1))
            return [call for halves in rest for half in halves for call in half]
        return second if view.replies else first

    def _entries(self, phase: int, todo: int) -> tuple[list[Call], list[Call]]:
        """Return all calls of a todo, in two halves."""
        append: list[Call] = [
            ("append_file", {"path": LEDGER, "content": self._line(phase, todo, letter)})
            for letter in LINES
        ]
        done = _done(f"entered {phase}.{todo}")
        return [*append[:2], self._between(phase, todo)], [*append[2:], done]

    def _between(self, phase: int, todo: int) -> Call:
        if todo == 2:
            return ("search_files", {"query": self.name, "path": "output"})
        if todo == 3:
            return ("generate_workspace_summary", {})
        digests = (hashlib.sha256(f"{self.name}{phase}{todo}{n}".encode()) for n in range(60))
        text = "\n".join(digest.hexdigest() for digest in digests)
        return ("write_file", {"path": f"notes/{phase}_{todo}.md", "content": text})

    def _close(self, view: RequestView) -> list[Call]:
        completion = {"summary": f"Kept {self.name}.", "deliverables": [LEDGER], "confidence": 1.0}
        return [("job_complete", completion)]

    def _line(self, phase: int, todo: int, letter: str) -> str:
        return f"{self.name} {phase}.{todo}.{letter}\n"


def _done(notes: str) -> Call:
    return ("todo_complete", {"notes": notes})
