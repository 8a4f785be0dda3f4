"""Pushes to a bucket that are killed within a request, and what a store answers in trouble."""

import subprocess
import sys
from collections.abc import Iterator

import pytest

from activities.checkpoints import RemoteUnavailable
from tests.activities.checkpoints.hosts import Host
from tests.buckets import create_bucket
from tests.flawed_store import Flaw, FlawedStore, flawed_store

pytestmark = pytest.mark.usefixtures("bucket_keys")

PUSH = """
import sys
from pathlib import Path
from tests.activities.checkpoints.hosts import Host
path, url, parent = sys.argv[1:]
host = Host(Path(path), url)
commit = host.step(parent, "in-flight.md", text="tea " * 1000)
print(commit, flush=True)
host.push(commit)
"""


@pytest.fixture
def store(endpoint: str) -> Iterator[FlawedStore]:
    with flawed_store(endpoint) as store:
        yield store


@pytest.fixture
def address(store: FlawedStore) -> str:
    return create_bucket(store.endpoint)


def kill_within_push(host: Host, parent: str, store: FlawedStore) -> str:
    """A push of another process that is killed where the store hangs; gives its commit."""
    command = [sys.executable, "-c", PUSH, str(host.root.path), host.url, parent]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert store.is_met.wait(60)
    finally:
        process.kill()
    commit, _ = process.communicate()
    assert process.returncode == -9
    store.release.set()
    store.mend()
    return commit.strip()


@pytest.mark.parametrize(
    ("moment", "word", "arrives"),
    [
        ("before", "/packs/", False),
        ("half", "/packs/", False),
        ("after", "/packs/", False),
        ("before", "/refs.json", False),
        ("half", "/refs.json", False),
        ("after", "/refs.json", True),
    ],
)
def test_a_push_killed_within_a_request_costs_its_own_commit_at_most(
    host_a: Host, host_b: Host, store: FlawedStore, moment: Flaw, word: str, *, arrives: bool
) -> None:
    first = host_a.step(None, "a.md", text="tea " * 1000)
    host_a.push(first)
    store.break_requests(moment, word, times=1)
    killed = kill_within_push(host_a, first, store)
    host_b.fetch()
    assert host_b.checkpoints.is_intact(first)
    assert host_b.checkpoints.has_commit(killed) is arrives
    # The other host takes the step again and goes on; the first one may come back.
    again = host_b.step(first, "again.md")
    host_b.push(again)
    host_a.push(killed)
    third = Host(host_b.root.path.with_name("third"), host_a.url)
    third.fetch()
    assert all(third.checkpoints.is_intact(commit) for commit in (first, again, killed))


@pytest.mark.parametrize("flaw", ["reset", (503, "SlowDown"), (500, "InternalError")])
def test_trouble_that_passes_delays_a_push(
    host_a: Host, host_b: Host, store: FlawedStore, flaw: Flaw
) -> None:
    commit = host_a.step(None, "a.md")
    host_a.push(commit)
    second = host_a.step(commit, "b.md")
    store.break_requests(flaw, times=2)
    host_a.push(second)
    host_b.fetch()
    assert host_b.checkpoints.is_intact(second)


@pytest.mark.parametrize(
    ("flaw", "why"),
    [
        ("reset", "cannot be reached"),
        ((503, "SlowDown"), "SlowDown: by the test"),
        ((403, "ExpiredToken"), r"credentials are refused \(ExpiredToken\).*start it again with"),
        ((403, "QuotaExceeded"), "QuotaExceeded: by the test"),
        ((507, "XMinioStorageFull"), "XMinioStorageFull: by the test"),
    ],
)
def test_trouble_that_lasts_is_named_and_nothing_is_lost(
    host_a: Host, host_b: Host, store: FlawedStore, flaw: Flaw, why: str
) -> None:
    commit = host_a.step(None, "a.md")
    host_a.push(commit)
    second = host_a.step(commit, "b.md")
    store.break_requests(flaw, times=1000)
    with pytest.raises(RemoteUnavailable, match=why):
        host_a.push(second)
    store.mend()
    host_b.fetch()
    assert host_b.checkpoints.is_intact(commit)
    host_a.push(second)
    host_b.fetch()
    assert host_b.checkpoints.is_intact(second)


def test_a_pack_that_the_store_gives_in_part_is_refused(
    host_a: Host, host_b: Host, endpoint: str
) -> None:
    commit = host_a.step(None, "a.md", text="tea " * 1000)
    host_a.push(commit)
    area_url = host_a.url.partition("?")[0].removeprefix("s3://")
    import obstore.store  # noqa: PLC0415 - an extra

    bucket = obstore.store.S3Store(
        area_url.partition("/")[0], endpoint=endpoint, region="us-east-1",
        client_options={"allow_http": True},
    )  # fmt: skip
    [pack] = [
        each["path"] for batch in bucket.list() for each in batch if "/packs/" in each["path"]
    ]
    data = bytes(bucket.get(pack).bytes())
    bucket.put(pack, data[: len(data) // 2])
    with pytest.raises(RemoteUnavailable):
        host_b.fetch()
    assert not host_b.checkpoints.has_commit(commit)
    bucket.put(pack, data)
    host_b.fetch()
    assert host_b.checkpoints.is_intact(commit)
