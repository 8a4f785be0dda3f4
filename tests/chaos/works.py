"""The pieces of work that are disturbed: small, done by models that are pure functions."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from activities.checkpoints import Root
from cli.start.document_staging import stage_documents
from rehearsal import Model, rehearse
from tests.brief import BRIEF
from tests.crash.model import Ledger

QUICK = {
    **BRIEF,
    "todos.fork": ["Revise plan.md", "Call todo_write"],
    # A silent endpoint is noticed within the seconds that a disturbance lasts.
    "model.stall_seconds": 4,
    "model.timeout_seconds": 20,
    # Several runs of the workflow in one job.
    "limits.history_events": 120,
}
POLICY = """# Policy of records

## Keeping

Invoices must be archived for ten years.

## Access

Passwords shall have twelve characters.
Every payment must be approved by two people.
"""
FEATURES = """Make a library in Python that converts imperial measures into metric ones.

- Feet into metres: feet(3) is 0.9144.
"""


@dataclass(frozen=True)
class Work:
    """A workflow: its input, its model and its checks."""

    name: str
    workflow: str
    start: Callable[[Root], dict[str, Any]]
    model: Model
    needs_sandbox: bool = False


def _creator(root: Root) -> dict[str, Any]:
    return {"agent": "creator", "documents": _policy(root), "set": QUICK}


def _features(root: Root) -> dict[str, Any]:
    return {"form": "features", "instructions": FEATURES, "attempts": 2, "set": QUICK}


def _pipeline(root: Root) -> dict[str, Any]:
    documents = _policy(root)
    return {
        "form": "pipeline",
        "instructions": "Find the requirements of the policy and validate each.",
        "product": "output",
        "set": QUICK,
        "stages": [
            {
                "id": "find",
                "agent": "creator",
                "task": "Extract every requirement from the policy.",
                "documents": documents,
                "delivers": [{"file_exists": "output/requirements.json"}],
            },
            {
                "id": "validate",
                "agent": "validator",
                "task": "Take the requirements from the store. Decide on each.",
                "documents": documents,
                "needs": [{"file_exists": "output/requirements.json"}],
                "delivers": [{"file_exists": "output/decisions.json"}],
            },
        ],
    }


def _policy(root: Root) -> list[str]:
    """Return the policy, passed as `starter.py` does."""
    path = Path(root.path).parent / "policy.md"
    path.write_text(POLICY, encoding="utf-8")
    return stage_documents([str(path)], root.path, 50_000_000)


def generalist(phases: int) -> Work:
    ledger = Ledger("Ada", phases)
    silence = {"model.stall_seconds": 4, "model.timeout_seconds": 20}
    return Work("generalist", "Job", lambda root: ledger.start(**silence), ledger)


WORKS = {
    work.name: work
    for work in (
        generalist(phases=2),
        Work("creator", "Job", _creator, rehearse),
        Work("project", "Project", _features, rehearse, needs_sandbox=True),
        Work("pipeline", "Project", _pipeline, rehearse),
    )
}  # fmt: skip
