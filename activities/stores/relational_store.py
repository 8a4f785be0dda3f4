"""The relational store: opened once per process, migrated on opening, tried twice per request.

`LONGHAUL_STORE_URL` names it; the default is an SQLite file in the workspaces root.
"""

import os
import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from sqlalchemy import Connection, Engine, create_engine, event, exc
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import TimeoutError as PoolTimeout

from activities.checkpoints import Root
from activities.stores.store_errors import (
    StoreRejectedError,
    StoreTooNewError,
    StoreUnavailableError,
)
from protocol.short_text import one_line

TRIES = 2
PAUSE = 0.5
TURN = 0.25
SECONDS = 12.0
"""Time limit of one try; a frozen server sends nothing, not even an error."""
BUSY_SECONDS = 8
REJECTED_ERRORS = (exc.DataError, exc.IntegrityError, exc.ProgrammingError)
"""Errors that are the fault of the work itself if they recur at the second try."""
MENDABLE_STATES = ("42501", "42P01")
"""SQL states among these that a person can fix: no right to a table, and no such table."""
DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
"""SQLite errors for a file that no retry can read."""
UNWRITABLE = {
    sqlite3.SQLITE_FULL: "Make room on its disk",
    sqlite3.SQLITE_IOERR: "Make room on its disk, or mend that",
    sqlite3.SQLITE_READONLY: "Let the workers write to the file and its folder",
    sqlite3.SQLITE_CANTOPEN: "Make its folder, and let the workers write to it",
}
"""Remedies for SQLite errors of an unusable file."""
READS = "longhaul_reads"
"""Execution option of a connection whose transactions only read."""
VARIABLE = "LONGHAUL_STORE_URL"

T = TypeVar("T")
_engines: dict[str, tuple[Engine, object]] = {}
"""Engines by address, each with the identity of the file it opened."""
_opening = threading.Lock()


class RelationalStore:
    """The store of a workspaces root. Cheap to create: the process caches open engines."""

    def __init__(self, root: Root, url: str | None = None) -> None:
        self._root = root
        configured = url or os.environ.get(VARIABLE, "").strip()
        # Quoted, since a folder's name may have characters that end the path of a URL.
        path = quote(str(root.path / ".longhaul" / "store.sqlite3"))
        self.address = configured or f"sqlite:///{path}"
        """Key for in-memory caches per store; may include a password."""

    @property
    def may_hold_data(self) -> bool:
        """Whether it may hold data: a file that does not exist holds none."""
        try:
            url = _parse_store_address(self.address)
        except StoreUnavailableError:
            return True
        return url.drivername != "sqlite" or Path(url.database or "").exists()

    @property
    def display_address(self) -> str:
        try:
            url = _parse_store_address(self.address)
        except StoreUnavailableError:
            return VARIABLE
        if url.drivername == "sqlite":
            # A plain path: a percent-encoded one could not be copied.
            return f"sqlite:///{url.database or ''}"
        return url.render_as_string(hide_password=True)

    def run(self, work: Callable[[Connection], T], *, seconds: float = SECONDS) -> T:
        """Do the work in one atomic transaction.

        A failed first try is repeated, so the work must be safe to repeat.

        Raises:
            StoreUnavailableError: The store did not answer.
            StoreRejectedError: It answered, and does not accept this work.
            StoreRefusedError: Raised by the work itself; nothing was written.
        """
        return self._run_with_retry(work, seconds, reads=False)

    def read(self, work: Callable[[Connection], T], *, seconds: float = SECONDS) -> T:
        """Like `run`, for work that only reads: it never waits for writers."""
        return self._run_with_retry(work, seconds, reads=True)

    def _run_with_retry(self, work: Callable[[Connection], T], seconds: float, *, reads: bool) -> T:
        problem: Exception | None = None
        for attempt in range(TRIES):
            if attempt:
                time.sleep(PAUSE)
            try:
                return _run_store_work_within(
                    seconds, lambda given_up: self._run_transaction(work, given_up, reads=reads)
                )
            except (exc.DBAPIError, PoolTimeout, OSError) as error:
                problem = error
                # The file may have been moved or the server replaced: open the store anew.
                self._dispose_engine()
        if (
            isinstance(problem, REJECTED_ERRORS)
            and getattr(problem.orig, "sqlstate", None) not in MENDABLE_STATES
        ):
            raise StoreRejectedError(
                f"the store {self.display_address} does not take this "
                f"({_store_error_text(problem)})."
            ) from problem
        if isinstance(problem, exc.DBAPIError) and _sqlite_code(problem) in DAMAGED:
            raise StoreUnavailableError(
                f"the file of the store {self.display_address} is damaged "
                f"({_store_error_text(problem)}). Stop the workers, move it away with the files "
                "-wal and -shm beside it, and put a backup in its place "
                "(docs/workspaces-root.md, Backups)."
            ) from problem
        if isinstance(problem, exc.DBAPIError) and (mend := UNWRITABLE.get(_sqlite_code(problem))):
            raise StoreUnavailableError(
                f"the store {self.display_address} cannot be used "
                f"({_store_error_text(problem)}). {mend}, or correct {VARIABLE}."
            ) from problem
        raise StoreUnavailableError(
            f"the store {self.display_address} does not answer ({_store_error_text(problem)}). "
            f"Start or mend it, or correct {VARIABLE}."
        ) from problem

    def _run_transaction(
        self, work: Callable[[Connection], T], given_up: threading.Event, *, reads: bool
    ) -> T:
        with self._open_engine().connect() as connection:
            connection.execution_options(**{READS: reads})
            with connection.begin():
                result = work(connection)
                if given_up.is_set():
                    # Its caller went on long ago, as if nothing were written.
                    raise TimeoutError
                return result

    def _open_engine(self) -> Engine:
        from activities.stores.store_migration import migrate_store  # noqa: PLC0415 - loads Alembic, a second

        with _opening:
            # An open engine still writes to a file that was removed or replaced, where nobody would
            # see the data.
            opened = _engines.get(self.address)
            if opened and opened[1] != self._file_identity():
                self._dispose_engine()
                opened = None
            if opened is None:
                engine = _create_engine(_parse_store_address(self.address))
                try:
                    migrate_store(engine, self._root.path / ".longhaul" / "store.lock")
                except StoreTooNewError as error:
                    engine.dispose()
                    raise StoreUnavailableError(
                        f"the store {self.display_address}: {error}"
                    ) from None
                except BaseException:
                    engine.dispose()
                    raise
                opened = _engines[self.address] = engine, self._file_identity()
            return opened[0]

    def _file_identity(self) -> object:
        """Return device and inode of the file at the address; None if missing or for a server."""
        url = _parse_store_address(self.address)
        if url.drivername != "sqlite":
            return None
        try:
            status = Path(url.database or "").stat()
        except OSError:
            return None
        return status.st_dev, status.st_ino

    def _dispose_engine(self) -> None:
        # Without the lock, since an abandoned thread may hold it.
        opened = _engines.pop(self.address, None)
        if opened:
            opened[0].dispose()


def check_relational_store_address() -> None:
    """Check the address in the environment, if any, without connecting.

    Raises:
        StoreUnavailableError: The address is invalid, or its driver is not installed.
    """
    if address := os.environ.get(VARIABLE, "").strip():
        _create_engine(_parse_store_address(address)).dispose()


def _parse_store_address(address: str) -> URL:
    try:
        url = make_url(address)
    except (exc.ArgumentError, ValueError):  # ValueError: the port is not a number
        raise StoreUnavailableError(
            f"{VARIABLE} is no address of a store; expected such as "
            "postgresql://user:password@host/database."
        ) from None
    if url.drivername in ("postgres", "postgresql"):
        return url.set(drivername="postgresql+psycopg")
    if url.drivername not in ("sqlite", "postgresql+psycopg"):
        raise StoreUnavailableError(
            f"{VARIABLE} names {url.drivername}; the store is SQLite or PostgreSQL, such as "
            "postgresql://user:password@host/database."
        )
    if url.drivername == "sqlite" and url.database in (None, "", ":memory:"):
        raise StoreUnavailableError(
            f"{VARIABLE} names a database in memory, which is lost with its process; expected a "
            "file or a server, such as sqlite:////srv/longhaul/store.sqlite3 or "
            "postgresql://user:password@host/database."
        )
    return url


def _create_engine(url: URL) -> Engine:
    if url.drivername == "sqlite":
        engine = create_engine(url, connect_args={"timeout": BUSY_SECONDS})
        event.listen(engine, "connect", _prepare_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
        return engine
    arguments: dict[str, Any] = {
        "connect_timeout": 5,
        "options": "-c lock_timeout=8000 -c statement_timeout=10000",
    }
    try:
        return create_engine(url, connect_args=arguments, pool_pre_ping=True, pool_timeout=8)
    except (ModuleNotFoundError, exc.NoSuchModuleError):
        raise StoreUnavailableError(
            f"{VARIABLE} names PostgreSQL, whose driver is not installed: run "
            ".venv/bin/python -m pip install '.[postgres]' in the checkout."
        ) from None


def _prepare_sqlite(connection: Any, _record: Any) -> None:
    # We begin transactions ourselves: the driver begins too late to take a lock.
    connection.isolation_level = None
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}")


def _begin_sqlite(connection: Connection) -> None:
    if connection.get_execution_options().get(READS):
        connection.exec_driver_sql("BEGIN")
    else:
        # Lock at once, so that two that read before they write wait instead of failing.
        connection.exec_driver_sql("BEGIN IMMEDIATE")


def _run_store_work_within(seconds: float, work: Callable[[threading.Event], T]) -> T:
    """Return the result of the work, run in a thread that is abandoned when time is up.

    The event is set then.
    """
    given_up = threading.Event()
    outcome: list[T] = []
    failed: list[BaseException] = []

    def run_work() -> None:
        try:
            outcome.append(work(given_up))
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run_work, daemon=True, name="store")
    thread.start()
    until = time.monotonic() + seconds
    # In short waits, so that a cancellation of the activity can interrupt.
    while thread.is_alive() and (remaining := until - time.monotonic()) > 0:
        thread.join(min(remaining, TURN))
    if failed:
        raise failed[0]
    if not outcome:
        given_up.set()
        raise TimeoutError(f"no answer in {seconds:g} s")
    return outcome[0]


def _sqlite_code(problem: exc.DBAPIError) -> int:
    """Return SQLite's primary result code; 0 for another database."""
    code: int = getattr(problem.orig, "sqlite_errorcode", 0)
    return code & 0xFF


def _store_error_text(problem: Exception | None) -> str:
    cause = problem.orig if isinstance(problem, exc.DBAPIError) and problem.orig else problem
    return one_line(str(cause), 200)
