"""Servers that are spoken to by HTTP."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from temporalio.exceptions import ApplicationError

from engine.development import free_port
from tests.activities.mcp.serving import ODD, agent, answer, call, standing, until


@contextmanager
def running(ledger: Path, port: int) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, str(ODD), str(ledger), "http", str(port)])
    try:
        until(lambda: _answers(port))
        yield process
    finally:
        process.kill()
        process.wait()


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_calls_over_http(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger, port = tmp_path / "ledger", free_port()
    monkeypatch.setenv("ODD_TOKEN", "Bearer tea")
    served = {"url": f"http://127.0.0.1:{port}/mcp", "headers": {"Authorization": "ODD_TOKEN"}}
    with running(ledger, port) as process:
        job = standing(tmp_path / "job", agent(odd=served))
        assert call(job, "odd__note", '{"text": "tea"}').ok
        assert answer(job) == "done"
        assert not call(job, "odd__refuse").ok
        # Killed within the call: it came in, and no more is known.
        assert not call(job, "odd__crash").ok
        assert "may have happened" in answer(job)
        assert process.wait() == 3
    with pytest.raises(ApplicationError, match="cannot be reached") as failed:
        call(job, "odd__note", '{"text": "more"}')
    assert failed.value.type == "Dependency"
    with running(ledger, port):
        # Another process, which knows nothing of the session before.
        assert call(job, "odd__note", '{"text": "again"}').ok
    assert ledger.read_text().splitlines() == [
        "listed",
        "note {'text': 'tea'}",
        "crash",
        "note {'text': 'again'}",
    ]
