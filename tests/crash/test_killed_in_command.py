"""`kill -9` of the worker while commands run: repeatable ones run again, from the same tree."""

import asyncio
import json
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from activities.checkpoints import Root
from activities.commands import sandbox
from rehearsal.server import ModelServer
from tests.activities.mcp.serving import until
from tests.crash.begun import Begun, Place
from tests.workflows.short import DONE, Short, job

WHY = sandbox.sandbox_problem(sandbox.find_bwrap())
pytestmark = pytest.mark.skipif(WHY is not None, reason=f"no sandbox here: {WHY}")
BEGUN = "*/*/workspace/begun"
"""A file in the private folder of each job whose command is running."""
COMMAND = (
    "echo once >> notes/tally.md; touch begun; until [ -e let_go ]; do sleep 0.1; done; "
    "rm begun; echo done"
)
"""It does not end by itself, so that both jobs' commands run at the same time."""
TOOLS = ["files", "todos", "job", "shell"]


async def test_a_command_is_run_again_and_with_the_network_reported(begun: Begun) -> None:
    await begun(trial)


async def trial(place: Place) -> None:
    names, outputs = ("alone", "networked"), set[str]()

    def work(view: Any) -> Any:
        outputs.update(
            done_call.result for done_call in view.calls if done_call.tool == "run_command"
        )
        write = ("write_file", {"path": "output/tea.md", "content": "tea"})
        return [[("run_command", {"command": COMMAND})], [write], [DONE]][view.replies]

    root = Root.open(place.folder / "root", create=True)
    private = root.path / ".longhaul" / "private"
    with ModelServer(Short({"Work": work})) as model:
        where = (place.temporal.address, root.path, "command", model.base_url)
        worker = place.workers.worker(*where)
        client = await place.temporal.client()
        handles = {
            name: await client.start_workflow(
                "Job",
                job(
                    set={
                        "tools": TOOLS,
                        "shell.network": name == "networked",
                    },
                ),
                id=f"command-{name}",
                task_queue="command",
                result_type=dict,
            )
            for name in names
        }
        await asyncio.to_thread(until, lambda: len(list(private.glob(BEGUN))) == 2, 60)
        worker.kill()
        await asyncio.to_thread(worker.until_gone)
        over = threading.Event()
        letting_go = asyncio.create_task(asyncio.to_thread(let_go, private, over))
        try:
            place.workers.worker(*where)
            results = {n: await asyncio.wait_for(h.result(), 120) for n, h in handles.items()}
        finally:
            over.set()
            await letting_go
    assert {result["status"] for result in results.values()} == {"completed"}
    alone, networked = (root.workspace(f"command-{name}") for name in names)
    # Nothing of the first attempt remains: what it appended is there once.
    assert len(outputs) == 2
    assert "Exit code 0.\ndone" in outputs
    assert (alone / "notes" / "tally.md").read_text() == "once\n"
    log = (alone / "commands" / "log.jsonl").read_text().splitlines()
    assert [json.loads(line)["exit_code"] for line in log] == [0]
    assert not (alone / "begun").exists()
    assert any("may have happened" in text for text in outputs)
    assert not (networked / "notes" / "tally.md").exists()
    assert not (networked / "commands").exists()


def let_go(private: Path, over: threading.Event) -> None:
    """Let every command end that runs from now on."""
    while not over.wait(0.05):
        # A killed attempt's files may disappear during this.
        with suppress(OSError):
            for begun in private.glob(BEGUN):
                begun.with_name("let_go").touch()
