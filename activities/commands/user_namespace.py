"""The user namespace of commands whose worker runs as root.

The sandbox's user is a user of the machine: the worker's, if bubblewrap makes the namespace. The
kernel lets root's uid write some of its settings without any capability. So a worker that is root
makes a namespace in which the sandbox's user is `nobody`, and runs bubblewrap as `nobody` too.
Root has a number in it as well, since bubblewrap has to find what root owns and the sandbox shows.
"""

import errno
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NOBODY = 65534
"""The uid and gid on the machine of commands that a root worker runs."""
SANDBOX_USER = 1000
"""The uid and gid of commands inside the sandbox."""
_UNNAMED_ROOT = 65533
"""The uid and gid inside the sandbox of what belongs to the machine's root."""
_MAKE = f"""
import ctypes, os, sys
os.setgroups([])
os.setgid({NOBODY})
os.setuid({NOBODY})
if ctypes.CDLL(None, use_errno=True).unshare(0x10000000):
    sys.exit("no user namespace: " + os.strerror(ctypes.get_errno()))
print(flush=True)
sys.stdin.readline()
with open("/proc/sys/user/max_user_namespaces", "w") as most:
    most.write("0")
print(flush=True)
sys.stdin.readline()
"""
"""Script that makes a user namespace and, when its maps are written, forbids further ones in it."""


def is_machine_root() -> bool:
    """Return whether the worker is root, and not just in a user namespace without the machine's."""
    return os.geteuid() == 0 and Path("/proc/sys/kernel").stat().st_uid == 0


def is_readable(path: Path) -> bool:
    """Return whether commands may read what the worker shows them; only a root worker's may not."""
    if not is_machine_root():
        return True
    status = path.stat()
    needed = stat.S_IROTH | (stat.S_IXOTH if path.is_dir() else 0)
    return status.st_uid == NOBODY or status.st_mode & needed == needed


@contextmanager
def nobody_namespace() -> Iterator[int]:
    """Yield the descriptor of a user namespace for one command.

    Each command has its own, since the kernel counts processes by namespace and user. Raises
    OSError: The worker may not make it; the message says why.
    """
    maker = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _MAKE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={},
    )
    assert maker.stdin and maker.stdout and maker.stderr
    try:
        if maker.stdout.readline():
            for kind in ("uid", "gid"):
                maps = f"{SANDBOX_USER} {NOBODY} 1\n{_UNNAMED_ROOT} 0 1\n"
                Path(f"/proc/{maker.pid}/{kind}_map").write_text(maps)
            maker.stdin.write(b"\n")
            maker.stdin.flush()
        if not maker.stdout.readline():
            why = maker.stderr.read().decode(errors="replace").strip().rpartition("\n")[2]
            raise OSError(f"root cannot run commands as the user nobody: {why}")
        descriptor = os.open(f"/proc/{maker.pid}/ns/user", os.O_RDONLY)
    finally:
        maker.kill()
        maker.communicate()
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def give_to_nobody(folder: Path) -> None:
    """Make `nobody` own the folder and everything in it, links themselves included.

    Nothing else may write to it meanwhile. What is nested more deeply than any path names was
    written by commands, and is theirs. Raises PermissionError: The user namespace of the worker
    does not have that user.
    """
    pending = [str(folder)]
    try:
        os.chown(folder, NOBODY, NOBODY)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        raise PermissionError(
            f"the worker's user namespace has no user {NOBODY}: map it in /proc/self/uid_map, or "
            "run the worker as an ordinary user"
        ) from None
    while pending:
        try:
            with os.scandir(pending.pop()) as entries:
                for entry in entries:
                    if entry.stat(follow_symlinks=False).st_uid != NOBODY:
                        os.chown(entry.path, NOBODY, NOBODY, follow_symlinks=False)
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(entry.path)
        except OSError as error:
            if error.errno != errno.ENAMETOOLONG:
                raise
