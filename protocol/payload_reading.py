"""Payloads that people send, as plain JSON objects: the start of a job and its signals.

Unknown keys are refused with a message; optional keys may be absent.
"""

from collections.abc import Sequence
from typing import Any, TypeVar

from pydantic import ValidationError

from protocol.data_model import Data
from protocol.errors import Invalid
from protocol.limits import Budget
from protocol.payloads import MAX_ID_CHARACTERS, SIGNALS, JobStart, LimitSignal, SignalPayload
from protocol.validation_errors import first_validation_errors

D = TypeVar("D", bound=Data)
UNDECODABLE = "undecodable"
"""Key of the dict that replaces an undecodable payload; its value is "<encoding>: <reason>"."""
ENCRYPTED = "binary/encrypted"


class EncryptedPayloadError(RuntimeError):
    """The key of an encrypted payload is missing; the message is one line that names the key.

    In a start this is not the job's fault: its workflow task fails, and is retried until a worker
    has the key.
    """


class InvalidPayload(Invalid):
    """A payload cannot be used; the message is one line with the reason and what is expected."""

    def __init__(self, why: str, keys: Sequence[str] | None = None) -> None:
        super().__init__(why)
        self.why, self.keys = why, keys

    def __str__(self) -> str:
        return self.without("")

    def without(self, hidden: str) -> str:
        if self.keys is None:
            return self.why
        return (
            f"{self.why}; its keys are: {', '.join(k for k in self.keys if k != hidden) or 'none'}"
        )


def read_job_start_payload(values: tuple[Any, ...]) -> JobStart:
    return read_start_payload(JobStart, values, "job", '{"agent": "…", "instructions": "…"}')


def read_start_payload(kind: type[D], values: tuple[Any, ...], what: str, example: str) -> D:
    """Parse a workflow's input. Raises InvalidPayload or EncryptedPayloadError."""
    check_payload_is_decrypted(values)
    if len(values) != 1:
        raise InvalidPayload(
            f"a {what} starts with one JSON object, found {len(values)} values; expected {example}"
        )
    return read_payload_object(kind, values[0], "start")


def check_payload_is_decrypted(values: tuple[Any, ...]) -> None:
    for value in values:
        message = value.get(UNDECODABLE) if isinstance(value, dict) else None
        if isinstance(message, str) and message.startswith(f"{ENCRYPTED}: "):
            raise EncryptedPayloadError(message)


def read_signal_payload(name: str, values: Any) -> SignalPayload:
    spec = SIGNALS.get(name)
    if spec is None:
        raise InvalidPayload(f"it is not known; the signals are {', '.join(SIGNALS)}")
    if len(values) > 1:
        raise InvalidPayload(f"expected one JSON object, found {len(values)} values")
    value = values[0] if values and values[0] is not None else {}
    return read_payload_object(spec.payload, value)


def read_project_signal_payload(name: str, values: Any) -> dict[str, Any]:
    job: Any = None
    if values and isinstance(values[0], dict) and "job" in values[0]:
        job = values[0]["job"]
        if not isinstance(job, str) or not 0 < len(job) <= MAX_ID_CHARACTERS:
            raise InvalidPayload("job: expected the id of a job of this project")
        values = ({key: value for key, value in values[0].items() if key != "job"}, *values[1:])
    payload = read_signal_payload(name, values).model_dump(exclude_unset=True)
    if name == "limit" and job is None and "phase" in payload:
        raise InvalidPayload('a project has no phases; expected such as {"cost": 20}')
    return payload if job is None else {**payload, "job": job}


def read_payload_object(kind: type[D], value: Any, what: str = "") -> D:
    where = f"{what}: " if what else ""
    if isinstance(value, dict) and list(value) == [UNDECODABLE]:
        raise InvalidPayload(f"{where}{value[UNDECODABLE]}")
    if not isinstance(value, dict):
        raise InvalidPayload(f"{where}expected a JSON object, found {str(value)[:100]!r}")
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        keys = list(kind.model_fields)
        if kind is LimitSignal:
            # As people type them.
            keys = [key for key in keys if key != "phase"]
            keys += [f"phase.{key}" for key in Budget.model_fields]
        raise InvalidPayload(f"{where}{first_validation_errors(error)}", keys) from None
