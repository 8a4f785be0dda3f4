"""Guards and hooks in a job on a real server: refusals show, a bypass holds once, Stop keeps it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from temporalio.client import Client

from activities.checkpoints import Root
from activities.rehearsal import Reply, rehearse
from activities.rehearsal.wire import Answer, Request
from tests.activities.guards.scripts import hook
from tests.workflows.serving import Jobs, serving
from tests.workflows.tea import TEA, tea

SECRET = "aws_access_key_id = AKIA" + "IOSFODNN7EXAMPLE"
WRITE = Reply(None, [("write_file", {"path": "notes/key.md", "content": SECRET})])


class Sometimes:
    """Rehearses, but answers the listed calls otherwise; summaries are not counted."""

    def __init__(self, others: dict[int, Answer]) -> None:
        self.others = others
        self.calls = 0
        self.seen: list[str] = []

    def __call__(self, request: Request) -> Answer:
        if not request.get("tools"):
            return rehearse(request)
        self.calls += 1
        self.seen.append(str(request["messages"][-1]["content"]))
        return self.others.get(self.calls) or rehearse(request)


async def _paused(jobs: Jobs, handle: Any) -> dict[str, Any]:
    await handle.signal("pause", {})
    return await jobs.until(handle, waiting_for="paused")


async def test_a_refusal_shows_and_a_bypass_holds_once(temporal: Client, root: Root) -> None:
    model = Sometimes({3: WRITE})
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(TEA)
        await handle.signal("bypass", {"guard": "secrets"})
        status = await jobs.until(handle, guards=lambda told: told["refused"] == {"secrets": 1})
        assert status["refusals"] >= 1
        assert any("has refused nothing" in line for line in status["notices"])
        assert any("guard secrets refused write_file" in line for line in status["notices"])
        assert "AKIA" not in str(status)
        await _paused(jobs, handle)
        await handle.signal("bypass", {"guard": "secrets", "reason": "an example"})
        status = await jobs.until(handle, guards=lambda told: bool(told["bypasses"]))
        model.others |= {model.calls + 1: WRITE, model.calls + 2: WRITE}
        await handle.signal("resume", {})
        status = await jobs.until(handle, guards=lambda told: told["refused"] == {"secrets": 2})
        assert status["guards"]["bypasses"] == {}
        assert any("bypass of secrets let write_file through" in s for s in status["notices"])
        assert "lets through once what secrets refused" in "".join(model.seen)
        result = await jobs.result(handle)
        assert result["status"] == "completed"
        assert (jobs.folder(handle) / "notes/key.md").read_text() == SECRET


async def test_hooks_deny_rewrite_and_keep_the_job_from_ending(
    temporal: Client, root: Root, tmp_path: Path
) -> None:
    gate = (
        "if not os.path.exists(os.path.join(event['cwd'], 'output/proof.md')):\n"
        "    print('write output/proof.md', event['stop_hook_active'], file=sys.stderr)\n"
        "    sys.exit(2)"
    )
    moves = (
        "path = event['tool_input']['file_path']\n"
        "if path == 'output/proof.txt':\n"
        "    print(json.dumps({'updatedInput': {'file_path': 'output/proof.md'}}))\n"
        "if path == 'forbidden.md':\n"
        "    print('never', file=sys.stderr)\n"
        "    sys.exit(2)"
    )
    hooks = {
        "PreToolUse": [hook(tmp_path / "moves.py", moves, matcher="Write")],
        "Stop": [hook(tmp_path / "gate.py", gate)],
    }

    def model(request: Request) -> Answer:
        results = [m["content"] for m in request["messages"] if m["role"] == "tool"]
        last = results[-1] if results else ""
        if "write output/proof.md True" in last:
            return Reply(None, [("write_file", {"path": "output/proof.txt", "content": "done"})])
        if "write output/proof.md False" in last:
            return Reply(None, [("write_file", {"path": "forbidden.md", "content": "x"})])
        return rehearse(request)

    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(tea(set={"hooks": hooks}))
        result = await jobs.result(handle)
        assert result["status"] == "completed"
        status = await handle.query("status")
        assert status["guards"]["refused"] == {"gate": 2, "moves": 1}
        assert any("moves rewrote the arguments" in line for line in status["notices"])
        folder = jobs.folder(handle)
        assert (folder / "output/proof.md").read_text() == "done"
        assert not (folder / "forbidden.md").exists()
