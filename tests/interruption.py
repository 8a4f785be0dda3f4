"""Cancels the work of a thread, as Temporal cancels an activity that runs in one."""

import ctypes
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PATIENCE_SECONDS = 20
POLL_SECONDS = 0.05


class Interrupted(BaseException):
    """An exception like the one that Temporal raises in the thread of a cancelled activity."""


@contextmanager
def interrupted_once(condition: Callable[[], object]) -> Iterator[None]:
    """Raise `Interrupted` in the calling thread as soon as the condition is true."""
    thread = ctypes.c_ulong(threading.get_ident())

    def interrupt() -> None:
        ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, ctypes.py_object(Interrupted))

    with done_once(condition, interrupt):
        yield


@contextmanager
def done_once(condition: Callable[[], object], act: Callable[[], object]) -> Iterator[None]:
    """Act in another thread as soon as the condition is true, unless the block ends before."""
    ended = threading.Event()

    def watch() -> None:
        for _ in range(int(PATIENCE_SECONDS / POLL_SECONDS)):
            if ended.wait(POLL_SECONDS):
                return
            if condition():
                act()
                return

    watching = threading.Thread(target=watch, daemon=True)
    watching.start()
    try:
        yield
    finally:
        ended.set()
        watching.join()
