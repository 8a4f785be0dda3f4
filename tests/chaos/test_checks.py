"""Each forbidden state is reported as a fault."""

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from tests.chaos.checks import MOST_BYTES, MOST_EVENTS, faults
from tests.chaos.evidence import Evidence, Run
from tests.chaos.plan import Blow

QUIET = Evidence(
    result={"status": "completed"},
    tree="a1",
    files={"chaos/plan.md": b"plan"},
    accepted={"feet.py": b"feet"},
    effects=Counter({"requirement 1": 1}),
    answered=Counter({"first": 1, "second": 1}),
    told_of_interruption=False,
    runs=[Run("chaos", events=100, size=10_000, failed=[])],
    lagging=[],
)
KILL = Blow("kill worker", 1, "at_any_time", 0.0)
FULL = Blow("full disk", 1, "at_any_time", 2.0)


def found(shaken: Evidence, *blows: Blow, parked: tuple[str, ...] = ()) -> list[str]:
    return list(faults(QUIET, shaken, blows, parked, []))


def test_what_ended_as_undisturbed_has_no_fault() -> None:
    assert found(QUIET, KILL) == []


@pytest.mark.parametrize(
    ("changed", "phrase"),
    [
        ({"result": {"status": "failed"}}, "ended as"),
        ({"tree": "b2"}, "ended in the tree b2, undisturbed in a1"),
        ({"files": {"chaos/plan.md": b"other"}}, "files of jobs differ: ['chaos/plan.md']"),
        ({"accepted": {}}, "accepted otherwise: ['feet.py']"),
        ({"effects": Counter({"requirement 1": 2})}, "effects too many: [('requirement 1', 1)]"),
        ({"effects": Counter()}, "effects missing: [('requirement 1', 1)]"),
        ({"answered": Counter({"first": 1, "other": 1})}, "1 requests that were never sent"),
        ({"answered": Counter({"first": 1, "second": 3})}, "1 model calls more than the 1 blows"),
        ({"runs": [Run("chaos", MOST_EVENTS + 1, 1, [])]}, "events"),
        ({"runs": [Run("chaos", 1, MOST_BYTES + 1, [])]}, "bytes"),
        ({"runs": [Run("chaos", 1, 1, ["why"])]}, "a workflow task of chaos failed: why"),
        ({"left": ["lock x"]}, "left behind: lock x"),
        ({"lagging": ["chaos/a"]}, "the folder is not as the last checkpoint: ['chaos/a']"),
    ],
)
def test_what_did_not_is_told(changed: dict[str, Any], phrase: str) -> None:
    [fault] = found(replace(QUIET, **changed), KILL)
    assert phrase in fault


def test_a_job_may_wait_only_for_what_was_done_to_it() -> None:
    waited = "chaos storage: no space left"
    assert found(QUIET, FULL, parked=(waited,)) == []
    assert found(QUIET, KILL, parked=(waited,)) == [f"waited for no cause of its own: {waited}"]


def test_steps_may_be_others_once_an_agent_was_told_of_an_interruption() -> None:
    shaken = replace(QUIET, told_of_interruption=True, tree="b2", answered=Counter({"other": 9}))
    assert found(shaken, KILL) == []
    assert found(replace(shaken, accepted={}), KILL) == ["accepted otherwise: ['feet.py']"]
