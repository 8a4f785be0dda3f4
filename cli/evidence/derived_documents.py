"""The documents of an archive that follow from its histories and checkpoints.

They are written for readers; `verify` makes them again and compares.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from activities.acceptance.contract_rows import job_contract
from activities.checkpoints import Checkpoints, LogEntry
from activities.checkpoints.sharded_tree import list_tree_entries
from activities.job.snapshot import Snapshot
from cli.evidence.run_history import RunHistory
from config.schema.agent import AgentConfig
from config.templates import PROMPT_VERSION
from protocol.endings import COMPLETION_FILE

TABLE, PEOPLE, PROMPTS = "table.json", "people.json", "prompts.json"
CONFIGURATIONS = "configuration/"


def derive_documents(
    checkpoints: Checkpoints, chain: Sequence[LogEntry], runs: Iterable[RunHistory]
) -> dict[str, bytes]:
    """Return the documents by path.

    Args:
        chain: The checkpoints from the newest back to the start.

    Raises:
        CheckpointMissing, NewerCheckpoint: a checkpoint cannot be read.
    """
    configurations = _pinned_configurations(checkpoints, chain)
    documents = {f"{CONFIGURATIONS}{name}.json": data for name, data in configurations.items()}
    documents[PROMPTS] = _as_json(
        [
            prompt
            for name, data in configurations.items()
            for prompt in _prompt_versions(name, AgentConfig.model_validate_json(data))
        ]
    )
    documents[PEOPLE] = _as_json([message for run in runs for message in run.people])
    newest = Snapshot.load(checkpoints, chain[0].id)
    documents[TABLE] = _as_json(contract_rows(newest))
    return documents


def is_derived(path: str) -> bool:
    """Whether a member of an archive is such a document."""
    return path in (TABLE, PEOPLE, PROMPTS) or path.startswith(CONFIGURATIONS)


def contract_rows(snapshot: Snapshot) -> list[dict[str, Any]]:
    """Return the table of what was asked for and what came of it: a row per statement."""
    result = json.loads(snapshot.read_text(COMPLETION_FILE) or "{}")
    contract = job_contract(snapshot, result.get("unresolved", []))
    return [row.model_dump(mode="json") for row in contract.rows]


def contract_row_line(row: Mapping[str, Any]) -> str:
    """Return a row of the table for people: `S2 dropped: Cover water (no data)`."""
    reason = f" ({row['reason']})" if row["reason"] else ""
    return f"{row['id']} {row['status']}: {row['statement']}{reason}"


def _pinned_configurations(checkpoints: Checkpoints, chain: Sequence[LogEntry]) -> dict[str, bytes]:
    """Return the configurations, guards included, by number and first checkpoint."""
    store, first_commits = checkpoints.store, dict[bytes, str]()
    for entry in reversed(chain):
        parts = list_tree_entries(store, bytes.fromhex(entry.tree))
        first_commits.setdefault(parts[b"config.json"].id, entry.id)
    return {
        f"{number:02d}-{commit[:12]}": store.read(blob)
        for number, (blob, commit) in enumerate(first_commits.items(), 1)
    }


def _prompt_versions(name: str, config: AgentConfig) -> list[dict[str, Any]]:
    versions = [
        {
            "configuration": name,
            "agent": config.name,
            "prompt": role,
            "version": PROMPT_VERSION,
            "characters": len(text),
            "sha256": hashlib.sha256(text.encode()).hexdigest(),
        }
        for role, text in sorted(
            {**config.templates, "instructions": config.instructions_template}.items()
        )
    ]
    return versions + (_prompt_versions(name, config.reviewer) if config.reviewer else [])


def _as_json(value: object) -> bytes:
    return (
        json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False).encode(
            "utf-8", "backslashreplace"
        )
        + b"\n"
    )
