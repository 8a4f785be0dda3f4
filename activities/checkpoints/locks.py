"""A file lock between processes and threads; it imports nothing of ours (`embedded_child`)."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def file_lock(path: Path, *, seconds: float, shared: bool = False) -> Iterator[None]:
    """Hold a flock on the file at `path`, creating the file if necessary.

    It is exclusive unless `shared`.

    Raises TimeoutError (an OSError) after `seconds`: a frozen holder must not block everybody.
    """
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    try:
        until = time.monotonic() + seconds
        while True:
            try:
                fcntl.flock(handle, kind | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= until:
                    raise TimeoutError(
                        f"{path} has been locked for {seconds:g} s, perhaps by a worker that is "
                        "frozen: wake it or end it"
                    ) from None
                time.sleep(0.01)
        try:
            yield
        finally:
            # Unlock explicitly: a forked child may hold a copy of the handle.
            fcntl.flock(handle, fcntl.LOCK_UN)
    finally:
        os.close(handle)
