"""Whether a job's histories are those of its workflow: a replay compared command by command."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise, zip_longest
from typing import Any

from temporalio.converter import DataConverter

from cli.evidence import run_history
from cli.evidence.claims import Claim
from cli.jobs.job_memo import JOB
from engine.history_replay import ReplayedRun, replay_runs

_TIMES = {"clock", "seconds", "phase_seconds"}
"""Times in the state. If a workflow task times out amid a local activity, the SDK goes on in the
next one with the clock of the first, but replays both with the clock of the next. So these may
differ by milliseconds; no archive shows that its times are right."""


async def check_decisions(
    runs: Sequence[run_history.RunHistory], converter: DataConverter
) -> Claim:
    """Replay the runs and fill in the requests of local activities, which no history has."""
    claim = Claim(
        "decisions",
        "the histories are one chain, and every call, its arguments and the result are what the "
        "workflow decides from what came before",
        "the workflow's code of this version, run again on the results that the histories have",
    )
    if why := run_history.encryption_reason(runs):
        claim.unchecked.append(why)
        return claim
    _check_links(claim, runs)
    calls, local = 0, 0
    replays = await replay_runs([run.history for run in runs], converter)
    for run, replayed in zip(runs, replays, strict=True):
        _check_run(claim, run, replayed)
        run.calls = [_with_request(call, replayed) for call in run.calls]
        calls += len(run.calls)
        local += sum(call.local for call in run.calls)
    events = sum(len(run.history.events) for run in runs)
    claim.seen = f"{len(runs)} runs with {events:,} events and {calls:,} calls were replayed"
    if local:
        claim.unchecked.append(
            f"the arguments of {local:,} local activities: Temporal records only their results; "
            "those of the replay stand in for them"
        )
    return claim


def _check_links(claim: Claim, runs: Sequence[run_history.RunHistory]) -> None:
    """Compare the runs' ends with the beginnings of the next ones."""
    claim.found += [
        f"run {run.run_id} is of the workflow {run.workflow}, not of a job"
        for run in runs
        if run.workflow != JOB
    ]
    if runs[0].continued_from:
        claim.unchecked.append(
            f"the runs before {runs[0].run_id}: the server no longer had them, so the first one "
            "here begins from the state that it was handed"
        )
    for before, after in pairwise(runs):
        if before.end != run_history.CONTINUED:
            claim.found.append(f"run {before.run_id} did not go on in another run")
        elif before.continued_to not in after.ids or after.continued_from not in before.ids:
            claim.found.append(f"run {after.run_id} is not the one after {before.run_id}")
        elif before.end_values != after.arguments:
            claim.found.append(
                f"run {after.run_id} begins with another state than {before.run_id} handed on"
            )
    if runs[-1].end == run_history.CONTINUED:
        claim.found.append(f"the run that followed {runs[-1].run_id} is missing")


def _check_run(claim: Claim, run: run_history.RunHistory, replayed: ReplayedRun) -> None:
    if replayed.failure:
        claim.found.append(
            f"run {run.run_id} cannot be replayed with this version of Longhaul: {replayed.failure}"
        )
        return
    for call in run.calls:
        again = replayed.calls.get(call.activity_id)
        where = f"run {run.run_id}, event {call.event}: {call.name}"
        if again is None or again.name != call.name or again.local != call.local:
            claim.found.append(f"{where} is no call that the workflow makes there")
        elif not call.local and run_history.payload_values(again.arguments)[:1] != [call.request]:
            claim.found.append(f"{where} has other arguments than the workflow gives it")
    if run.end not in (run_history.COMPLETED, run_history.CONTINUED):
        return
    what = "result" if run.end == run_history.COMPLETED else "state handed on"
    if replayed.end != run.end:
        claim.found.append(f"run {run.run_id}: the workflow does not end with its {what}")
    elif others := _other_fields(run.end_values, run_history.payload_values(replayed.end_payloads)):
        claim.found.append(
            f"run {run.run_id}: its {what} is not what the workflow returns: {', '.join(others)}"
        )


def _other_fields(values: Sequence[Any], again: Sequence[Any]) -> list[str]:
    """Return the fields of a result or state that a replay has otherwise."""
    fields: set[str] = set()
    for value, other in zip_longest(values, again):
        if not (isinstance(value, dict) and isinstance(other, dict)):
            fields |= set() if value == other else {"all of it"}
            continue
        fields |= {key for key in {*value, *other} if value.get(key) != other.get(key)}
    return sorted(fields - _TIMES)


def _with_request(call: run_history.HistoryCall, replayed: ReplayedRun) -> run_history.HistoryCall:
    again = replayed.calls.get(call.activity_id)
    if not call.local or again is None or again.name != call.name:
        return call
    [request] = run_history.payload_values(again.arguments)[:1] or [None]
    return replace(call, request=request)
