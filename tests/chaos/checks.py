"""What must hold at the end, whatever was done: pure functions of the evidence."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tests.chaos.evidence import Evidence
from tests.chaos.plan import MODEL, Blow

MOST_EVENTS = 51_200 // 4
"""A quarter of the number that ends a workflow."""
MOST_BYTES = 50 * 2**20 // 4
REASONS = {
    "full disk": {"storage", "dependency"},
    "key expires": {"credentials"},
    **{kind: {"endpoint"} for kind in MODEL},
}
"""What a job may wait for, by the disturbance that caused it."""


def faults(
    quiet: Evidence,
    shaken: Evidence,
    blows: Sequence[Blow],
    parked: Sequence[str],
    died: Sequence[str],
) -> Iterator[str]:
    """Return everything that is wrong, one line each."""
    if shaken.result["status"] != "completed":
        yield f"ended as {shaken.result}"
    yield from _same_work(quiet, shaken)
    yield from _calls(quiet, shaken, len(blows))
    for run in shaken.runs:
        yield from (f"a workflow task of {run.workflow} failed: {why}" for why in run.failed)
        if run.events > MOST_EVENTS or run.size > MOST_BYTES:
            yield f"a run of {run.workflow} has {run.events} events and {run.size} bytes"
    yield from (f"left behind: {what}" for what in shaken.left)
    yield from (f"a worker ended by itself: {log}" for log in died)
    kinds = [kind for blow in blows for kind in blow.kinds]
    expected = set[str]().union(*(REASONS.get(kind, set()) for kind in kinds))
    for wait_line in parked:
        reason = wait_line.split(" ", 1)[1].partition(":")[0]
        if reason not in expected:
            yield f"waited for no cause of its own: {wait_line}"


def _same_work(quiet: Evidence, shaken: Evidence) -> Iterator[str]:
    if shaken.lagging:
        yield f"the folder is not as the last checkpoint: {shaken.lagging}"
    if differing := _differing(quiet.accepted, shaken.accepted):
        yield f"accepted otherwise: {differing}"
    if shaken.told_of_interruption:
        # The agent was told that a call may have happened and checked: its steps differ.
        return
    if shaken.tree != quiet.tree:
        yield f"ended in the tree {shaken.tree}, undisturbed in {quiet.tree}"
    if differing := _differing(quiet.files, shaken.files):
        yield f"files of jobs differ: {differing}"
    if more := shaken.effects - quiet.effects:
        yield f"effects too many: {sorted(more.items())[:10]}"
    if less := quiet.effects - shaken.effects:
        yield f"effects missing: {sorted(less.items())[:10]}"


def _differing(expected: Mapping[str, Any], actual: Mapping[str, Any]) -> list[str]:
    paths = expected.keys() | actual.keys()
    return sorted(path for path in paths if expected.get(path, "") != actual.get(path, ""))


def _calls(quiet: Evidence, shaken: Evidence, blows: int) -> Iterator[str]:
    """Check that every answered call is stored, except for one in flight during a disturbance."""
    if shaken.told_of_interruption:
        return
    unknown = [request for request in shaken.answered if request not in quiet.answered]
    if unknown:
        yield (
            f"{len(unknown)} requests that were never sent undisturbed, from here on: "
            f"{_deviation(unknown[0], list(quiet.answered))}"
        )
    if more := max(0, shaken.answered.total() - quiet.answered.total() - blows):
        yield f"{more} model calls more than the {blows} blows excuse"


def _deviation(request: str, known: Sequence[str]) -> str:
    """Show where a request differs from the most similar known one."""
    offset, nearest = max((_shared(request, each), each) for each in known)
    return (
        f"{request[max(0, offset - 100) : offset + 200]!r}, not {nearest[offset : offset + 200]!r}"
    )


def _shared(one: str, other: str) -> int:
    """Return the length of the common beginning."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((offset for offset, (a, b) in pairs if a != b), min(len(one), len(other)))
