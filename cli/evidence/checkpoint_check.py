"""Whether an archive's checkpoints are whole, and those that its histories name."""

import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pygit2
from pydantic import ValidationError

from activities.checkpoints import CheckpointMissing, Checkpoints, LogEntry, NewerCheckpoint
from activities.checkpoints.object_store import read_sound_object
from activities.checkpoints.packfile import read_pack_offsets
from activities.job.snapshot import Snapshot
from activities.phases.phase_tags import phase_tag
from activities.preparation.agent_resolution import resolve_job_limits
from cli.evidence.claims import Claim
from cli.evidence.derived_documents import PEOPLE, derive_documents
from cli.evidence.reachable_objects import walk_reachable_objects
from cli.evidence.run_history import COMPLETED, HistoryCall, RunHistory, encryption_reason
from protocol.endings import COMPLETION_FILE
from protocol.job_state import JobState
from protocol.limits import JobLimits
from protocol.scope_ledger import ScopeItem


def check_objects(store: Checkpoints, commits: Sequence[str], lost: Sequence[str]) -> Claim:
    """Compute every object's id again, and follow all links from the checkpoints.

    Args:
        commits: The checkpoints that refs and histories name.
        lost: Those that the archive says it lacks.
    """
    claim = Claim(
        "objects",
        "every file of every checkpoint is there, and is what its id says",
        "git's ids, which are SHA-1 of the content",
    )
    objects = store.path / "objects"
    count = sum(_check_pack(claim, pack) for pack in sorted((objects / "pack").glob("*.pack")))
    missing: list[str] = []
    present = [commit for commit in commits if commit not in lost]
    reachable = sum(1 for _ in walk_reachable_objects(store.store, present, missing))
    claim.found += [f"the object {oid} is missing or is not what its id says" for oid in missing]
    claim.unchecked += [f"checkpoint {commit}: the archive lacks it" for commit in lost]
    claim.seen = f"{count:,} objects in packs, {reachable:,} of them reachable"
    return claim


def _check_pack(claim: Claim, pack: Path) -> int:
    """Read every object of a pack by itself; return their number."""
    reader = pygit2.Odb()
    try:
        ids = [oid for _, oid in read_pack_offsets(pack)]
        reader.add_backend(pygit2.OdbBackendPack(str(pack.parent.parent)), 1)
    except (ValueError, OSError, pygit2.GitError) as error:
        claim.found.append(f"{pack.name} cannot be read: {error}")
        return 0
    for oid in ids:
        try:
            read_sound_object(reader, oid)
        except (KeyError, pygit2.GitError):
            claim.found.append(f"{pack.name}: the content of {oid.hex()} has another id")
    return len(ids)


def check_chain(
    store: Checkpoints, chain: Sequence[LogEntry], runs: Sequence[RunHistory], lost: Sequence[str]
) -> Claim:
    """Compare the order of checkpoints with the calls that made them, from result to start."""
    claim = Claim(
        "checkpoints",
        "the result's checkpoint goes back to the job's start step by step, each made from the one "
        "that its call was given",
        "parents in git commits, and the calls in the histories",
    )
    parents = {entry.id: below.id for entry, below in pairwise(chain)}
    if store.lacks_parent(chain[-1].id):
        claim.found.append(f"the chain breaks off at {chain[-1].id}")
    calls = [
        call
        for run in runs
        for call in run.calls
        if call.commit and not {call.commit, call.base} & set(lost)
    ]
    starts = [call.commit for call in calls if call.name == "prepare"]
    if starts and starts[0] not in {entry.id for entry in chain}:
        claim.found.append(f"the start {starts[0]} is not in the chain of the result")
    for call in calls:
        if call.base and not _descends(store, parents, call.commit, call.base):
            claim.found.append(
                f"event {call.event}: the checkpoint {call.commit} of {call.name} was not made "
                f"from {call.base}"
            )
    compared = sum(_check_reply(claim, store, call) for call in calls)
    claim.seen = f"{len(chain):,} checkpoints in the chain, {len(calls):,} calls, " + (
        f"{compared:,} replies compared with their checkpoint"
    )
    return claim


def check_refs(claim: Claim, store: Checkpoints, refs: Mapping[str, str], newest: str) -> None:
    """Compare the repository's refs with what they point at: starts of phases, or the end."""
    for name, commit in refs.items():
        phase = phase_tag(Snapshot.load(store, commit).state.phase.number)
        if commit != newest and name != f"refs/tags/{phase}":
            claim.found.append(f"{name} points at {commit}, where {phase} begins")


def _descends(store: Checkpoints, parents: dict[str, str], commit: str, base: str) -> bool:
    """Whether a checkpoint goes back to another by first parents."""
    while commit != base:
        if commit not in parents:
            try:
                entries = store.log(commit, 2)
            except CheckpointMissing:
                return False
            parents[commit] = entries[1].id if len(entries) > 1 else ""
        commit = parents[commit]
        if not commit:
            return False
    return True


def _check_reply(claim: Claim, store: Checkpoints, call: HistoryCall) -> bool:
    """Compare state, limits and items that a call reported with its checkpoint's."""
    result = call.result if isinstance(call.result, dict) else {}
    if not result.get("state") and not result.get("scope"):
        return False
    try:
        snapshot = Snapshot.load(store, call.commit)
        differing = _differing_parts(result, snapshot, begins=call.name == "prepare")
    except (ValidationError, CheckpointMissing, NewerCheckpoint) as error:
        claim.found.append(f"event {call.event}: {call.name} cannot be read: {error!s:.300}")
        return False
    claim.found += [
        f"event {call.event}: {call.name} reported another {part} than {call.commit} has"
        for part in differing
    ]
    return True


def _differing_parts(result: dict[str, Any], snapshot: Snapshot, *, begins: bool) -> list[str]:
    """Return the parts of a reply that are not those of its checkpoint. Raises ValidationError."""
    parts = []
    state = result.get("state")
    if state and JobState.model_validate(state) != snapshot.state.without_notes():
        parts.append("state")
    if begins and JobLimits.model_validate(result["limits"]) != resolve_job_limits(snapshot.config):
        parts.append("limit")
    items = {item.id: item.line for item in snapshot.state.scope}
    reported = [ScopeItem.model_validate(item) for item in result.get("scope") or []]
    if any(items.get(item.id) != item.line for item in reported):
        parts.append("scope")
    return parts


def check_result(store: Checkpoints, newest: str, runs: Sequence[RunHistory]) -> Claim:
    """Compare the result that Temporal has with the one in the last checkpoint."""
    claim = Claim(
        "result",
        "the result in Temporal is the one that the last checkpoint has",
        f"{COMPLETION_FILE} in that checkpoint",
    )
    end = runs[-1]
    values = end.end_values if end.end == COMPLETED else []
    if not values or not isinstance(values[0], dict):
        why = encryption_reason(runs) or f"the job has none: {end.end or 'it has not ended'}"
        claim.unchecked.append(f"the result: {why}")
        return claim
    result, written = values[0], Snapshot.load(store, newest).read_bytes(COMPLETION_FILE)
    if result.get("checkpoint") != newest:
        claim.found.append(f"it names the checkpoint {result.get('checkpoint')}, not {newest}")
    if written is None:
        claim.found.append(f"the last checkpoint has no {COMPLETION_FILE}")
        return claim
    fields = json.loads(written)
    for name, value in fields.items():
        reported = result.get(name)
        # The file leaves out figures that differ between two runs of the same steps.
        same = name in ("usage", "branch") or reported == value or (reported is None and not value)
        if not same:
            claim.found.append(
                f"{name} is {reported!r:.200} in Temporal and {value!r:.200} in the file"
            )
    claim.seen = f"status {result.get('status')}, {len(fields)} fields"
    return claim


def check_documents(
    store: Checkpoints,
    chain: Sequence[LogEntry],
    runs: Sequence[RunHistory],
    members: dict[str, bytes],
) -> Claim:
    """Make the archive's documents again from checkpoints and histories."""
    claim = Claim(
        "documents",
        "configuration, guards, prompts, what people sent and the table are those of the job",
        "the checkpoints and the histories, from which they are made again",
    )
    derived = derive_documents(store, chain, runs)
    encrypted = encryption_reason(runs)
    if encrypted:
        claim.unchecked.append(f"what people sent: {encrypted}")
    for path, data in derived.items():
        if path == PEOPLE and encrypted:
            continue
        if members.get(path) != data:
            claim.found.append(f"{path} is not what checkpoints and histories give")
    claim.found += [f"{path} follows from no checkpoint" for path in members if path not in derived]
    claim.seen = f"{len(derived)} documents"
    return claim
