"""Shows the trace of one job, with nothing else running: no collector, no container.

    python -m examples.trace

Starts a receiver of OpenTelemetry's protocol, a Temporal server and a worker in this process, runs
a job, and prints its trace as a tree. The trace is left in a file that https://ui.perfetto.dev and
chrome://tracing open; a browser keeps it on this machine.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cli.starting import job_input, new_id, start
from engine.development import server
from engine.errors import Unusable
from engine.otel import switch
from engine.process import leave
from engine.root import open_root
from engine.service import build_worker

if TYPE_CHECKING:
    from examples.receiver import Span

AGENT = "generalist"
INSTRUCTIONS = "Write a guide on tea."
FILE = Path("trace.json")


async def run(folder: Path) -> dict[str, Any]:
    """Run one job in a workspaces root in this folder; its result."""
    root = open_root(folder)
    async with server(ui=False) as running, build_worker(running.client, root=root):
        job_id = new_id(AGENT)
        await start(running.client, job_id, job_input(AGENT, INSTRUCTIONS, [], [], []))
        result: dict[str, Any] = await running.client.get_workflow_handle(job_id).result()
    return result


def tree(spans: Sequence[Span], parent: str = "", depth: int = 0) -> Iterator[str]:
    """A line for each span, under the one it belongs to."""
    known = {span.id for span in spans}
    for span in spans:
        if span.parent == parent or (not depth and span.parent not in known):
            yield "  " * depth + f"{span.name}  {_told(span)}"
            yield from tree(spans, span.id, depth + 1)


def _told(span: Span) -> str:
    found = span.attributes
    parts = [f"{span.seconds * 1000:,.0f} ms"]
    if "gen_ai.usage.input_tokens" in found:
        used = (found[f"gen_ai.usage.{way}_tokens"] for way in ("input", "output"))
        parts.append("{:,} tokens in, {:,} out".format(*used))
    elif "longhaul.step" in found:
        parts.append(f"phase {found['longhaul.phase']}, step {found['longhaul.step']}")
    parts += [str(found[name]) for name in ("longhaul.status", "error.type") if name in found]
    return ", ".join(parts)


def events(spans: Sequence[Span]) -> dict[str, Any]:
    """The spans as trace events: a row for what has nothing above it, and one for each job."""
    jobs = list(dict.fromkeys(span.attributes.get("longhaul.job", "") for span in spans))
    return {
        "traceEvents": [
            {
                "name": span.name,
                "ph": "X",
                "ts": span.begun / 1000,
                "dur": (span.ended - span.begun) / 1000,
                "pid": 1,
                "tid": 1 + jobs.index(span.attributes.get("longhaul.job", ""))
                if span.parent
                else 0,
                "args": {"trace": span.trace, "span": span.id, **span.attributes},
            }
            for span in spans
        ]
    }


def main() -> int:
    """The exit code."""
    try:
        switch.pipeline()
    except Unusable as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    # Late, like all that the extra `otel` brings.
    from examples.receiver import Receiver  # noqa: PLC0415

    with Receiver() as receiver, tempfile.TemporaryDirectory() as folder:
        os.environ[switch.ENDPOINT] = receiver.address
        try:
            result = asyncio.run(run(Path(folder)))
        except Unusable as error:
            print(f"error: {error}", file=sys.stderr)
            return 2
        switch.flush()
        spans = receiver.spans()
    FILE.write_text(json.dumps(events(spans)), encoding="utf-8")
    for line in tree(spans):
        print(line)
    traces = {span.trace for span in spans}
    print(f"{len(spans)} spans of trace {', '.join(sorted(traces))}: {FILE.absolute()}")
    return 0 if result["status"] == "completed" else 1


if __name__ == "__main__":
    leave(main())
