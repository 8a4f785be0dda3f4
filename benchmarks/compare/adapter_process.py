"""Runs one adapter in this process: `python -m benchmarks.compare.adapter_process NAME TASK`.

TASK is JSON; the last printed line is the outcome as JSON.
"""

import asyncio
import importlib
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.compare.adapter_task import (
    AdapterTask,
    Outcome,
    begin_adapter_task,
    disable_adapter_telemetry,
)
from engine.worker_process import exit_worker_process


async def run_adapter(name: str, task: AdapterTask) -> Outcome:
    """Run the adapter and return the outcome with the files it wrote."""
    adapter: Any = importlib.import_module(f"benchmarks.compare.adapters.{name}")
    outcome: Outcome = await getattr(adapter, f"run_{name}")(task)
    files = outcome.made if outcome.made is not None else _read_adapter_run_files(task.files)
    return Outcome(**{**asdict(outcome), "made": files})


def _read_adapter_run_files(files: Path) -> dict[str, str]:
    paths = sorted(path for path in files.rglob("*") if path.is_file())
    return {str(path.relative_to(files)): path.read_text() for path in paths}


def run_adapter_in_process() -> None:
    disable_adapter_telemetry()
    task = AdapterTask(**json.loads(sys.argv[2]))
    begin_adapter_task(task)
    outcome = asyncio.run(run_adapter(sys.argv[1], task))
    print(json.dumps(asdict(outcome)), flush=True)
    exit_worker_process(0)


if __name__ == "__main__":
    run_adapter_in_process()
