"""Bypassing a guard, tested on the record alone."""

from protocol.requests import GuardOutcome
from tests.workflows.records import record
from workflows.jobs import guard_outcomes


def test_only_what_refused_can_be_bypassed() -> None:
    job = record(step=3)
    message = guard_outcomes.guard_bypass_refusal_reason(job, "secrets")
    assert message == "guard secrets has refused nothing; those that have are: none"
    [line] = guard_outcomes.apply_guard_outcome(
        job, GuardOutcome(guard="secrets", finding="a\nkey"), "write_file"
    )
    assert str(line) == "step 3: guard secrets refused write_file: a key"
    assert job.guard_refusals == {"secrets": 1}
    assert guard_outcomes.guard_bypass_refusal_reason(job, "secrets") == ""
    guard_outcomes.grant_guard_bypass(job, {"guard": "secrets", "reason": "an example"})
    assert job.bypasses == {"secrets": "an example"}
    assert "secrets" in (job.correction or "")


def test_a_bypass_that_was_used_is_gone_and_recorded() -> None:
    job = record(guard_refusals={"a": 1}, bypasses={"a": "why", "b": "else"})
    lines = guard_outcomes.apply_guard_outcome(
        job, GuardOutcome(bypassed_guard="a", remarks=["guard c rewrote"]), "write_file"
    )
    assert [line.text for line in lines] == [
        "guard c rewrote",
        "bypass of a let write_file through (why)",
    ]
    assert job.bypasses == {"b": "else"}
    assert job.guard_refusals == {"a": 1}
