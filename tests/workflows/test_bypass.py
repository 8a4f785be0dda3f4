"""Bypassing a guard, from the record alone."""

from __future__ import annotations

from protocol.requests import Guarded
from tests.workflows.records import record
from workflows import guards


def test_only_what_refused_can_be_bypassed() -> None:
    job = record()
    told = guards.bypass(job, {"guard": "secrets"})
    assert told == "guard secrets has refused nothing; those that have are: none"
    lines = guards.heed(job, Guarded(guard="secrets"), "write_file", "a\nkey")
    assert lines == ["step 0: guard secrets refused write_file: a key"]
    assert job.refused == {"secrets": 1}
    assert guards.bypass(job, {"guard": "secrets", "reason": "an example"}) is None
    assert job.bypasses == {"secrets": "an example"}
    assert "secrets" in (job.correction or "")


def test_a_bypass_that_was_used_is_gone_and_recorded() -> None:
    job = record(refused={"a": 1}, bypasses={"a": "why", "b": "else"})
    lines = guards.heed(job, Guarded(bypassed="a", remarks=["guard c rewrote"]), "write_file", "")
    assert lines == ["step 0: guard c rewrote", "step 0: bypass of a let write_file through (why)"]
    assert job.bypasses == {"b": "else"}
    assert job.refused == {"a": 1}
