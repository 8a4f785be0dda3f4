"""Many workers, fast: a process that has done the imports of `worker.py` and forks.

The imports cost seconds of processor time, and a fork saves nothing else: a forked worker is a
separate process that runs `engine.worker_process.run_worker_process` like any other.
"""

import asyncio
import gc
import json
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

from openai import AsyncOpenAI
from temporalio import workflow

from activities import activity_catalogue
from activities.stores import store_migration
from activities.text import indicators, tokens
from config.agent_files import load_agent
from engine import worker_process
from engine.service import job_workflows
from engine.workflow_runner import JobWorkflowRunner

READY = (activity_catalogue, store_migration)
"""Modules that a worker loads late."""
DEATHS = {signal.SIGCHLD}

born: dict[int, Path] = {}
"""Log files of the running workers, by process id."""


def main() -> None:
    """For each line of JSON, `{"environment": …, "log": …}`, fork a worker and print its id."""
    # What is loaded or computed at first use: the sandbox's own modules, an encoding, the
    # expressions of an agent's configuration, certificates.
    asyncio.run(_load_workflows())
    tokens.count_tokens("tea")
    indicators.shipped_indicators()
    load_agent("generalist")
    AsyncOpenAI(base_url="http://localhost", api_key="none")
    # A collection in a forked worker would copy all these objects.
    gc.freeze()
    signal.signal(signal.SIGCHLD, _bury)
    for line in sys.stdin:
        request = json.loads(line)
        # The fork is registered before it can end.
        signal.pthread_sigmask(signal.SIG_BLOCK, DEATHS)
        pid = os.fork()
        if pid == 0:
            _become_worker(request["environment"], request["log"])
        born[pid] = Path(request["log"])
        signal.pthread_sigmask(signal.SIG_UNBLOCK, DEATHS)
        print(pid, flush=True)
    _end_workers()


def _end_workers() -> None:
    """Kill the workers that are left: a test run that is interrupted kills none itself."""
    signal.pthread_sigmask(signal.SIG_BLOCK, DEATHS)
    for pid in born:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


async def _load_workflows() -> None:
    """Import the workflows into the sandbox, which needs an event loop for it."""
    for each in job_workflows():
        JobWorkflowRunner().prepare_workflow(workflow._Definition.must_from_class(each))


def _bury(*_: object) -> None:
    """Forget workers that ended, at once; their exit codes are written beside their logs."""
    # There may be no child left.
    with suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            log = born.pop(ended[0])
            log.with_suffix(".new").write_text(str(os.waitstatus_to_exitcode(ended[1])))
            log.with_suffix(".new").rename(log.with_suffix(".code"))


def _become_worker(environment: dict[str, str], log: str) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, DEATHS)
    nothing = os.open(os.devnull, os.O_RDONLY)
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for source, target in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(source, target)
    os.environ.clear()
    os.environ.update(environment)
    worker_process.run_worker_process()


if __name__ == "__main__":
    main()
