"""Traces and metrics of real workers, as a receiver gets them."""

import asyncio
import socket
import threading
from collections import Counter
from pathlib import Path

import yaml

from engine.development import DevelopmentServer
from engine.free_ports import free_port
from rehearsal import Answer, Failure, Request
from rehearsal.request_view import RequestView
from rehearsal.wire import Model
from tests.crash.processes import Nursery
from tests.engine.otel.receiver import Span
from tests.engine.otel.watching import KEY, Watched, named, under, watched
from tests.workflows.short import DONE, Call, Short, job
from tests.workflows.team import Team, project, write

PLANTED = "sk-planted-4f1b77c0a9d2"
TOLD = "marzipan 7731"
WRITES = 20
HELD_AT = 20
"""One of the replies for the todo, at which most is written."""


class Failing:
    """Answers its first request with an error that contains the secret."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._failed = False

    def __call__(self, request: Request) -> Answer:
        if not self._failed:
            self._failed = True
            return Failure(500, f"Broken: {PLANTED}")
        return self._model(request)


class Holding:
    """Stops before a late reply until it may go on: the job stays between its first run and its end
    for as long as a test wants.
    """

    def __init__(self) -> None:
        self._goes_on = threading.Event()

    def work(self, view: RequestView) -> list[Call]:
        if view.replies == HELD_AT:
            assert self._goes_on.wait(300)
        return _work(view)

    def go_on(self) -> None:
        self._goes_on.set()


def _work(view: RequestView) -> list[Call]:
    path = "output/tea.md"
    does = [
        ("read_file", {"path": f"notes/{PLANTED}.md"}),
        ("write_file", {"path": path, "content": PLANTED}),
        ("write_file", {"path": path, "content": TOLD}),
        ("read_file", {"path": path}),
        *[("write_file", {"path": path, "content": f"tea {n}"}) for n in range(WRITES)],
        DONE,
    ]
    return [does[view.replies]]


async def test_a_job_is_one_trace_over_runs_retries_and_workers(
    running: DevelopmentServer, workers: Nursery, tmp_path: Path
) -> None:
    holding = Holding()
    async with watched(running, workers, tmp_path, Failing(Short({"Work": holding.work}))) as site:
        first = await site.worker()
        start = job(instructions=f"Make tea {PLANTED}.", set={"limits.history_events": 100})
        handle = await site.client.start_workflow("Job", start, id="tea", task_queue=site.queue)
        await _until_continued(site, handle.first_execution_run_id or "")
        first.kill()
        await first.left()
        holding.go_on()
        # Whatever is sent from here on comes from the second worker.
        before = {span.id for span in site.receiver.spans()}
        await site.worker()
        result = await site.result("tea")
        await site.drained()
        spans, metrics = site.receiver.spans(), site.receiver.metrics()
        bodies = b"".join(site.receiver.bodies)
    assert result["status"] == "completed"
    assert {span.trace for span in spans} == {
        (handle.first_execution_run_id or "").replace("-", "")
    }
    assert {span.attributes["longhaul.job"] for span in spans} == {"tea"}
    assert max(Counter(span.id for span in spans).values()) == 1
    [whole] = [span for span in spans if not span.parent]
    assert whole.name == "invoke_agent generalist"
    assert whole.attributes["longhaul.status"] == "completed"
    steps = under(spans, whole)
    assert all(whole.begun <= span.begun <= span.ended <= whole.ended for span in steps)
    # Steps from before and after the kill, and from several runs; none appears twice.
    assert {span.id for span in steps} & before
    assert {span.id for span in steps} - before
    call_ids = [
        span.attributes["gen_ai.tool.call.id"] for span in named(steps, "execute_tool write_file")
    ]
    assert WRITES - 5 < len(set(call_ids)) <= len(call_ids) <= WRITES + 5
    _check_model_calls(spans, steps, before)
    wrong = [span for span in steps if span.name.startswith("execute_tool ") and span.failed]
    assert [
        (span.attributes["gen_ai.tool.name"], span.attributes["error.type"]) for span in wrong
    ] == [
        ("read_file", "tool_error"),
        ("write_file", "refused"),
    ]
    for secret in (PLANTED, TOLD, KEY, "Make tea", "output/tea.md"):
        assert secret.encode() not in bodies
    assert {each["gen_ai.token.type"] for each in metrics["gen_ai.client.token.usage"]} == {
        "input",
        "output",
    }
    assert metrics["gen_ai.client.operation.duration"][0]["gen_ai.request.model"] == "gpt-5-mini"
    assert {"longhaul_model_calls", "temporal_workflow_task_execution_latency"} <= set(metrics)


async def _until_continued(site: Watched, first_run: str) -> None:
    """Wait until the job hangs in a later run and all earlier spans have arrived."""
    # The plan was written before; two of the replies read, and one write is refused.
    writes = 1 + HELD_AT - 3
    async with asyncio.timeout(120):
        while len(named(site.receiver.spans(), "execute_tool write_file")) < writes:  # noqa: ASYNC110 - it offers nothing else
            await asyncio.sleep(0.02)
    assert (await site.client.get_workflow_handle("tea").describe()).run_id != first_run


def _check_model_calls(spans: list[Span], steps: list[Span], before: set[str]) -> None:
    calls = [span for span in spans if span.name == "chat gpt-5-mini"]
    broken, *answered = calls
    assert broken.failed
    assert broken.attributes["error.type"] == "500"
    [attempt, again] = named(steps, "model_call")[:2]
    assert (attempt.attributes["longhaul.attempt"], attempt.attributes["error.type"]) == (
        1,
        "Endpoint",
    )
    assert (again.attributes["longhaul.attempt"], again.failed) == (2, False)
    assert broken.parent == attempt.id
    known = {span.id for span in steps}
    alone = [span.id for span in calls if span.parent not in known]
    # The killed attempt, if its call had been exported by then and the attempt had not.
    assert len(alone) <= 1
    assert before.issuperset(alone)
    for span in answered:
        attributes = span.attributes
        assert not span.failed
        assert attributes["gen_ai.operation.name"] == "chat"
        assert attributes["gen_ai.provider.name"] == "openai"
        assert (
            attributes["gen_ai.request.model"]
            == attributes["gen_ai.response.model"]
            == "gpt-5-mini"
        )
        assert attributes["gen_ai.response.finish_reasons"] in (["tool_calls"], ["stop"])
        assert (
            attributes["gen_ai.usage.input_tokens"] > attributes["gen_ai.usage.output_tokens"] > 0
        )
        assert attributes["server.address"] == "127.0.0.1"
        assert {"longhaul.agent", "longhaul.phase", "longhaul.step"} <= attributes.keys()


async def test_the_jobs_of_a_project_are_in_its_trace(
    running: DevelopmentServer, workers: Nursery, tmp_path: Path
) -> None:
    team = Team(
        {
            "Draft the menu": lambda told: [write("repo/menu.md", "tea\n")],
            "Check the menu": lambda told: [write("repo/checked.md", "fine\n")],
        }
    )
    stages = [
        {"id": "draft", "agent": "generalist", "task": "Draft the menu.",
         "delivers": [{"file_exists": "repo/menu.md"}]},
        {"id": "check", "agent": "generalist", "task": "Check the menu.",
         "delivers": [{"file_exists": "repo/checked.md"}]},
    ]  # fmt: skip
    file = tmp_path / "project.yaml"
    file.write_text(yaml.safe_dump(project("pipeline", stages=stages)), encoding="utf-8")
    async with watched(running, workers, tmp_path, team, OTEL_METRICS_EXPORTER="none") as site:
        await site.worker()
        starter = await site.run("starter.py", "project", str(file), "--id", "room")
        await asyncio.wait_for(starter.communicate(), 60)
        assert starter.returncode == 0
        assert (await site.result("room"))["status"] == "completed"
        await site.drained()
        spans, metrics = site.receiver.spans(), site.receiver.metrics()
    assert metrics == {}
    assert len({span.trace for span in spans}) == 1
    [start] = [span for span in spans if not span.parent]
    assert start.name == "start Project"
    [whole] = under(spans, start)
    assert whole.name == "invoke_workflow"
    jobs = named(under(spans, whole), "invoke_agent generalist")
    assert {span.attributes["longhaul.job"] for span in jobs} == {
        "room.draft-generalist-1",
        "room.check-generalist-1",
    }
    for span in jobs:
        [written] = [each for each in under(spans, span) if each.name == "execute_tool write_file"
                     and "repo" not in str(each.attributes)][:1]  # fmt: skip
        assert written.attributes["longhaul.job"] == span.attributes["longhaul.job"]


async def test_an_endpoint_that_is_not_there_costs_a_job_nothing(
    running: DevelopmentServer, workers: Nursery, tmp_path: Path
) -> None:
    """Traces go to an address that never answers, metrics to one that refuses connections."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        where = {
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": f"http://127.0.0.1:{silent.getsockname()[1]}",
            "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": f"http://127.0.0.1:{free_port()}",
            "OTEL_METRIC_EXPORT_INTERVAL": "200",
        }
        async with watched(running, workers, tmp_path, Short(), **where) as site:
            await site.worker()
            await site.client.start_workflow("Job", job(), id="tea", task_queue=site.queue)
            result = await site.result("tea")
            await site.drained()
    assert result["status"] == "completed"
