"""The processes of a command and the memory that they hold together, seen from outside.

A page that several processes share counts once, whether it belongs to a mapping, to a file in the
sandbox's memory, or to a file without a name (memfd).
"""

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

SHARED_SECONDS = 0.25
"""Least time between two counts of shared memory, which read much."""


class MemoryUse:
    """Counts the descendants of a process and their memory.

    Args:
        folder: The folder that descendants in the sandbox see at `inside`.
        inside: Its path in the sandbox.
        in_memory: Paths of the file systems that the sandbox has in memory.
    """

    def __init__(self, pid: int, folder: Path, inside: str, in_memory: Sequence[str]) -> None:
        self._pid, self._folder, self._inside, self._in_memory = pid, folder, inside, in_memory
        self._machine_shared = _machine_shared_bytes()
        self._look_again = 0.0

    def count(self, most_processes: int, most_bytes: int) -> tuple[int, int]:
        """Return the number of descendants, up to `most_processes` + 2, and their bytes.

        Shared mappings are left out as long as they cannot bring the bytes above `most_bytes`.
        Whatever others on the machine free must not hide them: growth counts from the least seen.
        """
        page, used = os.sysconf("SC_PAGE_SIZE"), 0
        pids = list(descendant_pids(self._pid, most_processes + 2))
        for each in pids:
            with suppress(OSError, ValueError, IndexError):
                pages = Path(f"/proc/{each}/statm").read_text().split()
                used += (int(pages[1]) - int(pages[2])) * page
        used += self._files_in_memory_bytes(pids)
        machine_shared = _machine_shared_bytes()
        self._machine_shared = min(self._machine_shared, machine_shared)
        now, grown = time.monotonic(), machine_shared - self._machine_shared
        if used > most_bytes or used + grown <= most_bytes or now < self._look_again:
            return len(pids), used
        shared = _shared_mapping_bytes(pids)
        self._look_again = time.monotonic() + SHARED_SECONDS
        return len(pids), used + shared

    def _files_in_memory_bytes(self, pids: list[int]) -> int:
        """Return the size of the sandbox's file systems in memory."""
        for pid in pids:
            root = Path(f"/proc/{pid}/root")
            with suppress(OSError):
                # bubblewrap's own processes have the machine's root until the sandbox is complete.
                if not os.path.samefile(root / self._inside.lstrip("/"), self._folder):  # noqa: PTH121
                    continue
                used = [os.statvfs(root / path.lstrip("/")) for path in self._in_memory]
                return sum((each.f_blocks - each.f_bfree) * each.f_frsize for each in used)
        return 0


def descendant_pids(pid: int, most: int) -> Iterator[int]:
    pending = [pid]
    while pending and most > 0:
        with suppress(OSError):
            for task in os.listdir(f"/proc/{pending[-1]}/task"):  # noqa: PTH208
                children = Path(f"/proc/{pending[-1]}/task/{task}/children").read_text().split()
                for child in map(int, children):
                    most -= 1
                    pending.insert(0, child)
                    yield child
        pending.pop()


def _machine_shared_bytes() -> int:
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("Shmem:"):
            return int(line.split()[1]) * 1024
    return 0


def _shared_mapping_bytes(pids: list[int]) -> int:
    """Return the bytes of memory files without a name that the processes have open or mapped."""
    descriptor = os.memfd_create("device")
    device = os.fstat(descriptor).st_dev
    os.close(descriptor)
    opened, mapped = dict[int, int](), 0
    for pid in pids:
        with suppress(OSError):
            for name in os.listdir(f"/proc/{pid}/fd"):  # noqa: PTH208
                with suppress(OSError):
                    status = Path(f"/proc/{pid}/fd/{name}").stat()
                    if status.st_dev == device:
                        opened[status.st_ino] = status.st_blocks * 512
    for pid in pids:
        with suppress(OSError):
            mapped += sum(
                size for inode, size in _mapping_shares(pid, device) if inode not in opened
            )
    return sum(opened.values()) + mapped


def _mapping_shares(pid: int, device: int) -> Iterator[tuple[int, int]]:
    """Yield inode and this process's share of the bytes of its mappings of a device."""
    shown, inode = f"{os.major(device):02x}:{os.minor(device):02x}", 0
    for line in Path(f"/proc/{pid}/smaps").read_text().splitlines():
        words = line.split(maxsplit=5)
        if not words[0].endswith(":"):
            inode = int(words[4]) if words[3] == shown else 0
        elif inode and words[0] == "Pss:":
            yield inode, int(words[1]) * 1024
