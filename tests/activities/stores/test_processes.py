"""Processes at the same store at once, and one that is killed in the middle of a write."""

import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any

from sqlalchemy import text

from activities.checkpoints import Root
from activities.requirements import store_sync
from activities.stores import store_migration  # noqa: F401 - loaded before the fork
from activities.stores.relational_store import RelationalStore
from tests.activities.stores.filling import (
    call,
    contents,
    decide,
    fill,
    requirement,
    statuses,
    take,
)

_FORK = multiprocessing.get_context("fork")


@contextmanager
def process(work: Callable[..., Any], *arguments: Any) -> Iterator[tuple[Any, Connection]]:
    """Start a process that does the work and sends back its result."""
    parent_end, child_end = _FORK.Pipe()

    def run() -> None:
        child_end.send(work(*arguments, child_end.send))

    child = _FORK.Process(target=run, daemon=True)
    child.start()
    child_end.close()
    try:
        yield child, parent_end
    finally:
        child.kill()
        child.join()


def received(pipe: Connection) -> Any:
    assert pipe.poll(40), "the process has sent nothing"
    return pipe.recv()


def judge(root: Root, url: str, name: str, _send: Any) -> list[str]:
    store, refs, moment = RelationalStore(root, url), [], 0
    while (ref := take(store, name, moment)) is not None:
        refs.append(ref)
        decide(store, name, ref, at=moment + 1)
        moment += 2
    return refs


def test_two_processes_take_each_requirement_once(root: Root, url: str) -> None:
    fill(RelationalStore(root, url), [requirement(number) for number in range(1, 41)])
    # Connections opened here must not be shared with child processes.
    RelationalStore(root, url)._dispose_engine()
    with (
        process(judge, root, url, "one") as (_, one),
        process(judge, root, url, "two") as (_, two),
    ):
        refs = received(one) + received(two)
    assert sorted(refs) == [f"maker/REQ-{number:03d}" for number in range(1, 41)]
    assert set(statuses(RelationalStore(root, url)).values()) == {"accepted"}


def revision(root: Root, url: str, _send: Any) -> list[str]:
    query = "SELECT version_num FROM alembic_version"
    return list(RelationalStore(root, url).run(lambda c: c.execute(text(query)).scalars().all()))


def test_processes_that_start_at_once_agree_on_the_tables(root: Root, url: str) -> None:
    with (
        process(revision, root, url) as (_, one),
        process(revision, root, url) as (_, two),
        process(revision, root, url) as (_, three),
    ):
        revisions = [received(pipe) for pipe in (one, two, three)]
    assert revisions[0] == revisions[1] == revisions[2]
    assert len(revisions[0]) == 1
    assert revision(root, url, None) == revisions[0]


def half_done(root: Root, url: str, send: Any) -> None:
    present, changed = contents([requirement(1), requirement(2)])

    def work(connection: Any) -> None:
        store_sync.match_rows_to_workspace(connection, call("maker"), present, changed)
        send("written, not committed")
        time.sleep(60)

    RelationalStore(root, url).run(work, seconds=60)


def test_a_kill_in_the_middle_of_a_write_leaves_nothing_and_the_retry_does_it_once(
    root: Root, url: str
) -> None:
    fill(RelationalStore(root, url), [], job="somebody")
    RelationalStore(root, url)._dispose_engine()
    with process(half_done, root, url) as (child, pipe):
        assert received(pipe) == "written, not committed"
        os.kill(child.pid, signal.SIGKILL)
        child.join()
    store = RelationalStore(root, url)
    assert statuses(store) == {}
    for _ in range(2):
        fill(store, [requirement(1), requirement(2)])
    assert statuses(store) == {"REQ-001": "draft", "REQ-002": "draft"}
    assert store.run(lambda c: c.execute(text("SELECT count(*) FROM citations")).scalar()) == 2
