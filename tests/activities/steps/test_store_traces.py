"""The activity that takes a job's notes into the store."""

import pytest
from temporalio.exceptions import ApplicationError

from activities.checkpoints import Root
from activities.stores.stored_traces import read_job_traces
from tests.activities.traces.noting import store, trace


def test_a_trace_handed_over_twice_is_stored_once(root: Root) -> None:
    assert store(root, trace(1), trace(2)) == 2
    assert store(root, trace(2), trace(3)) == 1
    assert [row.key for row in read_job_traces(root, "job")] == ["run.1", "run.2", "run.3"]


def test_what_looks_like_a_credential_is_not_stored(root: Root) -> None:
    key = "ghp_" + "a1B2c3D4e5F6" * 3
    store(root, trace(1, f"wrote {key}", why=f"because of {key}", todo=key, path=f"a/{key}"))
    [row] = read_job_traces(root, "job")
    assert key not in " ".join(map(str, row))
    assert row.what_happened == "wrote [redacted]"


def test_a_store_that_is_away_fails_at_once_with_what_to_do(
    root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LONGHAUL_STORE_URL", "postgresql://127.0.0.1:1/db")
    with pytest.raises(ApplicationError, match=r"127\.0\.0\.1:1.* does not answer") as failed:
        store(root, trace(1))
    assert failed.value.type == "Dependency"
    assert failed.value.non_retryable
