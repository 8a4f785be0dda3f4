"""A runner of jobs in memory: the phase loop and the tools, as small as they can be.

The wire forms (todo list, orientation, tool answers) are those of the product.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from activities.rehearsal import Model, Reply
from tests.activities.rehearsal.fake_tools import FakeTools, Refused

TACTICAL = [
    *("read_file", "write_file", "append_file", "edit_file", "list_files", "search_files"),
    *("move_file", "delete_file", "generate_workspace_summary", "todo_complete", "todo_rewind"),
    *("extract_document_text", "chunk_document"),
]
STRATEGIC = [*TACTICAL, "todo_write", "job_complete"]
DOMAIN = [
    "identify_requirement_candidates",
    "assess_relevance",
    "extract_entity_mentions",
    "cite_document",
    "add_requirement",
    "collect_requirements",
]
DEFAULTS = Path(__file__).parents[3] / "config" / "defaults.yaml"
TODOS = yaml.safe_load(DEFAULTS.read_text(encoding="utf-8"))["todos"]
PROMPT = "# {agent} · {kind} phase {number}\n\n5 to\n  20 todos.\n\n{heading}\n\n{workspace}"
HEADING = "## workspace.md as this phase began"
Injected = Callable[[int, str], str | None]


@dataclass
class FakeRunner(FakeTools):
    """Runs a job until `job_complete` or until `limit` model calls are made."""

    model: Model
    agent: str
    instructions: str
    documents: dict[str, list[str]] = field(default_factory=dict)
    """Pages by path."""
    inject: Injected = lambda number, tool: None
    limit: int = 600
    result_characters: int = 20_000

    def __post_init__(self) -> None:
        self.files = {"instructions.md": self.instructions}
        for path, pages in self.documents.items():
            self.files[path] = "%PDF"
            self.files[f"{path}.txt"] = "\n".join(pages)
        self.tools = TACTICAL + (DOMAIN if self.agent == "creator" else [])
        self.model_calls = self.tool_calls = 0
        self.errors: list[str] = []
        self.unoffered: list[str] = []
        self.phases: list[str] = []
        self.calls_by_tool: dict[str, int] = {}
        self.result: dict[str, Any] | None = None
        self.citations = 0
        self.cited = {}
        self.requirements = 0
        self.last_page = "(none yet)"
        self.summaries: list[str] = []

    def run(self) -> FakeRunner:
        self.begin("strategic", "bootstrap", "Understand and plan", TODOS["bootstrap"])
        while self.result is None and self.model_calls < self.limit:
            self.turn()
        return self

    def begin(self, kind: str, purpose: str, name: str, todos: list[str], issue: str = "") -> None:
        self.phases.append(name)
        self.kind, self.purpose, self.name = kind, purpose, name
        self.todos = [[number, text, False] for number, text in enumerate(todos, 1)]
        number = len(self.phases)
        system = PROMPT.format(
            agent=self.agent,
            kind=kind,
            number=number,
            heading=HEADING,
            workspace=self.files.get("workspace.md", "(workspace.md is not written yet)"),
        )
        opening = f"Phase {number} begins ({kind}): {name}."
        if issue:
            opening += f"\n\nThe work before was taken back. The issue: {issue}"
        if purpose == "bootstrap":
            opening = "The job begins. Its instructions are in `instructions.md`:\n\n"
            opening += self.instructions
        elif kind == "strategic":
            opening += f"\n\n# plan.md\n\n{self.files.get('plan.md', '')[:3000]}"
            opening += f"\n\n# archive/phase.md\n\n{self.last_page}"
        self.messages: list[dict[str, Any]] = [
            {"role": "system", "content": system},
            {"role": "user", "content": opening},
        ]

    def offered(self) -> list[str]:
        if self.kind == "tactical":
            return self.tools
        return [*STRATEGIC, *(name for name in self.tools if name.startswith("collect_"))]

    def render(self) -> str:
        current = next(todo for todo in self.todos if not todo[2])
        rule = "═" * 8
        header = f'{rule} Todo list · {self.kind} phase {len(self.phases)} "{self.name}" {rule}'
        lines = [
            f"{'☑' if done else '▶' if number == current[0] else '☐'} {number}. {text}"
            for number, text, done in self.todos
        ]
        return "\n".join([header, *lines, "Progress: 0/1", f"Do todo {current[0]}.", rule])

    def turn(self) -> None:
        self.model_calls += 1
        last = {"role": "user", "content": self.render()}
        tools = [{"type": "function", "function": {"name": name}} for name in self.offered()]
        request = {"model": "m", "tools": tools, "messages": [*self.messages, last]}
        reply = self.model(request)
        assert isinstance(reply, Reply)
        assert reply == self.model(request), "the same request must give the same reply"
        assert reply.calls, "every reply acts"
        step = self.model_calls
        calls = [(name, json.dumps(arguments)) for name, arguments in reply.calls]
        message = {
            "role": "assistant",
            "content": reply.content,
            "tool_calls": [
                {"id": f"s{step}c{n}", "function": {"name": name, "arguments": arguments}}
                for n, (name, arguments) in enumerate(calls)
            ],
        }
        conversation = self.messages
        conversation.append(message)
        for n, (name, raw) in enumerate(calls):
            result = self.call(name, json.loads(raw))
            if len(result) > self.result_characters:
                half = self.result_characters // 2
                result = f"{result[:half]}\n[TRUNCATED {len(result)}]\n{result[-half:]}"
            conversation.append({"role": "tool", "tool_call_id": f"s{step}c{n}", "content": result})

    def call(self, name: str, arguments: dict[str, Any]) -> str:
        self.tool_calls += 1
        self.calls_by_tool[name] = self.calls_by_tool.get(name, 0) + 1
        if name not in self.offered():
            self.unoffered.append(name)
            return f"Error: {name} is not offered"
        if injected := self.inject(self.tool_calls, name):
            return injected
        try:
            return str(getattr(self, name)(**arguments))
        except Refused as refusal:
            self.errors.append(f"{name}: {refusal}")
            return f"Error: {refusal}"

    # The phase loop

    def todo_complete(self, notes: str = "") -> str:
        todo = next(todo for todo in self.todos if not todo[2])
        if sum(not other[2] for other in self.todos) == 1:
            self.turn_phase()
        todo[2] = True
        return f"Completed todo {todo[0]}: {todo[1]}"

    def turn_phase(self) -> None:
        body = {"messages": [{"role": "system", "content": "Summarise"}, *self.messages[1:]]}
        reply = self.model(body)
        assert isinstance(reply, Reply)
        assert reply.content and not reply.calls
        self.summaries.append(reply.content)
        open_phase = bool(re.search(r"^- \[ \]", self.files.get("plan.md", ""), re.MULTILINE))
        if self.kind == "tactical":
            self.last_page = f"# {self.name}\n\n- one todo\n\n{reply.content}"
            self.begin("strategic", "transition", "Take stock", TODOS["transition"])
        elif "todos.yaml" in self.files:
            handed = json.loads(self.files["todos.yaml"])
            if not 5 <= len(handed["todos"]) <= 20:
                raise Refused(f"todos.yaml holds {len(handed['todos'])} todos; 5 to 20 are wanted")
            del self.files["todos.yaml"]
            contents = [todo["content"] for todo in handed["todos"]]
            self.begin("tactical", "work", handed["phase"], contents)
        elif open_phase:
            raise Refused("todos.yaml is missing and the plan has an open phase")
        else:
            self.begin("strategic", "final", "Verify and complete", TODOS["final"])

    def todo_rewind(self, issue: str) -> str:
        self.begin("strategic", "rewind", "Reconsider", TODOS["rewind"], issue)
        return "rewound"

    def todo_write(self, phase: str, description: str, todos: list[dict[str, Any]]) -> str:
        self.files["todos.yaml"] = json.dumps({"phase": phase, "todos": todos})
        return f"Wrote {len(todos)} todos."

    def job_complete(
        self,
        summary: str,
        deliverables: list[str],
        confidence: float,
        notes: str = "",
        unresolved: list[str] | None = None,
    ) -> str:
        missing = [path for path in deliverables if path not in self.files]
        if missing:
            raise Refused(f"deliverables that do not exist: {', '.join(missing)}")
        self.result = {
            "summary": summary,
            "deliverables": deliverables,
            "notes": notes,
            "confidence": confidence,
            "unresolved": unresolved,
        }
        return "accepted"
