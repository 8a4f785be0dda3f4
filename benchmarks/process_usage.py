"""Starts processes of this repository, reads from /proc what they use, and limits it."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
TICKS = os.sysconf("SC_CLK_TCK")
_CGROUPS = Path("/sys/fs/cgroup")
_PERIOD = 20_000
"""Microseconds: short, so that a limited process is slow rather than stopped for long."""


@asynccontextmanager
async def python_process(
    arguments: list[str], environment: dict[str, str]
) -> AsyncIterator[tuple[int, str]]:
    """Start a Python process of this repository; yield its id and first line of output."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, *arguments, cwd=REPOSITORY, env=os.environ | environment,
        stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout
    try:
        line = await process.stdout.readline()
        if not line:
            raise SystemExit(f"error: {arguments} ended before it was ready")
        # Drain further output, or it would fill the pipe and block the process.
        draining = asyncio.create_task(process.stdout.read())
        yield process.pid, line.decode()
        draining.cancel()
    finally:
        process.kill()
        await process.wait()


def process_cpu_seconds(process: int) -> float:
    """Return CPU seconds used so far."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def process_megabytes(process: int) -> float:
    """Return resident memory in megabytes."""
    status = Path(f"/proc/{process}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


def child_process_ids(parent: int) -> list[int]:
    """Return the ids of a process's children, also of those that its threads started."""
    threads = Path(f"/proc/{parent}/task").iterdir()
    return [int(pid) for thread in threads for pid in (thread / "children").read_text().split()]


def process_name(process: int) -> str:
    return Path(f"/proc/{process}/comm").read_text().strip()


@contextmanager
def limited_process_cpu(process: int, share: float) -> Iterator[None]:
    """Limit a process to this share of a core, by a control group of its own.

    Raises SystemExit: the machine has no such groups, or the user may not create one.
    """
    unified = (_CGROUPS / "cgroup.controllers").exists()
    group = (_CGROUPS if unified else _CGROUPS / "cpu") / f"longhaul-benchmark-{process}"
    quota = round(share * _PERIOD)
    try:
        group.mkdir()
        if unified:
            (group / "cpu.max").write_text(f"{quota} {_PERIOD}")
        else:
            (group / "cpu.cfs_period_us").write_text(str(_PERIOD))
            (group / "cpu.cfs_quota_us").write_text(str(quota))
        (group / "cgroup.procs").write_text(str(process))
    except OSError as error:
        raise SystemExit(
            f"error: {group}: {error.strerror}; --share needs root and Linux control groups"
        ) from None
    try:
        yield
    finally:
        # A group can be removed once its process is in another one, or has ended.
        with suppress(ProcessLookupError):
            (group.parent / "cgroup.procs").write_text(str(process))
        group.rmdir()
