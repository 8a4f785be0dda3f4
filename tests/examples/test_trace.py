"""The example shows the trace of one job, and leaves it in a file."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.crash.processes import CLEAN, REPOSITORY


def test_the_example_prints_one_trace_and_leaves_it(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "examples.trace"], cwd=tmp_path,
        env={**CLEAN, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True, text=True, timeout=180, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    first, second, *steps, last = ran.stdout.splitlines()
    assert first.startswith("start Job  ")
    assert second.startswith("  invoke_agent generalist  ")
    assert second.endswith(", completed")
    assert any(line.startswith("    execute_tool write_file  ") for line in steps)
    assert any(line.startswith("      chat rehearsal  ") and "tokens in" in line for line in steps)
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert last.startswith(f"{len(events)} spans of trace ")
    assert len(events) == len(steps) + 2
    assert {event["args"]["trace"] for event in events} == {last.split()[4].rstrip(":")}
