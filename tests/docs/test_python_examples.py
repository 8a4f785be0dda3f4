"""The numbered examples in Python run."""

import importlib
from pathlib import Path

import pytest
from temporalio.client import Client

from activities.checkpoints import Root
from engine.development import DevelopmentServer
from rehearsal import rehearse
from tests.workflows.serving import serving


@pytest.fixture
def server(running: DevelopmentServer, monkeypatch: pytest.MonkeyPatch) -> Client:
    """A server that the examples connect to."""
    config = running.client.service_client.config
    monkeypatch.setenv("TEMPORAL_ADDRESS", config.target_host)
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY"):
        monkeypatch.setenv(name, "")
    return running.client


async def test_a_job_is_started_followed_and_told(
    server: Client,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    example = importlib.import_module("examples.python.01_start_a_job")
    root = Root.open(tmp_path / "root", create=True)
    async with serving(server, root, rehearse) as jobs:
        monkeypatch.setenv("LONGHAUL_TASK_QUEUE", jobs.queue)
        result = await example.run_job(example.START)
    assert result.status == "completed"
    assert result.deliverables
    assert "now: " in capsys.readouterr().out


async def test_an_agent_is_tried_with_a_model_whose_endpoint_fails(
    server: Client, tmp_path: Path
) -> None:
    example = importlib.import_module("examples.python.02_scripted_model")
    result, requests = await example.try_agent("generalist", "Write on tea.", tmp_path / "root")
    assert result.status == "completed"
    assert requests == result.usage.model_calls + 1
