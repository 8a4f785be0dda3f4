"""The form of a status: programs read it, so its keys must not change."""

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from protocol.status import AnyStatus, JobStatus
from protocol.waiting import WaitState

KEYS = Path(__file__).with_name("status_keys.json")


def status_keys() -> dict[str, str]:
    """Return the keys of each part."""
    schema = TypeAdapter(AnyStatus).json_schema(mode="serialization")
    return {
        name: " ".join(part["properties"])
        for name, part in schema["$defs"].items()
        if "properties" in part
    }


def test_the_keys_are_those_that_programs_know() -> None:
    assert status_keys() == json.loads(KEYS.read_text(encoding="utf-8")), (
        "a key that goes breaks scripts; with a new one, renew status_keys.json"
    )


@pytest.mark.parametrize("fields", [{}, {"title": "Tea", "waiting_for": "budget"}])
def test_every_field_has_a_default_and_a_status_reads_back(fields: dict[str, Any]) -> None:
    status = JobStatus.model_validate(fields)
    assert JobStatus.model_validate_json(status.model_dump_json()) == status
    with pytest.raises(ValidationError):
        JobStatus.model_validate({"steeped": 1})
    assert JobStatus.model_validate({"steeped": 1}, extra="ignore") == JobStatus()


def test_the_reason_of_a_wait_is_a_key_of_its_own() -> None:
    waiting = WaitState(reason="budget", message="Used up.", remedy="Raise it.")
    assert JobStatus(waiting=waiting).waiting_for == "budget"
