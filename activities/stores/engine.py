"""The relational store: opened once a process, brought up to date, asked twice at most.

`LONGHAUL_STORE_URL` names it; without that it is an SQLite file in the workspaces root.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import (
    ArgumentError,
    DataError,
    DBAPIError,
    IntegrityError,
    NoSuchModuleError,
    ProgrammingError,
)
from sqlalchemy.exc import TimeoutError as PoolTimeout

from activities.checkpoints import Root
from activities.stores.errors import StoreRejectedError, StoreTooNewError, StoreUnavailableError
from protocol.text import one_line

TRIES = 2
PAUSE = 0.5
TURN = 0.25
SECONDS = 12.0
"""How long one try may take; a server that is frozen answers nothing, not even an error."""
BUSY_SECONDS = 8
REJECTED_ERRORS = (DataError, IntegrityError, ProgrammingError)
"""What is wrong with the work itself, if it is still so at the second try."""
MENDABLE_STATES = ("42501", "42P01")
"""SQL states among these that a person can change: no right to a table, and no such table."""
DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
"""What SQLite says of a file that another try cannot read either."""
UNWRITABLE = {
    sqlite3.SQLITE_FULL: "Make room on its disk",
    sqlite3.SQLITE_IOERR: "Make room on its disk, or mend that",
    sqlite3.SQLITE_READONLY: "Let the workers write to the file and its folder",
    sqlite3.SQLITE_CANTOPEN: "Make its folder, and let the workers write to it",
}
"""What to do about what else SQLite says of a file."""
READS = "longhaul_reads"
"""Execution option of a connection whose transactions only read."""
VARIABLE = "LONGHAUL_STORE_URL"

T = TypeVar("T")
_engines: dict[str, tuple[Engine, object]] = {}
"""With the file that each has opened."""
_opening = threading.Lock()


class RelationalStore:
    """The store of a workspaces root. Cheap to make: what is opened is kept by the process."""

    def __init__(self, root: Root, url: str | None = None) -> None:
        self._root = root
        configured = url or os.environ.get(VARIABLE, "").strip()
        # Quoted: a folder's name may hold what ends the path of an address.
        path = quote(str(root.path / ".longhaul" / "store.sqlite3"))
        self.address = configured or f"sqlite:///{path}"
        """Which store it is, for what is kept by store in memory; may hold a password."""

    @property
    def may_hold_data(self) -> bool:
        """Whether it may hold anything: a file that is not there yet holds nothing."""
        try:
            url = _parse_address(self.address)
        except StoreUnavailableError:
            return True
        return url.drivername != "sqlite" or Path(url.database or "").exists()

    @property
    def display_address(self) -> str:
        """Its address, without a password."""
        try:
            url = _parse_address(self.address)
        except StoreUnavailableError:
            return VARIABLE
        if url.drivername == "sqlite":
            # As people write a path; in part percent-encoded it could not be copied.
            return f"sqlite:///{url.database or ''}"
        return url.render_as_string(hide_password=True)

    def run(self, work: Callable[[Connection], T], *, seconds: float = SECONDS) -> T:
        """Do the work in one transaction: all of it happens or nothing.

        A second try follows a first that failed, so the work must do no harm when it is repeated.

        Raises:
            StoreUnavailableError: the store did not answer.
            StoreRejectedError: it answered, and does not take this work.
            StoreRefusedError: the work raised it; nothing was written.
        """
        return self._run_with_retry(work, seconds, reads=False)

    def read(self, work: Callable[[Connection], T], *, seconds: float = SECONDS) -> T:
        """The same for work that only reads: it waits for nobody who writes."""
        return self._run_with_retry(work, seconds, reads=True)

    def _run_with_retry(self, work: Callable[[Connection], T], seconds: float, *, reads: bool) -> T:
        problem: Exception | None = None
        for attempt in range(TRIES):
            if attempt:
                time.sleep(PAUSE)
            try:
                return _run_within(seconds, lambda: self._run_transaction(work, reads=reads))
            except (DBAPIError, PoolTimeout, OSError) as error:
                problem = error
                # The file may have been moved or the server replaced: begin from nothing.
                self._dispose_engine()
        if isinstance(problem, REJECTED_ERRORS) and _sql_state(problem) not in MENDABLE_STATES:
            raise StoreRejectedError(
                f"the store {self.display_address} does not take this ({_error_text(problem)})."
            ) from problem
        if isinstance(problem, DBAPIError) and _sqlite_code(problem) in DAMAGED:
            raise StoreUnavailableError(
                f"the file of the store {self.display_address} is damaged "
                f"({_error_text(problem)}). Stop the "
                "workers, move it away with the files -wal and -shm beside it, and put a backup "
                "in its place (docs/operations.md, Backups)."
            ) from problem
        if isinstance(problem, DBAPIError) and (mend := UNWRITABLE.get(_sqlite_code(problem))):
            raise StoreUnavailableError(
                f"the store {self.display_address} cannot be used "
                f"({_error_text(problem)}). {mend}, or correct "
                f"{VARIABLE}."
            ) from problem
        raise StoreUnavailableError(
            f"the store {self.display_address} does not answer ({_error_text(problem)}). "
            "Start or mend it, or "
            f"correct {VARIABLE}."
        ) from problem

    def _run_transaction(self, work: Callable[[Connection], T], *, reads: bool) -> T:
        with self._open_engine().connect() as connection:
            connection.execution_options(**{READS: reads})
            with connection.begin():
                return work(connection)

    def _open_engine(self) -> Engine:
        from activities.stores.upgrade import migrate_store  # noqa: PLC0415 - loads Alembic, a second

        with _opening:
            # What is open still takes writes when the file was removed or another one was put in
            # its place, and nobody else would ever see them.
            opened = _engines.get(self.address)
            if opened and opened[1] != self._file_identity():
                self._dispose_engine()
                opened = None
            if opened is None:
                engine = _create_engine(_parse_address(self.address))
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
        """Which file is at the address now; None where there is none, as for a server."""
        url = _parse_address(self.address)
        if url.drivername != "sqlite":
            return None
        try:
            status = Path(url.database or "").stat()
        except OSError:
            return None
        return status.st_dev, status.st_ino

    def _dispose_engine(self) -> None:
        # Without the lock, which a thread that was left behind may hold.
        opened = _engines.pop(self.address, None)
        if opened:
            opened[0].dispose()


def check_store_address() -> None:
    """Look at the address that the environment gives, if it does, and ask nobody.

    Raises:
        StoreUnavailableError: it is none, or its driver is not installed.
    """
    if address := os.environ.get(VARIABLE, "").strip():
        _create_engine(_parse_address(address)).dispose()


def _parse_address(address: str) -> URL:
    try:
        url = make_url(address)
    except (ArgumentError, ValueError):  # the latter for a port that is no number
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
    except (ModuleNotFoundError, NoSuchModuleError):
        raise StoreUnavailableError(
            f"{VARIABLE} names PostgreSQL, whose driver is not installed: run "
            ".venv/bin/python -m pip install '.[postgres]' in the checkout."
        ) from None


def _prepare_sqlite(connection: Any, _record: Any) -> None:
    # Transactions are ours to begin: the driver's own begin comes too late for a lock.
    connection.isolation_level = None
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}")


def _begin_sqlite(connection: Connection) -> None:
    if connection.get_execution_options().get(READS):
        connection.exec_driver_sql("BEGIN")
    else:
        # At once, so that two who read before they write wait for each other instead of failing.
        connection.exec_driver_sql("BEGIN IMMEDIATE")


def _run_within(seconds: float, work: Callable[[], T]) -> T:
    """The result of the work, from a thread that is left behind when it takes too long."""
    outcome: list[T] = []
    failed: list[BaseException] = []

    def run_work() -> None:
        try:
            outcome.append(work())
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run_work, daemon=True, name="store")
    thread.start()
    until = time.monotonic() + seconds
    # In turns: the cancellation of an activity comes in between.
    while thread.is_alive() and (remaining := until - time.monotonic()) > 0:
        thread.join(min(remaining, TURN))
    if failed:
        raise failed[0]
    if not outcome:
        raise TimeoutError(f"no answer in {seconds:g} s")
    return outcome[0]


def _sqlite_code(problem: DBAPIError) -> int:
    """SQLite's primary result code; 0 for another database."""
    code: int = getattr(problem.orig, "sqlite_errorcode", 0)
    return code & 0xFF


def _sql_state(problem: DBAPIError) -> str | None:
    """The SQL state, where the database gives one."""
    return getattr(problem.orig, "sqlstate", None)


def _error_text(problem: Exception | None) -> str:
    cause = problem.orig if isinstance(problem, DBAPIError) and problem.orig else problem
    return one_line(str(cause), 200)
