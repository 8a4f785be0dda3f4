"""Records the histories that `test_replay.py` replays: `python -m tests.replay.record [SCENE…]`.

Run it after an intended change of the workflow's shape, before a release: the recorded files are
what running jobs look like to the next version.
"""

import asyncio
import gzip
import json
import os
import re
import sys
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pygit2
from PIL import Image
from temporalio.client import WorkflowFailureError, WorkflowHandle

from activities.checkpoints import Root
from engine.development import development_server
from rehearsal import Failure, Reply, rehearse
from rehearsal.wire import Answer, Request, Stall
from tests.activities.mcp.serving import PATIENT
from tests.activities.source_repository.origins import WorkTree, bare_clone
from tests.crash.processes import WORKER_CONFIG
from tests.workflows import (
    delegating,
    team,
    test_mcp_turns,
    test_publish,
    test_retried_calls,
    test_trial,
    trial_limits,
)
from tests.workflows.holding import gate_held
from tests.workflows.serving import Jobs, serving
from tests.workflows.short import DONE, Call, Short, close, hand_over, in_turn, job, plan
from tests.workflows.tea import in_phase

HISTORIES = Path(__file__).parent / "histories"
RECORDED = "recorded"
"""The id that histories are replayed under, because a project derives its jobs' ids from its own.
"""
TEA: dict[str, Any] = {"agent": "generalist", "instructions": "Write a guide on tea."}
Handle = WorkflowHandle[Any, dict[str, Any]]


class Awkward:
    """The rehearsal model, with occasional replies that take another path through the workflow."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, request: Request) -> Answer:
        self.calls += 1
        if self.calls == 3:
            return Reply("Shall I go on?")
        if self.calls == 6:
            return Reply(None, [("crystal_ball", {}), ("todo_complete", "{"), ("list_files", {})])
        if self.calls == 9:
            return Failure(401, "the key was revoked")
        if self.calls == 40:
            return Reply(None, [("todo_rewind", {"issue": "wrong leaves"})])
        return rehearse(request)


async def completed(jobs: Jobs) -> Handle:
    handle = await jobs.start(TEA)
    await jobs.result(handle)
    return handle


async def local_checks(jobs: Jobs) -> Handle:
    """Gates and guards of phases are local activities, since the agent has no commands."""
    handle = await jobs.start(job())
    await jobs.result(handle)
    return handle


async def continued(jobs: Jobs) -> Handle:
    handle = await jobs.start({**TEA, "set": {"limits.history_events": 200}})
    await handle.signal("resume", {})
    await handle.signal("rewnid", {})
    await jobs.result(handle)
    return handle


async def steered(jobs: Jobs) -> Handle:
    handle = await jobs.start(TEA)
    await jobs.until(handle, waiting_for="credentials")
    await handle.signal("resume", {})
    await jobs.until(handle, phase=in_phase(2))
    await handle.signal("pause", {})
    await jobs.until(handle, waiting_for="paused")
    await handle.signal("rewind", {"issue": "again", "phase": 1})
    await jobs.result(handle)
    return handle


async def retried(jobs: Jobs) -> Handle:
    """A job is paused, and resumed, while its call is retried."""
    handle = await jobs.start(job(set=test_retried_calls.PATIENT))
    while True:
        pending = (await handle.describe()).raw_description.pending_activities
        if any(activity.HasField("last_failure") for activity in pending):
            break
        await asyncio.sleep(0.1)
    await handle.signal("pause", {})
    await jobs.until(handle, waiting_for="paused")
    await handle.signal("resume", {})
    await jobs.result(handle)
    return handle


async def edited(jobs: Jobs) -> Handle:
    handle = await jobs.start(TEA)
    await jobs.until(handle, phase=in_phase(2))
    await handle.signal("pause", {})
    await jobs.until(handle, waiting_for="paused")
    (jobs.folder(handle) / "notes" / "mine.md").write_text("by a person")
    await handle.signal("rewind", {"issue": "see my notes"})
    await jobs.result(handle)
    return handle


async def given_up(jobs: Jobs) -> Handle:
    """A rewind arrives while a gate runs that would have ended the phase."""
    with gate_held("todo_complete") as gate:
        handle = await jobs.start(TEA)
        await gate.until_begun()
        await handle.signal("rewind", {"issue": "wait for the milk"})
        gate.go.set()
        await jobs.result(handle)
    return handle


async def interrupted(jobs: Jobs) -> Handle:
    """A person cancels a job in the middle of a model's reply."""
    handle = await jobs.start(job(set={"model.stall_seconds": 60}))
    await test_retried_calls.until_receiving(handle)
    return await _cancelled(jobs, handle, handle)


async def bypassed(jobs: Jobs) -> Handle:
    """A guard is bypassed for the end of a phase, which the judge then rejects."""
    verifier = {"name": "tests", "command": "false", "phases": ["tactical"]}
    handle = await jobs.start(job(set={"judge": {"attempts": 2}, "verifiers": [verifier]}))
    await jobs.until(handle, guards=lambda told: "tests" in told["refused"])
    await handle.signal("bypass", {"guard": "tests", "reason": "It is tea."})
    await jobs.until(handle, phase=lambda phase: phase["number"] > 2)
    await handle.signal("cancel", {})
    await jobs.until(handle, status="cancelled")
    return handle


async def hasty(jobs: Jobs) -> Handle:
    """A job that tries to end before it has planned anything."""
    handle = await jobs.start(job())
    await jobs.result(handle)
    return handle


async def cancelled(jobs: Jobs) -> Handle:
    handle = await jobs.start(TEA)
    await jobs.until(handle, step=lambda step: step > 12)
    await handle.signal("cancel", {"reason": "enough"})
    try:
        await jobs.result(handle)
    except WorkflowFailureError:
        return handle
    raise AssertionError("the job was not cancelled")


async def project(jobs: Jobs, name: str = RECORDED) -> Handle:
    """Two groups side by side with a conflict; the project continues as new between waves."""
    start = team.project("groups", items=["green", "black"], history_events=60)
    handle = await jobs.start(start, kind="Project", job_id=name)
    await handle.signal("resume", {})
    await jobs.result(handle)
    return handle


async def paused_project(jobs: Jobs) -> Handle:
    """While a project is paused, the deadline of its job passes, and then the job ends."""
    handle, child = await _one_stage(jobs, deadline=4, attempts=1)
    await jobs.until(handle, line="0 of 1 stages; generalist on stage-1")
    await handle.signal("pause", {})
    await jobs.until(child, waiting_for="paused")
    await asyncio.sleep(5)
    await child.signal("cancel", {})
    with suppress(WorkflowFailureError):
        await jobs.result(child)
    await asyncio.sleep(1)  # until the server has told the project
    await handle.signal("resume", {})
    await jobs.result(handle)
    return handle


async def cancelled_project(jobs: Jobs) -> Handle:
    """A project is cancelled while its job is at work."""
    handle, child = await _one_stage(jobs)
    await jobs.until(handle, running=lambda runs: bool(runs and runs[0]["phase"]))
    await _cancelled(jobs, handle, child)
    return handle


async def waiting_start(jobs: Jobs) -> Handle:
    """A project's job that cannot begin is paused and resumed nevertheless, and given up."""
    away = {"mcp": {"away": {"url": "http://127.0.0.1:9/mcp"}}}
    handle, child = await _one_stage(jobs, set=away)
    await jobs.until(handle, waiting_for="dependency")
    await handle.signal("pause", {})
    await jobs.until(handle, waiting_for="paused")
    await handle.signal("resume", {})
    await jobs.until(handle, waiting_for="dependency")
    return await _cancelled(jobs, handle, child)


async def outage(jobs: Jobs) -> Handle:
    """A project's remote is away when its job ends, and comes back."""
    with tempfile.TemporaryDirectory() as folder:
        remote, away = Path(folder) / "remote.git", Path(folder) / "away.git"
        pygit2.init_repository(str(remote), bare=True)
        handle, _ = await _one_stage(jobs, set={"workspace.remote": f"file://{remote}"})
        await jobs.until(handle, running=lambda runs: bool(runs and runs[0]["phase"]))
        remote.rename(away)
        await jobs.until(handle, waiting_for="dependency")
        away.rename(remote)
        await jobs.result(handle)
    return handle


async def away_job(jobs: Jobs) -> Handle:
    """A job's host loses its checkpoints while their remote is away, and gets them once it is back.

    A person's `resume` is refused where the job goes on by itself.
    """
    with tempfile.TemporaryDirectory() as folder:
        remote, away = Path(folder) / "remote.git", Path(folder) / "away.git"
        pygit2.init_repository(str(remote), bare=True)
        handle = await jobs.start(job(set={"workspace.remote": f"file://{remote}"}))
        await jobs.until(handle, waiting_for="credentials")
        remote.rename(away)
        jobs.root.repository(handle.id).rename(Path(folder) / "lost.git")
        await handle.signal("resume", {})
        await jobs.until(handle, waiting_for="dependency")
        away.rename(remote)
        await handle.signal("resume", {})
        await jobs.result(handle)
    return handle


async def resumed_job(jobs: Jobs) -> Handle:
    """A job that is paused and resumed with its project, during a long step."""
    handle, child = await _one_stage(jobs)
    await jobs.until(handle, running=lambda runs: bool(runs and runs[0]["phase"]))
    await jobs.until(child, waits_until=bool)
    await handle.signal("pause", {})
    await jobs.until(child, waiting_for="paused")
    await handle.signal("resume", {})
    await jobs.until(child, waiting_for=None)
    return await _cancelled(jobs, handle, child)


async def _one_stage(jobs: Jobs, **given: Any) -> tuple[Handle, Handle]:
    """A project and its only job."""
    stages = [{"agent": "generalist", "task": "Draft it."}]
    start = team.project("pipeline", stages=stages, **given)
    handle = await jobs.start(start, kind="Project", job_id=RECORDED)
    return handle, jobs.client.get_workflow_handle(f"{RECORDED}.stage-1-generalist-1")


async def _cancelled(jobs: Jobs, handle: Handle, child: Handle) -> Handle:
    await handle.signal("cancel", {})
    with suppress(WorkflowFailureError):
        await jobs.result(handle)
    return child


async def project_job(jobs: Jobs) -> Handle:
    """The fork that resolves the conflict: a job that reports its state to its project."""
    handle = await project(jobs, "other")
    status = await handle.query("status")
    job = next(each["job"] for each in status["jobs"] if each["job"].endswith("-worker-2"))
    return jobs.client.get_workflow_handle(job)


async def helped(jobs: Jobs) -> Handle:
    """Five helpers read, in rounds of four at most."""
    handle = await jobs.start(job(set=delegating.SET))
    await jobs.result(handle)
    return handle


async def published(jobs: Jobs) -> Handle:
    """A job works on a repository and pushes its branch."""
    with tempfile.TemporaryDirectory() as folder:
        tree = WorkTree.create(Path(folder) / "tea", tea_py="def brew():\n    ...\n")
        remote = bare_clone(tree, Path(folder) / "remote.git")
        handle = await jobs.start(test_publish.publishing(remote))
        await jobs.result(handle)
    return handle


async def skilled(jobs: Jobs) -> Handle:
    """A job works by a skill, and looks at an image of the folder that it began with."""
    with tempfile.TemporaryDirectory() as folder:
        skill, tea = Path(folder) / "brewing", Path(folder) / "tea"
        for place in (skill, tea):
            place.mkdir()
        (skill / "SKILL.md").write_text(
            "---\nname: brewing\ndescription: Brews tea.\n---\nLook at the leaf first.\n"
        )
        Image.new("RGB", (8, 8), (0, 128, 0)).save(tea / "leaf.png")
        settings = {"skills": [str(skill)], "model.vision": True}
        handle = await jobs.start(job(repository={"folder": str(tea)}, set=settings))
        await jobs.result(handle)
    return handle


async def asked(jobs: Jobs) -> Handle:
    """A person's first answer does not fit the form of an MCP server, the second does."""
    with tempfile.TemporaryDirectory() as folder:
        # A history has the server's command, but no path of this checkout.
        server = Path(folder) / "server"
        server.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{PATIENT}" "$@"\n')
        server.chmod(0o700)
        servers = {"patient": {"command": [str(server), str(server.with_name("ledger"))]}}
        handle = await jobs.start(job(set={"mcp": servers, "limits.tools_offered": 60}))
        await jobs.until(handle, waiting_for="clarification")
        await handle.signal("answer", {"text": "size=huge"})
        await jobs.until(handle, waiting=test_mcp_turns.asks_again)
        await handle.signal("answer", {"text": "size=large"})
        await jobs.result(handle)
    return handle


async def trial(jobs: Jobs) -> Handle:
    """Two configurations, one of which does not end in time."""
    handle = await jobs.start(test_trial.trial(parallel=4), kind="Trial", job_id=RECORDED)
    await jobs.result(handle)
    return handle


async def limited_trial(jobs: Jobs) -> Handle:
    """A paused trial whose limit is raised, and whose shares are too small for its runs."""
    start = trial_limits.limited_trial(3, 2, model_calls=12)
    handle = await jobs.start(start, kind="Trial", job_id=RECORDED)
    await handle.signal("pause", {})
    await jobs.until(handle, waiting=lambda waiting: waiting["reason"] == "paused")
    await handle.signal("limit", {"model_calls": 18})
    await handle.signal("resume", {})
    await jobs.result(handle)
    return handle


def reading() -> Any:
    calls = [delegating.delegate(f"What is in leaf {n}?", f"notes/leaf_{n}.md") for n in range(5)]
    model = delegating.Delegating(*calls)
    model.leaves = 5
    return model


def colliding() -> Any:
    def work(opening: str) -> Sequence[Call]:
        menu = (
            "both" if "collides" in opening else opening.partition("It covers these items")[0][-30:]
        )
        return [team.write("repo/menu.md", f"{menu}\n")]

    def divide(opening: str) -> Sequence[Call]:
        groups = [{"id": f"g{n}", "title": f"Tea {n}", "items": [f"S{n}"]} for n in (1, 2)]
        return [team.answer("output/groups.json", {"groups": groups})]

    return team.Team(
        {
            "Divide the project's scope": divide,
            "A wave of groups is through": lambda told: [
                team.answer("output/groups.json", {"complete": True})
            ],
            "the group g": work,
        }
    )


def drafting() -> Any:
    return team.Team({"Draft it": lambda told: [("wait", {"seconds": 3600})]})


def writing() -> Any:
    return team.Team({"Draft it": lambda told: [team.write("repo/tea.md", "green\n")]})


def looking() -> Short:
    use: Call = ("use_skill", {"name": "brewing"})
    look: Call = ("view_image", {"path": "repo/leaf.png"})
    tea: Call = ("write_file", {"path": "output/tea.md", "content": "green"})
    return Short({"Work": lambda view: [[use], [look], [tea, DONE]][view.replies]})


def refusing() -> Any:
    """Return a model whose second reply is that the key is wrong."""
    model, answers = Short(), iter([None, Failure(401, "the key was revoked")])
    return lambda request: next(answers, None) or model(request)


def stalling() -> Any:
    """Return a model whose first reply stops half way."""
    model, stalls = Short(), iter([Stall(Reply("I have read the "))])
    return lambda request: next(stalls, None) or model(request)


def ordering() -> Short:
    return test_mcp_turns.Calling("order", kind="tea").model


HASTY = [close(), plan("[ ] Boil", "[ ] Brew"), hand_over({}), DONE]
SCENES: dict[str, tuple[Callable[[Jobs], Awaitable[Handle]], Callable[[], Any]]] = {
    "completed": (completed, lambda: rehearse),
    "local_checks": (local_checks, Short),
    "continued": (continued, lambda: rehearse),
    "steered": (steered, Awkward),
    "retried": (retried, test_retried_calls.Busy),
    "edited": (edited, lambda: rehearse),
    "given_up": (given_up, lambda: rehearse),
    "interrupted": (interrupted, stalling),
    "bypassed": (bypassed, lambda: Short(judge=in_turn(Reply("FAIL\nNo tea."), Reply("PASS")))),
    "hasty": (hasty, lambda: Short({"Plan": HASTY})),
    "cancelled": (cancelled, lambda: rehearse),
    "project": (project, colliding),
    "paused_project": (paused_project, drafting),
    "cancelled_project": (cancelled_project, drafting),
    "waiting_start": (waiting_start, drafting),
    "outage": (outage, writing),
    "away_job": (away_job, refusing),
    "resumed_job": (resumed_job, drafting),
    "project_job": (project_job, colliding),
    "helped": (helped, reading),
    "published": (published, test_publish.model),
    "skilled": (skilled, looking),
    "asked": (asked, ordering),
    "trial": (trial, Short),
    "limited_trial": (limited_trial, trial_limits.CountingModel),
}


async def record(version: str, scenes: Sequence[str]) -> None:
    target = HISTORIES / version
    target.mkdir(parents=True, exist_ok=True)
    for name in scenes or SCENES:
        scene, model = SCENES[name]
        print(name, flush=True)
        # A separate folder, as several scenes have jobs of the same id.
        with tempfile.TemporaryDirectory() as folder:
            root = Root.open(Path(folder) / "root", create=True)
            async with development_server(ui=False) as temporal:
                async with serving(temporal.client, root, model()) as jobs:
                    handle = await scene(jobs)
                runs = temporal.client.list_workflows(f'WorkflowId="{handle.id}"')
                for before in target.glob(f"{name}-*"):
                    before.unlink()
                ids = sorted([run.run_id async for run in runs])
                for number, run_id in enumerate(ids, 1):
                    run = temporal.client.get_workflow_handle(handle.id, run_id=run_id)
                    history = (await run.fetch_history()).to_json()
                    # Names of workers and machines do not belong in the repository.
                    plain = _anonymous(history)
                    path = target / f"{name}-{number}.json.gz"
                    path.write_bytes(gzip.compress(plain.encode(), mtime=0))
                    print(path.name, len(plain))


def _anonymous(history: str) -> str:
    text = re.sub(r'"identity": "[^"]*"', '"identity": "worker"', history)
    # The name of a worker's own queue contains its process and host.
    text = re.sub(r"\d+@[A-Za-z0-9.-]+", "1@worker", text)
    text = re.sub(r'File \\"[^"]*?/(?=[^/"]*/[^/"]*\.py)', r'File \\"', text)
    json.loads(text)
    return text


if __name__ == "__main__":
    os.environ["LONGHAUL_CONFIG"] = str(WORKER_CONFIG)
    asyncio.run(record("0.1.0", sys.argv[1:]))
