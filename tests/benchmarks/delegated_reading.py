"""`python -m tests.benchmarks.delegated_reading`: the largest request of a job that reads much.

A scripted model collects one fact from each file into one output file, with or without helpers.
"""

import asyncio
import re
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table
from temporalio.client import Client

from activities.checkpoints import Root
from activities.text.tokens import MESSAGE_TOKENS, count_tokens
from benchmarks.drift import serve_drifting_model
from cli.start.document_staging import stage_documents
from engine.development import development_server
from rehearsal.wire import Arguments, Reply, Request

FILES = 200
PER_HELPER = 25
PER_REPLY = 16
WORDS = 500
FACTS = "output/facts.md"
HELPER = "You read for another agent"
_FACT = re.compile(r"Fact \d+ is \d+")
Call = tuple[str, Arguments]


class Spent(NamedTuple):
    """Cost of one way of reading."""

    largest: int
    """Size of the agent's largest request in tokens."""
    largest_of_helpers: int
    calls: int
    prompt_tokens: int


class DelegatingReader:
    """The scripted model.

    Args:
        files: Number of files.
        delegates: Whether helpers read them.
    """

    def __init__(self, files: int, *, delegates: bool) -> None:
        self._files = files
        self._delegates = delegates
        self._read = 0
        self.calls = 0
        self.sizes: dict[bool, list[int]] = {True: [0], False: [0]}
        """Sizes of requests in tokens; the key is True for helpers, False for the agent."""

    def __call__(self, request: Request) -> Reply:
        self.calls += 1
        messages = request["messages"]
        is_helper = str(messages[0]["content"]).startswith(HELPER)
        size = sum(MESSAGE_TOKENS + count_tokens(str(message)) for message in messages)
        self.sizes[is_helper].append(size + count_tokens(str(request.get("tools", ""))))
        if is_helper:
            return _reading_helper_reply(messages)
        if not request.get("tools"):
            return Reply("todo 1: the facts go on in output/facts.md.")
        if "Close" in str(messages[-1]["content"]):
            report = {"summary": "Facts.", "deliverables": [FACTS], "confidence": 1.0}
            return Reply(calls=[("job_complete", report)])
        return Reply(
            calls=self._delegate_reading(messages)
            if self._delegates
            else self._read_without_helpers(messages)
        )

    def _delegate_reading(self, messages: list[dict[str, Any]]) -> list[Call]:
        if facts := _facts_from_reading(messages):
            return [("write_file", {"path": FACTS, "content": facts}), ("todo_complete", {})]
        task = "Which fact is in each of these files?"
        starts = range(0, self._files, PER_HELPER)
        parts = [
            _reading_document_paths(first, min(self._files, first + PER_HELPER)) for first in starts
        ]
        return [("delegate", {"task": task, "files": part}) for part in parts]

    def _read_without_helpers(self, messages: list[dict[str, Any]]) -> list[Call]:
        calls: list[Call] = []
        if self._read:
            last = [message for message in messages if message["role"] == "tool"][-PER_REPLY:]
            calls.append(("append_file", {"path": FACTS, "content": _facts_from_reading(last)}))
        paths = _reading_document_paths(self._read, min(self._files, self._read + PER_REPLY))
        self._read += len(paths)
        return calls + (
            [("read_file", {"path": path}) for path in paths] or [("todo_complete", {})]
        )


def _reading_helper_reply(messages: list[dict[str, Any]]) -> Reply:
    read = sum(message["role"] == "tool" for message in messages)
    paths = re.findall(r"^- (.*)$", str(messages[1]["content"]), re.MULTILINE)[read:][:PER_REPLY]
    if paths:
        return Reply(calls=[("read_file", {"path": path}) for path in paths])
    return Reply(_facts_from_reading(messages))


def _facts_from_reading(messages: list[dict[str, Any]]) -> str:
    """Return the distinct facts in tool results, one per line."""
    text = "\n".join(str(each["content"]) for each in messages if each["role"] == "tool")
    return "".join(f"{fact}\n" for fact in dict.fromkeys(_FACT.findall(text)))


def _reading_document_paths(first: int, end: int) -> list[str]:
    return [f"documents/file_{number:03d}.md" for number in range(first, end)]


def _write_delegation_documents(folder: Path, files: int) -> list[str]:
    folder.mkdir()
    paths = [folder / f"file_{number:03d}.md" for number in range(files)]
    for number, path in enumerate(paths):
        path.write_text(f"# File {number}\n\n{'leaf ' * WORDS}\n\nFact {number} is {number**2}.\n")
    return [str(path) for path in paths]


async def run_delegation_job(temporal: Client, root: Root, files: int, *, delegates: bool) -> Spent:
    """Do the work as a job. Raises AssertionError if a fact is missing at the end."""
    name = f"reading-{'with' if delegates else 'without'}-helpers"
    model = DelegatingReader(files, delegates=delegates)
    with tempfile.TemporaryDirectory() as folder:
        documents = _write_delegation_documents(Path(folder) / "documents", files)
        staged = stage_documents(documents, root.path, 1_000_000)
    settings = {
        "todos.work": ["Collect the fact of every document in output/facts.md."],
        "todos.final": ["Close"],
        "tools": ["files", "todos", "job", "delegation"],
        "reflection": False,
        "review": None,
    }
    start = {
        "agent": "generalist",
        "instructions": "Collect the facts.",
        "documents": staged,
        "set": settings,
    }
    async with serve_drifting_model(temporal, root, model, name):
        result: dict[str, Any] = await temporal.execute_workflow(
            "Job", start, id=name, task_queue=name, result_type=dict
        )
    assert result["status"] == "completed", result
    facts = (root.workspace(name) / FACTS).read_text().splitlines()
    assert set(facts) == {f"Fact {number} is {number**2}" for number in range(files)}, len(facts)
    agent, helpers = model.sizes[False], model.sizes[True]
    return Spent(max(agent), max(helpers), model.calls, result["usage"]["prompt_tokens"])


async def _compare_delegated_reading() -> Table:
    table = Table(title=f"{FILES} files of {WORDS} words, a fact from each")
    for column in ("", "largest request", "of a helper", "model calls", "prompt tokens"):
        table.add_column(column, justify="right" if column else "left")
    with tempfile.TemporaryDirectory() as folder:
        root = Root.open(Path(folder) / "root", create=True)
        async with development_server(ui=False) as running:
            for delegates in (False, True):
                spent = await run_delegation_job(running.client, root, FILES, delegates=delegates)
                name = "with helpers" if delegates else "without"
                table.add_row(name, *(f"{figure:,}" for figure in spent))
    return table


if __name__ == "__main__":
    Console().print(asyncio.run(_compare_delegated_reading()))
