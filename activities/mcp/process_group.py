"""Stands between the worker and a server's process, so that neither outlives the other.

Run as a script: `process_group.py <pid of the worker> <program> <argument>…`. It leads a process
group. When the server ends it takes the rest of the group along and ends in the same way; when the
worker ends, however that happens, it kills the group. Standard streams are the server's.
"""

import ctypes
import os
import signal
import subprocess
import sys
import time

PR_SET_PDEATHSIG = 1
CANNOT_START = 127
GRACE = 0.5
"""Seconds for a server to end by itself."""


def end_process_group(status: int) -> None:
    """End all processes of the group; its leader is this process."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.killpg(0, signal.SIGTERM)
    sys.stderr.flush()
    if status < 0:
        os.killpg(0, signal.SIGKILL)
    os._exit(status)


def kill_mcp_process_group(*_: object) -> None:
    """Kill the group: the worker died, which also closed the server's standard input."""
    time.sleep(GRACE)
    os.killpg(0, signal.SIGKILL)


def main() -> None:
    worker, command = int(sys.argv[1]), sys.argv[2:]
    signal.signal(signal.SIGTERM, kill_mcp_process_group)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != worker:  # it ended before this could run
        kill_mcp_process_group()
    try:
        server = subprocess.Popen(command)
    except OSError as error:
        print(f"{command[0]}: {error.strerror}", file=sys.stderr)
        os._exit(CANNOT_START)
    # The pipes belong to the server: they close when the server closes them.
    os.close(0)
    os.close(1)
    end_process_group(server.wait())


if __name__ == "__main__":
    main()
