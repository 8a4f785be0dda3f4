"""The context of long phases and jobs stays limited in size, complete, and cacheable."""

import json
import re
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain
from typing import Any

import httpx2
from temporalio.client import Client

from activities.checkpoints import Root
from activities.job.compaction_plan import ENOUGH
from activities.text.tokens import count_tokens, message_tokens
from benchmarks.zero_cost import ZeroCost
from rehearsal import Reply, Script, call
from rehearsal.request_view import RequestView
from rehearsal.wire import Request
from tests.brief import BRIEF
from tests.soak import soak
from tests.workflows.prefix import PrefixMeter
from tests.workflows.serving import serving
from tests.workflows.short import DONE, Short, close, hand_over, job

CALLS = soak(50, 400)
"""Calls of a long phase, whose results together exceed the context several times."""
LINES = CALLS * 40
LIMIT = soak(32_000, 80_000)
MESSAGE = 1_200
"""A little more than the tokens of one result."""
FACT = "The kettle holds 1.7 litres."
DECISION = "Decision: the tea is white."


def tokens(request: Request) -> int:
    """Count tokens independently of the job's own figures, from what was sent."""
    messages = sum(_of_message(json.dumps(message)) for message in request["messages"])
    return messages + _count(json.dumps(request["tools"], ensure_ascii=False))


@lru_cache(maxsize=2 * CALLS)
def _of_message(text: str) -> int:
    return message_tokens(text.encode(), "o200k_base")


_count = lru_cache(maxsize=10)(count_tokens)


@dataclass
class Reader:
    """Reads a long book, 4 KB a call, and states its decision once, early on."""

    pages: int = CALLS
    """Calls of one tactical phase."""
    phases: int = 1
    sizes: dict[int, list[int]] = field(default_factory=dict)
    """Tokens of each request, by phase."""
    shares: list[float] = field(default_factory=list)
    last: list[dict[str, Any]] = field(default_factory=list)
    summaries: int = 0
    broken: int = 0
    read: int = 0
    meter: PrefixMeter = field(default_factory=PrefixMeter)

    def __call__(self, request: Request) -> Reply:
        if not request.get("tools"):
            return self._summary(request["messages"][1]["content"])
        todos = request["messages"][-1]["content"]
        if "tactical phase" in todos:
            return self._read(request, todos)
        if "strategic phase 1 " in todos and "☑" not in todos:
            write = ("write_file", {"path": "workspace.md", "content": FACT})
            return Reply(calls=[write, ("todo_complete", {})])
        self._weigh(request, todos)
        return ZeroCost(self.pages, tool="read_file", phases=self.phases)(request)

    def _read(self, request: Request, todos: str) -> Reply:
        messages = request["messages"]
        # Layers 1 to 3 are complete in every request.
        assert FACT in messages[0]["content"]
        assert re.search(r"Progress: \d/5\n.*Do todo \d", todos, re.DOTALL)
        assert "read_file" in json.dumps(request["tools"])
        assert_whole(messages)
        self._weigh(request, todos)
        if (share := self.meter.measure(request)) is not None:
            # After clearing or summarizing, a new prefix begins.
            self.broken += share < 0.9
            self.shares += [share] if share >= 0.9 else []
        self.last = messages
        self.read += 1
        if self.read % (self.pages // 5) == 0:
            return call("todo_complete", notes=f"{self.read} pages")
        content = DECISION if self.read == 3 else None
        arguments = {
            "path": "documents/book.txt",
            "offset": self.read * 40 % LINES + 1,
            "limit": 40,
        }
        return Reply(content, calls=[("read_file", arguments)])

    def _weigh(self, request: Request, todos: str) -> None:
        number = int(todos.partition(" phase ")[2].split()[0])
        self.sizes.setdefault(number, []).append(tokens(request))

    def _summary(self, prompt: str) -> Reply:
        self.summaries += 1
        lines = [DECISION] if DECISION in prompt else []
        named: list[str] = re.findall(r"^- (todo \d+|\S+\.md)", prompt, re.MULTILINE)
        return Reply("\n".join([*lines, *named]))


def assert_whole(messages: list[dict[str, Any]]) -> None:
    """Check that every result follows its call and every call has its result."""
    open_calls: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            assert message["tool_call_id"] in open_calls
            open_calls.remove(message["tool_call_id"])
        else:
            assert not open_calls
            open_calls = [tool_call["id"] for tool_call in message.get("tool_calls", [])]


async def read_through(
    temporal: Client,
    root: Root,
    reader: Reader,
    settings: dict[str, object],
    provider: httpx2.AsyncBaseTransport | None = None,
) -> dict[str, Any]:
    """Run a whole job of this reader, through a provider if one is given."""
    book = root.path.parent / "book.txt"
    book.write_text("".join(f"{n:05d} {'tea leaf ' * 10}\n" for n in range(LINES + 40)))
    with Script(*([] if provider else [reader])) as script:
        async with serving(temporal, root, provider or script) as jobs:
            start = {
                "agent": "generalist",
                "instructions": "Read the book.",
                "documents": [str(book)],
                "set": {**BRIEF, "limits.history_events": 400, **settings},
            }
            return await jobs.result(await jobs.start(start), seconds=600)


async def test_a_phase_of_many_calls_with_4_kb_results(temporal: Client, root: Root) -> None:
    reader = Reader()
    result = await read_through(temporal, root, reader, {"context.tokens": LIMIT})
    assert result["status"] == "completed"
    assert reader.read == CALLS
    sizes = list(chain(*reader.sizes.values()))
    assert LIMIT * 0.9 < max(sizes) <= LIMIT + MESSAGE
    assert sum(reader.shares) / len(reader.shares) >= 0.95
    # Each clearing makes room for many results. A new one is more than a tenth of the first ten.
    cleared = CALLS * MESSAGE / ((1 - ENOUGH) * LIMIT)
    assert 1 <= reader.broken <= 10 + cleared
    assert reader.summaries >= 1
    last = json.dumps(reader.last, ensure_ascii=False)
    assert FACT in last
    assert "▶ 5." in last
    assert DECISION in last
    # Our count agrees with what was sent.
    estimated = result["usage"]["estimated_tokens"]
    assert abs(estimated - sum(sizes)) < 0.02 * estimated


async def test_a_job_of_many_phases_sends_no_larger_requests_than_in_the_first_3(
    temporal: Client, root: Root
) -> None:
    phases, planned = soak((7, 3), (101, 50))
    reader = Reader(pages=soak(10, 15), phases=planned)
    result = await read_through(temporal, root, reader, {"context.tokens": 16_000})
    assert (result["status"], result["phases"]) == ("completed", phases)
    largest = {number: max(sizes) for number, sizes in reader.sizes.items()}
    assert max(largest.values()) <= max(largest[number] for number in (1, 2, 3)) * soak(1.04, 1.1)


class Writer(Short):
    """Writes forty files of a thousand tokens, twenty in each of two phases."""

    def __init__(self) -> None:
        twenty = hand_over(*[{}] * 20)
        super().__init__(
            {
                "Work": lambda view: [self.write_leaves(view), DONE],
                "Hand": lambda _: [twenty, DONE],
                "Mark": lambda view: [twenty] if view.number == 3 else [close("output/2_1.md")],
            }
        )
        self.summaries = 0
        self.sizes: list[int] = []

    def __call__(self, request: Request) -> Reply:
        self.summaries += not request.get("tools")
        self.sizes.append(tokens(request))
        return super().__call__(request)

    @staticmethod
    def write_leaves(view: RequestView) -> tuple[str, Any]:
        path = f"output/{view.number}_{view.current_todo.id if view.current_todo else 0}.md"
        return ("write_file", {"path": path, "content": f"# {path}\n" + "leaf " * 1000})


async def test_forty_written_files_need_no_summary(temporal: Client, root: Root) -> None:
    model = Writer()
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(job(set={"context.tokens": 12_000, "limits.summary_calls": 30}))
        result = await jobs.result(handle)
        written = list((jobs.folder(handle) / "output").glob("*_*.md"))
    assert (result["status"], len(written)) == ("completed", 40)
    assert model.summaries == 0
    assert 10_000 < max(model.sizes) <= 13_500
