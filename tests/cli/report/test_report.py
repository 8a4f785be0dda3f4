"""`report` on a real job: real server, worker and checkpoints, and a model that goes astray."""

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from activities.checkpoints import Root
from engine.root_location import workspaces_root
from rehearsal import Reply, rehearse
from rehearsal.wire import Answer, Request
from tests.brief import BRIEF
from tests.workflows.serving import SECONDS, serving
from tests.workflows.team import Team, project, write

KEY = "sk-proj-" + "a1B2c3D4e5F6g7H8i9J0" * 2
TITLE = "Work on the group <script>alert(1)</script> of the project, in output/."


class Astray:
    """The rehearsal model, with an occasional reply that is refused."""

    def __init__(self) -> None:
        self.calls = 0
        self.sent = 0
        """Number of tool calls sent by the endpoint."""

    def __call__(self, request: Request) -> Answer:
        answer = self.reply(request)
        self.sent += len(answer.calls) if isinstance(answer, Reply) else 0
        return answer

    def reply(self, request: Request) -> Answer:
        if not request.get("tools"):
            return rehearse(request)
        self.calls += 1
        if self.calls == 3:
            return Reply("Shall I go on?")
        if self.calls == 6:
            return Reply(None, [("crystal_ball", {}), ("read_file", {"path": "<b>no</b>.md"})])
        if self.calls == 12:
            return Reply(None, [("todo_rewind", {"issue": f"the key is {KEY}"})])
        if self.calls == 13:
            return Reply(None, [("todo_rewind", {"issue": "wrong <i>leaves</i>"})])
        return rehearse(request)


def patiently(engine: Any, work: Any) -> Any:
    """Return the result of a coroutine on the server's loop, waiting as long as a job takes."""
    return asyncio.run_coroutine_threadsafe(work, engine.loop).result(SECONDS)


@pytest.fixture
def job(engine: Any, workspaces: Path) -> Iterator[tuple[str, Callable[[], None], Astray]]:
    """Return a job that completed over several runs, and a function that ends its worker."""
    root = Root.open(workspaces, create=True)
    model = Astray()
    context = serving(engine.client, root, model)
    jobs = engine.do(context.__aenter__())
    with ExitStack() as stack:
        stack.callback(lambda: engine.do(context.__aexit__(None, None, None)))
        start = {
            "agent": "generalist",
            "instructions": f"{TITLE}\n\n- S1: green tea",
            "set": {
                **BRIEF,
                "todos.rewind": ["Revise plan.md", "Call todo_write"],
                "limits.history_events": 100,
                "prices.rehearsal": {"prompt": 1, "cached": 0.5, "completion": 4},
            },
        }
        handle = engine.do(jobs.start(start, job_id=f"reported-{workspaces.parent.name}"))
        patiently(engine, jobs.result(handle))
        yield handle.id, stack.close, model


def test_a_job_is_reported_as_it_was_and_then_from_what_is_left(
    job: tuple[str, Callable[[], None], Astray],
    starter: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name, end_worker, model = job
    full = _as_it_was(name, starter, tmp_path / "report.html")
    assert full["figures"]["sent_calls"] == model.sent

    # Without a worker, Temporal still has the history.
    end_worker()
    job_report = json.loads(starter("report", name, "--json").out)
    assert job_report["status"]["status"] == "completed"
    assert (job_report["figures"]["nudges"], full["figures"]["nudges"]) == (None, 0)
    for part in ("phases", "steps", "refusals", "deliverables"):
        assert job_report[part] == full[part], part
    assert job_report["status"]["scope"] == full["status"]["scope"]
    assert any("No worker" in remark for remark in job_report["remarks"])

    # Temporal has no job with that id (any more), but the checkpoints remain.
    root = Root.open(workspaces_root(), create=False)
    root.repository(name).rename(root.repository("forgotten"))
    job_report = json.loads(starter("report", "forgotten", "--json").out)
    assert job_report["status"]["status"] == "completed"
    for figure in ("phases", "steps", "model_calls", "prompt_tokens", "rewinds"):
        assert job_report["figures"][figure] == full["figures"][figure], figure
    assert [phase["name"] for phase in job_report["phases"]] == [p["name"] for p in full["phases"]]
    assert (job_report["figures"]["tool_errors"], job_report["steps"]) == (None, [])
    assert any("Temporal no longer has" in remark for remark in job_report["remarks"])

    # Traces that could not be read are not reported as zero.
    monkeypatch.setenv("LONGHAUL_STORE_URL", "postgresql://127.0.0.1:1/db")
    job_report = json.loads(starter("report", "forgotten", "--json").out)
    assert sum("Not all traces" in remark for remark in job_report["remarks"]) == 1


def _as_it_was(job: str, starter: Any, file: Path) -> dict[str, Any]:
    status = json.loads(starter("show", job, "--json").out)
    ran = starter("report", job, "--json")
    assert (ran.code, ran.err) == (0, "")
    job_report = json.loads(ran.out)
    figures, used = job_report["figures"], status["usage"]

    # The figures equal those of the job itself, and are the sums of their parts.
    for name in (
        "model_calls",
        "sent_calls",
        "tool_calls",
        "refused_calls",
        "failed_calls",
        "prompt_tokens",
        "completion_tokens",
        "cached_tokens",
        "written_tokens",
    ):
        assert figures[name] == used[name], name
    assert figures["cost"] == pytest.approx(used["cost"])
    assert (figures["steps"], figures["nudges"]) == (status["step"], status["nudges"])
    assert len(job_report["steps"]) == status["step"]
    assert sum(phase["model_calls"] for phase in job_report["phases"]) == used["model_calls"]
    for name in ("sent_calls", "tool_calls", "refused_calls", "failed_calls"):
        assert sum(phase[name] for phase in job_report["phases"]) == used[name], name
    # All calls sent were run or refused, except those after the end of a phase.
    assert used["tool_calls"] + used["refused_calls"] <= used["sent_calls"]
    assert (used["refused_calls"], used["failed_calls"]) == (2, 1)
    assert sum(phase["cost"] for phase in job_report["phases"]) == pytest.approx(used["cost"])

    # The report shows what went wrong.
    assert (figures["rewinds"], figures["refusals"]) == (1, status["refusals"])
    rows = {(row["kind"], row["by"]): row["count"] for row in job_report["refusals"]}
    assert rows["reply", "a reply that asks a person"] == 1
    assert rows["phase rule", "unknown tool"] == 1
    assert rows["tool error", "read_file"] == 1
    assert [by for kind, by in rows if kind == "guard"] == ["secrets"]
    numbers = [phase["number"] for phase in job_report["phases"]]
    assert numbers == list(range(1, status["phase"]["number"] + 1))
    assert "rewind" in {phase["purpose"] for phase in job_report["phases"]}
    [rewound] = [phase for phase in job_report["phases"] if phase["outcome"] == "rewound"]
    assert rewound["issue"].startswith("wrong <i>leaves")
    assert all(one["started"] <= one["ended"] for one in job_report["phases"])

    # The report shows the deliverables, with the sizes of their files.
    folder = workspaces_root() / job
    assert job_report["deliverables"]
    for one in job_report["deliverables"]:
        assert one["bytes"] == (folder / one["path"]).stat().st_size
    assert (job_report["status"]["status"], job_report["remarks"]) == ("completed", [])
    assert figures["completions_let_through"] == 0

    ran = starter("report", job, "--output", str(file))
    assert (ran.code, ran.out.strip()) == (0, str(file))
    page = file.read_text(encoding="utf-8")
    assert "alert(1)&lt;/script&gt; of the project" in page
    assert "<script" not in page
    for shown in (page, json.dumps(job_report)):
        assert "a1B2c3" not in shown
    return dict(job_report)


def test_the_report_of_a_project_has_that_of_each_job(
    engine: Any, starter: Any, workspaces: Path, tmp_path: Path
) -> None:
    root = Root.open(workspaces, create=True)
    name = f"menu-{workspaces.parent.name}"
    stages = [
        {"id": "draft", "agent": "generalist", "task": "Draft the menu."},
        {"id": "check", "agent": "generalist", "task": "Check the menu."},
    ]
    team = Team(
        {
            "Draft the menu": lambda told: [write("repo/menu.md", "tea\n")],
            "Check the menu": lambda told: [write("repo/checked.md", "fine\n")],
        }
    )
    context = serving(engine.client, root, team)
    jobs = engine.do(context.__aenter__())
    try:
        start = jobs.start(project("pipeline", stages=stages), job_id=name, kind="Project")
        patiently(engine, jobs.result(engine.do(start)))
        status = json.loads(starter("show", name, "--json").out)
        job_report = json.loads(starter("report", name, "--json").out)
        file = tmp_path / "project.html"
        assert starter("report", name, "--output", str(file)).code == 0
    finally:
        engine.do(context.__aexit__(None, None, None))
    known = job_report["status"]
    assert (known["job_id"], known["status"], job_report["remarks"]) == (name, "completed", [])
    ids = [one["status"]["job_id"] for one in job_report["jobs"]]
    assert ids == [job["job"] for job in status["jobs"]]
    assert len(ids) == 2
    calls = sum(one["figures"]["model_calls"] for one in job_report["jobs"])
    assert calls == status["usage"]["model_calls"]
    page = file.read_text(encoding="utf-8")
    assert all(job in page for job in ids)
    # Without a worker, the project's result names them.
    job_report = json.loads(starter("report", name, "--json").out)
    assert [one["status"]["job_id"] for one in job_report["jobs"]] == ids
    assert job_report["remarks"][0].startswith("No worker answered")
    shown = starter("show", name).out
    assert "2 jobs · " in shown
    assert "phases" not in shown


def test_mistakes_are_told_in_a_line(engine: Any, starter: Any, workspaces: Path) -> None:
    assert "there is no job" in starter("report", "nobody").error
    Root.open(workspaces, create=True)
    engine.job("nowhere")
    assert "no checkpoints" in starter("report", "nowhere").error
