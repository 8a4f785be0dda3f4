"""Run a hook in its own process group, bounded in time and output, without our secrets."""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from typing import IO

from activities.guards.hooks.answers import HookRun
from activities.redaction.credentials import ORDINARY, hide_credentials
from activities.runtime.child_process import ChildOutputReader

MAX_OUTPUT = 1_000_000
TICK = 0.02


def hook_environment(names: Iterable[str], folder: str) -> dict[str, str]:
    # Every hook gets the ordinary ones.
    passed_names = {*ORDINARY, *names}
    variables = {k: v for k, v in os.environ.items() if k in passed_names or k.startswith("LC_")}
    # Existing scripts use these to find their files.
    return {**variables, "CLAUDE_PROJECT_DIR": folder, "PWD": folder}


def run_hook(
    command: str, event: bytes, *, folder: str, seconds: float, variables: list[str]
) -> HookRun:
    """Run a command with the event as input, and end its process group; never fails."""
    try:
        process = subprocess.Popen(
            ["/bin/sh", "-c", command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=folder,
            env=hook_environment(variables, folder),
            start_new_session=True,
        )
    except OSError as error:
        return HookRun(trouble=f"it could not be started ({error})")
    assert process.stdin and process.stdout and process.stderr
    out, err = (ChildOutputReader(pipe, MAX_OUTPUT) for pipe in (process.stdout, process.stderr))
    writer = threading.Thread(target=_write_hook_input, args=(process.stdin, event), daemon=True)
    writer.start()
    trouble = ""
    try:
        end = time.monotonic() + seconds
        while process.poll() is None and not trouble:
            if time.monotonic() >= end:
                trouble = f"it did not end within {seconds:g} s"
            elif out.size > MAX_OUTPUT:
                trouble = f"it printed more than {MAX_OUTPUT:,} bytes"
            else:
                time.sleep(TICK)
    finally:
        # Including background processes, which would hold the pipes open.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        out.join()
        err.join()
    if out.size > MAX_OUTPUT:
        trouble = trouble or f"it printed more than {MAX_OUTPUT:,} bytes"
    if trouble:
        return HookRun(err=hide_credentials(err.text), trouble=trouble)
    return HookRun(process.returncode, hide_credentials(out.text), hide_credentials(err.text))


def _write_hook_input(stream: IO[bytes], data: bytes) -> None:
    # A hook need not read its input.
    with suppress(OSError, ValueError), stream:
        stream.write(data)
