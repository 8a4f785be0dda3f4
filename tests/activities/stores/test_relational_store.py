"""Opening a store: made at first use, tried twice, and said to be away when it is."""

import ctypes
import socket
import sqlite3
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Connection, insert, select, text

from activities.checkpoints import Root
from activities.stores.relational_store import RelationalStore
from activities.stores.schema import JOBS, METADATA
from activities.stores.store_errors import StoreRefusedError, StoreUnavailableError
from tests.activities.stores.filling import fill, requirement, statuses
from tests.full_disk import files_of_at_most
from tests.soak import patient


def test_the_default_is_a_file_in_the_workspaces_root(root: Root) -> None:
    fill(RelationalStore(root), [requirement(1)])
    assert (root.path / ".longhaul/store.sqlite3").is_file()


def test_the_migrations_make_the_tables_that_the_code_uses(store: RelationalStore) -> None:
    for _ in range(2):
        differences = store.run(lambda c: compare_metadata(MigrationContext.configure(c), METADATA))
        assert differences == []
        store._dispose_engine()


def test_a_file_that_was_taken_away_is_made_anew(root: Root, tmp_path: Path) -> None:
    store = RelationalStore(root, f"sqlite:///{tmp_path / 'store.sqlite3'}")
    fill(store, [requirement(1)])
    for path in tmp_path.glob("store.sqlite3*"):
        path.unlink()
    # It is not written to the old open file, which nobody else would ever see.
    fill(store, [requirement(2)])
    store._dispose_engine()
    assert list(statuses(store)) == ["REQ-002"]


def test_a_store_of_a_later_version_is_left_alone(store: RelationalStore) -> None:
    store.run(lambda c: c.execute(text("UPDATE alembic_version SET version_num = '9999'")))
    store._dispose_engine()
    with pytest.raises(
        StoreUnavailableError, match="revision 9999, which this version does not know"
    ):
        store.run(lambda c: None)


def test_the_path_of_a_file_is_told_as_people_write_it(tmp_path: Path) -> None:
    root = Root.open(tmp_path / "thé vert", create=True)
    assert RelationalStore(root).display_address == f"sqlite:///{root.path}/.longhaul/store.sqlite3"


@pytest.mark.parametrize("damage", ["no database", "pages"])
def test_a_damaged_file_is_named_with_what_to_do(root: Root, damage: str) -> None:
    store = RelationalStore(root)
    fill(store, [requirement(number) for number in range(200)])
    store._dispose_engine()
    file = root.path / ".longhaul/store.sqlite3"
    size = file.stat().st_size
    with file.open("r+b") as opened:
        if damage == "pages":
            opened.seek(4096)
        opened.write(b"\xff" * (size - 4096))
    with pytest.raises(
        StoreUnavailableError, match=r"is damaged .* put a backup in its place"
    ) as caught:
        fill(store, [requirement(1)])
    assert str(file) in str(caught.value)


@pytest.mark.parametrize(
    ("address", "what"),
    [
        ("sqlite:///file:{root}/read-only?mode=ro&uri=true", "readonly .* Let the workers write"),
        ("sqlite:///{root}/no/such/folder", "unable to open .* Make its folder"),
        ("sqlite:///{root}/full", "I/O error.* Make room on its disk"),
    ],
)
def test_a_file_that_cannot_be_written_is_told_with_what_to_do(
    root: Root, address: str, what: str
) -> None:
    with closing(sqlite3.connect(root.path / "read-only")) as connection:
        connection.execute("PRAGMA user_version = 1")
    store = RelationalStore(root, address.format(root=root.path))
    with files_of_at_most(100), pytest.raises(StoreUnavailableError, match=what):
        fill(store, [requirement(1)])


def test_a_server_that_is_not_there_is_away_and_its_password_stays_secret(root: Root) -> None:
    tried: list[object] = []
    store = RelationalStore(root, "postgresql://me:secret@127.0.0.1:1/db")
    with pytest.raises(StoreUnavailableError, match="does not answer") as caught:
        store.run(tried.append)
    assert "secret" not in str(caught.value)
    assert "LONGHAUL_STORE_URL" in str(caught.value)


def test_a_server_that_never_answers_is_away_in_good_time(root: Root) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        store = RelationalStore(root, f"postgresql://me@127.0.0.1:{port}/db")
        began = time.monotonic()
        with pytest.raises(StoreUnavailableError, match="no answer in 1 s"):
            store.run(lambda c: None, seconds=1)
        assert time.monotonic() - began < patient(12)


def test_work_that_comes_too_late_writes_nothing(store: RelationalStore) -> None:
    is_told, tries = threading.Event(), list[threading.Thread]()
    store.run(lambda connection: None)

    def write_late(connection: Connection) -> None:
        tries.append(threading.current_thread())
        is_told.wait(10)
        connection.execute(insert(JOBS).values(job=f"late {len(tries)}", at=0))

    with pytest.raises(StoreUnavailableError, match=r"no answer in 0.3 s"):
        store.run(write_late, seconds=0.3)
    is_told.set()
    for thread in tries:
        thread.join(10)
    assert tries
    assert store.run(lambda connection: connection.execute(select(JOBS)).all()) == []


def test_who_waits_for_a_silent_server_can_be_cancelled(root: Root) -> None:
    ended: list[type[BaseException]] = []

    def ask() -> None:
        try:
            store.run(lambda c: None, seconds=30)
        except BaseException as error:
            ended.append(type(error))

    with socket.create_server(("127.0.0.1", 0)) as silent:
        store = RelationalStore(root, f"postgresql://me@127.0.0.1:{silent.getsockname()[1]}/db")
        asking = threading.Thread(target=ask, daemon=True)
        asking.start()
        silent.accept()
        # As Temporal cancels an activity that runs in a thread.
        ctypes.pythonapi.PyThreadState_SetAsyncExc(
            ctypes.c_ulong(asking.ident or 0), ctypes.py_object(KeyboardInterrupt)
        )
        asking.join(15)
    assert ended == [KeyboardInterrupt]


@pytest.mark.parametrize(
    "url",
    [
        "mysql://host/db", "no address", "sqlite3:///x", "postgresql://h:x/db",
        "sqlite://", "sqlite:///", "sqlite:///:memory:",
    ],
)  # fmt: skip
def test_an_address_of_something_else_is_refused_with_an_example(root: Root, url: str) -> None:
    with pytest.raises(StoreUnavailableError, match="postgresql://user:password@host/database"):
        RelationalStore(root, url).run(lambda c: None)


def test_a_second_try_follows_a_first_that_failed(store: RelationalStore) -> None:
    tries: list[int] = []

    def work(connection: object) -> str:
        tries.append(1)
        if len(tries) == 1:
            raise ConnectionResetError("gone")
        return "done"

    assert store.run(work) == "done"
    assert len(tries) == 2


def test_what_a_store_does_not_take_is_refused_and_not_said_to_be_away(
    store: RelationalStore,
) -> None:
    def twice(connection: Connection) -> None:
        for _ in range(2):
            connection.execute(insert(JOBS).values(job="job", at=1))

    with pytest.raises(StoreRefusedError, match="does not take this"):
        store.run(twice)
    assert store.run(lambda c: c.execute(select(JOBS)).all()) == []


def test_a_conflict_that_passes_is_tried_again(store: RelationalStore) -> None:
    job_names = ["taken", "free"]
    store.run(lambda c: c.execute(insert(JOBS).values(job="taken", at=1)))
    store.run(lambda c: c.execute(insert(JOBS).values(job=job_names.pop(0), at=1)))
    assert job_names == []


def test_a_table_that_is_lacking_is_for_people_to_mend(store: RelationalStore) -> None:
    with pytest.raises(StoreUnavailableError) as caught:
        store.run(lambda c: c.execute(text("SELECT * FROM nowhere")))
    assert not isinstance(caught.value, StoreRefusedError)


def test_who_only_reads_waits_for_no_writer(root: Root, tmp_path: Path) -> None:
    store = RelationalStore(root, f"sqlite:///{tmp_path / 'store.sqlite3'}")
    fill(store, [requirement(1)])

    def writing(connection: Connection) -> list[object]:
        connection.execute(insert(JOBS).values(job="other", at=1))
        jobs: list[object] = []
        for _ in range(2):
            jobs.append(store.read(lambda c: c.execute(select(JOBS.c.job)).scalars().all()))
            # Like a process that has just started.
            store._dispose_engine()
        return jobs

    assert store.run(writing) == [["maker"], ["maker"]]


def test_the_store_of_a_root_lies_in_it_whatever_the_root_is_called(tmp_path: Path) -> None:
    root = Root.open(tmp_path / "100%25 tea?x=#é", create=True)
    store = RelationalStore(root)
    assert not store.may_hold_data
    store.run(lambda connection: connection.execute(text("SELECT 1")))
    assert (root.path / ".longhaul" / "store.sqlite3").exists()
    assert store.may_hold_data
    assert store.display_address == f"sqlite:///{root.path}/.longhaul/store.sqlite3"
