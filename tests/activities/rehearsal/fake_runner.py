"""A runner of jobs in memory: the phase loop and the tools, as small as they can be.

The wire forms (todo list, orientation, tool answers) are those of the product.
"""

from __future__ import annotations

import fnmatch
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from activities.rehearsal import Model, Reply

STRATEGIC = (
    "read_file write_file append_file edit_file list_files search_files move_file delete_file "
    "generate_workspace_summary todo_complete todo_rewind todo_write job_complete "
    "extract_document_text chunk_document"
).split()
TACTICAL = (
    "read_file write_file append_file edit_file list_files search_files move_file delete_file "
    "generate_workspace_summary todo_complete todo_rewind extract_document_text chunk_document"
).split()
DOMAIN = (
    "identify_requirement_candidates assess_relevance extract_entity_mentions cite_document "
    "add_requirement"
).split()
DEFAULTS = Path(__file__).parents[3] / "config" / "defaults.yaml"
TODOS = yaml.safe_load(DEFAULTS.read_text(encoding="utf-8"))["todos"]
PROMPT = "# {agent} · {kind} phase {number}\n\n5 to\n  20 todos.\n\n{heading}\n\n{workspace}"
HEADING = "## workspace.md as this phase began"
Injected = Callable[[int, str], str | None]


class Refused(Exception):
    """A tool's refusal."""


@dataclass
class FakeRunner:
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
        return STRATEGIC if self.kind == "strategic" else self.tools

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

    # Files

    def text(self, path: str) -> str:
        if path not in self.files:
            raise Refused(f"{path} does not exist.")
        return self.files[path]

    def read_file(self, path: str, offset: int = 1, limit: int = 500) -> str:
        lines = self.text(path).splitlines()
        if offset > max(len(lines), 1):
            raise Refused(f"{path} has {len(lines)} lines; offset {offset} is past its end.")
        shown = lines[offset - 1 : offset - 1 + limit]
        header = f"{path}, lines {offset}-{offset - 1 + len(shown)} of {len(lines)}"
        return "\n".join([header, *(f"{n:6}\t{line}" for n, line in enumerate(shown, offset))])

    def write_file(self, path: str, content: str) -> str:
        if path == "instructions.md" or path.startswith("documents/"):
            raise Refused(f"nobody writes {path}")
        if self.kind == "tactical" and path == "plan.md":
            raise Refused("plan.md belongs to strategic phases")
        self.files[path] = content
        return f"Wrote {len(content):,} characters to {path}."

    def append_file(self, path: str, content: str) -> str:
        self.files[path] = self.files.get(path, "") + content
        return f"Appended {len(content):,} characters to {path}."

    def edit_file(self, path: str, old: str, new: str, replace_all: bool = False) -> str:
        if self.text(path).count(old) != 1:
            raise Refused(f"{path} does not contain that text once.")
        self.files[path] = self.files[path].replace(old, new)
        return f"Replaced 1 passage in {path}."

    def list_files(self, path: str = "", pattern: str | None = None) -> str:
        inside = sorted(name for name in self.files if name.startswith(f"{path}/" if path else ""))
        found = [name for name in inside if fnmatch.fnmatchcase(name, pattern or "*")]
        lines = [f"{name}  {len(self.files[name]):,}" for name in found]
        return "\n".join(lines) or f"Nothing in {path or 'the workspace'}."

    def search_files(self, query: str, path: str = "", mode: str = "text") -> str:
        hits = [
            f"{name}:{number}: {line}"
            for name in sorted(self.files)
            if name.startswith(path)
            for number, line in enumerate(self.files[name].splitlines(), 1)
            if query.lower() in line.lower()
        ]
        return "\n".join(hits[:100]) or f"Nothing matches {query!r}."

    # Documents and requirements

    def pages_of(self, path: str) -> list[str]:
        if path not in self.documents:
            raise Refused(f"{path} does not exist.")
        return self.documents[path]

    def extract_document_text(self, path: str, pages: str | None = None) -> str:
        return "\n".join(self.pages_of(path))

    def extract_entity_mentions(self, path: str) -> str:
        return "controller · 3 mentions"

    def assess_relevance(self, text: str) -> str:
        return "relevance 0.20: no obligation" if "perhaps" in text else "relevance 0.80"

    def identify_requirement_candidates(self, path: str) -> str:
        found = []
        for number, page in enumerate(self.pages_of(path), 1):
            for line in page.splitlines():
                if "must" in line:
                    confidence = 0.55 if "perhaps" in line else 0.9
                    entry = {"id": f"C-{len(found) + 1:03d}", "page": number, "text": line}
                    found.append(entry | {"modality": "obligation", "confidence": confidence})
        target = f"candidates/{path.rpartition('/')[2]}.json"
        self.files[target] = json.dumps({"document": path, "candidates": found}, indent=1)
        if not found:
            return f"No candidates in {path}. Wrote {target}."
        lines = [
            f"{item['id']} · p.{item['page']} · obligation · {item['confidence']:.2f} · "
            f"{item['text'][:40]}{'…' if len(item['text']) > 40 else ''}"
            for item in found[:30]
        ]
        if len(found) > 30:
            lines.append(f"[TRUNCATED {len(found) - 30} more in {target}]")
        return "\n".join([f"{len(found)} candidates in {path}, all in {target}:", *lines])

    def cite_document(self, path: str, page: int, quote: str) -> str:
        if quote not in self.pages_of(path)[page - 1]:
            raise Refused(f"That quote is not on page {page} of {path}.")
        self.citations += 1
        return f"citation CIT-{self.citations:04d}: {path}, page {page}"

    def add_requirement(
        self,
        text: str,
        type: str,
        citations: list[str],
        reasoning: str,
        confidence: float,
        candidate: str | None = None,
    ) -> str:
        assert type in ("functional", "data", "process", "legal", "quality", "constraint")
        self.requirements += 1
        folder = f"requirements/req_{self.requirements:03d}"
        self.files[f"{folder}/final.json"] = json.dumps({"text": text, "citations": citations})
        return f"REQ-{self.requirements:03d} written to {folder}/"
