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
from activities.stores.errors import StoreAway, StoreNewer, StoreRejects
from protocol.text import one_line

TRIES = 2
PAUSE = 0.5
TURN = 0.25
SECONDS = 12.0
"""How long one try may take; a server that is frozen answers nothing, not even an error."""
BUSY_SECONDS = 8
NOT_TAKEN = (DataError, IntegrityError, ProgrammingError)
"""What is wrong with the work itself, if it is still so at the second try."""
TO_MEND = ("42501", "42P01")
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


class Store:
    """The store of a workspaces root. Cheap to make: what is opened is kept by the process."""

    def __init__(self, root: Root, url: str | None = None) -> None:
        self._root = root
        given = url or os.environ.get(VARIABLE, "").strip()
        # Quoted: a folder's name may hold what ends the path of an address.
        own = quote(str(root.path / ".longhaul" / "store.sqlite3"))
        self.address = given or f"sqlite:///{own}"
        """Which store it is, for what is kept by store in memory; may hold a password."""

    @property
    def is_begun(self) -> bool:
        """Whether it may hold anything: a file that is not there yet holds nothing."""
        try:
            url = _parsed(self.address)
        except StoreAway:
            return True
        return url.drivername != "sqlite" or Path(url.database or "").exists()

    @property
    def shown(self) -> str:
        """Its address, without a password."""
        try:
            url = _parsed(self.address)
        except StoreAway:
            return VARIABLE
        if url.drivername == "sqlite":
            # As people write a path; in part percent-encoded it could not be copied.
            return f"sqlite:///{url.database or ''}"
        return url.render_as_string(hide_password=True)

    def run(self, work: Callable[[Connection], T], *, seconds: float = SECONDS) -> T:
        """Do the work in one transaction: all of it happens or nothing.

        A second try follows a first that failed, so the work must do no harm when it is repeated.

        Raises:
            StoreAway: the store did not answer.
            StoreRejects: it answered, and does not take this work.
            StoreRefuses: the work raised it; nothing was written.
        """
        return self._tried(work, seconds, reads=False)

    def read(self, work: Callable[[Connection], T], *, seconds: float = SECONDS) -> T:
        """The same for work that only reads: it waits for nobody who writes."""
        return self._tried(work, seconds, reads=True)

    def _tried(self, work: Callable[[Connection], T], seconds: float, *, reads: bool) -> T:
        problem: Exception | None = None
        for attempt in range(TRIES):
            if attempt:
                time.sleep(PAUSE)
            try:
                return _within(seconds, lambda: self._transaction(work, reads=reads))
            except (DBAPIError, PoolTimeout, OSError) as error:
                problem = error
                # The file may have been moved or the server replaced: begin from nothing.
                self._forget()
        if isinstance(problem, NOT_TAKEN) and _state(problem) not in TO_MEND:
            raise StoreRejects(
                f"the store {self.shown} does not take this ({_why(problem)})."
            ) from problem
        if isinstance(problem, DBAPIError) and _sqlite_code(problem) in DAMAGED:
            raise StoreAway(
                f"the file of the store {self.shown} is damaged ({_why(problem)}). Stop the "
                "workers, move it away with the files -wal and -shm beside it, and put a backup "
                "in its place (docs/operations.md, Backups)."
            ) from problem
        if isinstance(problem, DBAPIError) and (mend := UNWRITABLE.get(_sqlite_code(problem))):
            raise StoreAway(
                f"the store {self.shown} cannot be used ({_why(problem)}). {mend}, or correct "
                f"{VARIABLE}."
            ) from problem
        raise StoreAway(
            f"the store {self.shown} does not answer ({_why(problem)}). Start or mend it, or "
            f"correct {VARIABLE}."
        ) from problem

    def _transaction(self, work: Callable[[Connection], T], *, reads: bool) -> T:
        with self._engine().connect() as connection:
            connection.execution_options(**{READS: reads})
            with connection.begin():
                return work(connection)

    def _engine(self) -> Engine:
        from activities.stores.upgrade import migrate  # noqa: PLC0415 - loads Alembic, a second

        with _opening:
            # What is open still takes writes when the file was removed or another one was put in
            # its place, and nobody else would ever see them.
            opened = _engines.get(self.address)
            if opened and opened[1] != self._file():
                self._forget()
                opened = None
            if opened is None:
                engine = _make(_parsed(self.address))
                try:
                    migrate(engine, self._root.path / ".longhaul" / "store.lock")
                except StoreNewer as error:
                    engine.dispose()
                    raise StoreAway(f"the store {self.shown}: {error}") from None
                except BaseException:
                    engine.dispose()
                    raise
                opened = _engines[self.address] = engine, self._file()
            return opened[0]

    def _file(self) -> object:
        """Which file is at the address now; None where there is none, as for a server."""
        url = _parsed(self.address)
        if url.drivername != "sqlite":
            return None
        try:
            found = Path(url.database or "").stat()
        except OSError:
            return None
        return found.st_dev, found.st_ino

    def _forget(self) -> None:
        # Without the lock, which a thread that was left behind may hold.
        opened = _engines.pop(self.address, None)
        if opened:
            opened[0].dispose()


def check_address() -> None:
    """Look at the address that the environment gives, if it does, and ask nobody.

    Raises:
        StoreAway: it is none, or its driver is not installed.
    """
    if given := os.environ.get(VARIABLE, "").strip():
        _make(_parsed(given)).dispose()


def _parsed(given: str) -> URL:
    try:
        url = make_url(given)
    except (ArgumentError, ValueError):  # the latter for a port that is no number
        raise StoreAway(
            f"{VARIABLE} is no address of a store; expected such as "
            "postgresql://user:password@host/database."
        ) from None
    if url.drivername in ("postgres", "postgresql"):
        return url.set(drivername="postgresql+psycopg")
    if url.drivername not in ("sqlite", "postgresql+psycopg"):
        raise StoreAway(
            f"{VARIABLE} names {url.drivername}; the store is SQLite or PostgreSQL, such as "
            "postgresql://user:password@host/database."
        )
    if url.drivername == "sqlite" and url.database in (None, "", ":memory:"):
        raise StoreAway(
            f"{VARIABLE} names a database in memory, which is lost with its process; expected a "
            "file or a server, such as sqlite:////srv/longhaul/store.sqlite3 or "
            "postgresql://user:password@host/database."
        )
    return url


def _make(url: URL) -> Engine:
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
        raise StoreAway(
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


def _within(seconds: float, work: Callable[[], T]) -> T:
    """The result of the work, from a thread that is left behind when it takes too long."""
    outcome: list[T] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            outcome.append(work())
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run, daemon=True, name="store")
    thread.start()
    until = time.monotonic() + seconds
    # In turns: the cancellation of an activity comes in between.
    while thread.is_alive() and (left := until - time.monotonic()) > 0:
        thread.join(min(left, TURN))
    if failed:
        raise failed[0]
    if not outcome:
        raise TimeoutError(f"no answer in {seconds:g} s")
    return outcome[0]


def _sqlite_code(problem: DBAPIError) -> int:
    """SQLite's primary result code; 0 for another database."""
    code: int = getattr(problem.orig, "sqlite_errorcode", 0)
    return code & 0xFF


def _state(problem: DBAPIError) -> str | None:
    """The SQL state, where the database gives one."""
    return getattr(problem.orig, "sqlstate", None)


def _why(problem: Exception | None) -> str:
    cause = problem.orig if isinstance(problem, DBAPIError) and problem.orig else problem
    return one_line(str(cause), 200)
