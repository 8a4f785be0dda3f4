"""Payloads that people send, as plain JSON objects: the start of a job and its signals.

Unknown keys are refused with a message; optional keys may be absent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self, TypeVar

from pydantic import ConfigDict, Field, ValidationError, field_validator, model_validator

from protocol.errors import Invalid
from protocol.fork_command import fork_command
from protocol.handoffs import ProjectLink
from protocol.job_state import MAX_ITEMS, Data
from protocol.limits import Amount, Budget, Count, TrialShare
from protocol.repository import Publish, RepositoryStart
from protocol.validation_errors import first_validation_errors

D = TypeVar("D", bound=Data)
MAX_ID_CHARACTERS = 1000


class Fork(Data):
    """Where a fork begins: a phase start of another job, or its end."""

    job: str = Field(min_length=1, max_length=1000)
    phase: int | None = Field(None, ge=1)
    """Phase number; None for the end of a closed job."""

    @property
    def place(self) -> str:
        """`the start of phase 2`."""
        return "its end" if self.phase is None else f"the start of phase {self.phase}"


MAX_INSTRUCTIONS = 200_000
"""Most characters of the instructions in a start."""


class JobStart(Data):
    """Input of the workflow `Job`."""

    agent: str = ""
    instructions: str = Field("", max_length=MAX_INSTRUCTIONS)
    documents: list[str] = Field(default_factory=list, max_length=1000)
    items: list[str] = Field(default_factory=list, max_length=MAX_ITEMS)
    set: dict[str, Any] = Field(default_factory=dict)
    fork: Fork | None = None
    repository: RepositoryStart | None = None
    publish: Publish | None = None
    project: ProjectLink | None = None
    """Set by the project that the job works for."""
    trial: TrialShare | None = None
    """Set by the trial that the job is a run of."""

    @model_validator(mode="after")
    def _check_start_payload(self) -> Self:
        if not self.agent and not self.fork:
            raise ValueError("agent: field required")
        if self.repository and self.fork:
            raise ValueError("repository: a fork goes on with that of the first job; leave it out")
        if self.publish and not self.fork:
            if self.repository is None:
                raise ValueError("publish: goes with repository, whose branch it pushes")
            self.publish = self.publish.completed(self.repository)
        return self


class SignalPayload(Data):
    """Base of signal payloads."""

    model_config = ConfigDict(str_max_length=20_000)

    by: str = Field("", max_length=100)
    """The sender; the command line fills it in."""


class RewindSignal(SignalPayload):
    issue: str = Field(min_length=1)
    phase: int | None = Field(None, ge=1, strict=True)
    restore_files: bool = Field(True, strict=True)


class CancelSignal(SignalPayload):
    reason: str = ""


class PauseSignal(SignalPayload):
    pass


MAX_SETTINGS = 20
MAX_REMARK_CHARACTERS = 4000
"""Most characters of one remark by a person."""


class ResumeSignal(SignalPayload):
    set: dict[str, Any] = Field(default_factory=dict, max_length=MAX_SETTINGS)
    """Settings of the model, such as `{"model.send_reasoning": true}`."""

    @field_validator("set")
    @classmethod
    def _check_model_settings(cls, settings: dict[str, Any]) -> dict[str, Any]:
        for key, value in settings.items():
            if not (key.startswith("model.") and key.count(".") == 1):
                raise ValueError(
                    f"{key[:100]!r} cannot be set of a job under way; expected a key of model, "
                    f"such as model.name. {_payload_setting_advice(key[:100])}"
                )
            if value is not None and not isinstance(value, (str, int, float)):
                raise ValueError(f"{key[:100]} takes one value, found {str(value)[:100]!r}")
            if isinstance(value, str) and len(value) > MAX_ID_CHARACTERS:
                raise ValueError(f"{key[:100]} is longer than {MAX_ID_CHARACTERS} characters")
        return settings


def _payload_setting_advice(key: str) -> str:
    scope, _, limit = key.removeprefix("limits.").partition(".")
    if (
        key.startswith("limits.")
        and scope in ("job", "phase")
        and limit in PhaseLimits.model_fields
    ):
        named = limit if scope == "job" else f"phase.{limit}"
        return f"`starter.py limit JOB {named}=…` sets that limit"
    return f"A fork can set others: {fork_command(f'{key}=…')}"


class PhaseLimits(SignalPayload):
    """New limits of each phase. Only keys that were set are read, never defaults."""

    model_calls: Count = 0
    tool_calls: Count = 0
    tokens: Count = 0
    cost: Amount = 0
    seconds: Count = 0

    @model_validator(mode="after")
    def _check_names_a_limit(self) -> Self:
        if not self.model_fields_set:
            raise ValueError('names no limit; expected such as {"cost": 20}')
        return self


class LimitSignal(PhaseLimits):
    """New limits of the job."""

    phase: PhaseLimits = Field(default_factory=PhaseLimits.model_construct)


class AnswerSignal(SignalPayload):
    id: str | None = None
    text: str = Field(min_length=1)


class ApproveSignal(SignalPayload):
    id: str | None = None
    reason: str = ""


class DenySignal(SignalPayload):
    id: str | None = None
    reason: str = Field(min_length=1)


class TellSignal(SignalPayload):
    text: str = Field(min_length=1, max_length=MAX_REMARK_CHARACTERS, pattern=r"\S")
    item: bool = Field(False, strict=True)
    """Whether to add it to the job's scope."""


class BypassSignal(SignalPayload):
    guard: str = Field(min_length=1, max_length=200)
    reason: str = Field("", max_length=2000)


@dataclass(frozen=True)
class SignalSpec:
    """A row of the table of signals."""

    payload: type[SignalPayload]
    example: str
    """An example payload, as Temporal Web shows it."""
    effect: str
    for_one_job: bool = False
    """Whether a project forwards it to one of its jobs."""


SIGNALS = {
    "rewind": SignalSpec(
        RewindSignal,
        '{"issue": "…", "phase": 3, "restore_files": true}',
        "Send the job back: reconsider the approach in the light of the issue.",
        for_one_job=True,
    ),
    "cancel": SignalSpec(
        CancelSignal, '{"reason": "…"}', "End the job as cancelled; its last checkpoint is kept."
    ),
    "pause": SignalSpec(PauseSignal, "{}", "Pause after the step in flight."),
    "resume": SignalSpec(
        ResumeSignal,
        '{"set": {"model.name": "…"}}',
        "Continue, and retry what made the job wait. `set` changes settings of its model.",
    ),
    "limit": SignalSpec(
        LimitSignal,
        '{"cost": 20, "phase": {"model_calls": 800}}',
        "Set limits of the job and, under `phase`, of each phase; a job that waits "
        "for a limit continues if the new one allows it.",
    ),
    "answer": SignalSpec(
        AnswerSignal,
        '{"id": "…", "text": "…"}',
        "Answer the agent's question. The id may be left out.",
        for_one_job=True,
    ),
    "approve": SignalSpec(
        ApproveSignal,
        '{"id": "…", "reason": "…"}',
        "Approve the call that waits for it. The id may be left out.",
        for_one_job=True,
    ),
    "deny": SignalSpec(
        DenySignal,
        '{"id": "…", "reason": "…"}',
        "Refuse that call; the agent gets the reason. The id may be left out.",
        for_one_job=True,
    ),
    "bypass": SignalSpec(
        BypassSignal,
        '{"guard": "…", "reason": "…"}',
        "Ignore the next refusal of a guard or hook, so that the agent can repeat "
        "what was refused.",
        for_one_job=True,
    ),
    "tell": SignalSpec(
        TellSignal,
        '{"text": "…", "item": false}',
        "Say something to the agent: it reads it in its next turn and follows it "
        "until the job ends.",
    ),
}
"""The signals of jobs and projects. A new signal needs a row here and a handler in
`workflows.job_signals`, and one in `workflows.project_signals` if projects do not just forward
it."""


UNDECODABLE = "undecodable"
"""Key of the dict that replaces an undecodable payload; its value is "<encoding>: <reason>"."""

ENCRYPTED = "binary/encrypted"
"""Encoding of an encrypted payload."""


class EncryptedPayloadError(RuntimeError):
    """The key of an encrypted payload is missing; the message is one line that names the key.

    In a start this is not the job's fault: its workflow task fails, and is retried until a worker
    has the key.
    """


class InvalidPayload(Invalid):
    """A payload cannot be used; the message is one line with the reason and what is expected."""


def read_job_start_payload(values: tuple[Any, ...]) -> JobStart:
    """Parse a job's start input. Raises InvalidPayload or EncryptedPayloadError."""
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
    """Raise EncryptedPayloadError if a value is still encrypted because its key is missing."""
    for value in values:
        message = value.get(UNDECODABLE) if isinstance(value, dict) else None
        if isinstance(message, str) and message.startswith(f"{ENCRYPTED}: "):
            raise EncryptedPayloadError(message)


def read_signal_payload(name: str, values: Any) -> SignalPayload:
    """Parse a signal's payload. Raises InvalidPayload."""
    spec = SIGNALS.get(name)
    if spec is None:
        raise InvalidPayload(f"signal {name!r} is not known; the signals are {', '.join(SIGNALS)}")
    if len(values) > 1:
        raise InvalidPayload(f"signal {name}: expected one JSON object, found {len(values)} values")
    value = values[0] if values and values[0] is not None else {}
    return read_payload_object(spec.payload, value, f"signal {name}")


def read_project_signal_payload(name: str, values: Any) -> dict[str, Any]:
    """Parse a project's signal: a job's payload, plus `job` for a child job.

    Raises:
        InvalidPayload: the payload cannot be used.
    """
    job: Any = None
    if values and isinstance(values[0], dict) and "job" in values[0]:
        job = values[0]["job"]
        if not isinstance(job, str) or not 0 < len(job) <= MAX_ID_CHARACTERS:
            raise InvalidPayload(f"signal {name}: job: expected the id of a job of this project")
        values = ({key: value for key, value in values[0].items() if key != "job"}, *values[1:])
    payload = read_signal_payload(name, values).model_dump(exclude_unset=True)
    if name == "limit" and job is None and "phase" in payload:
        raise InvalidPayload('signal limit: a project has no phases; expected such as {"cost": 20}')
    return payload if job is None else {**payload, "job": job}


def read_payload_object(kind: type[D], value: Any, what: str) -> D:
    """Parse an object that a person sent. Raises InvalidPayload."""
    if isinstance(value, dict) and list(value) == [UNDECODABLE]:
        raise InvalidPayload(f"{what}: {value[UNDECODABLE]}")
    if not isinstance(value, dict):
        raise InvalidPayload(f"{what}: expected a JSON object, found {str(value)[:100]!r}")
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        known = ", ".join(_payload_keys(kind))
        raise InvalidPayload(
            f"{what}: {first_validation_errors(error)}; its keys are: {known or 'none'}"
        ) from None


def _payload_keys(kind: type[Data]) -> list[str]:
    """The keys of an object; keys of phase limits are written as people type them."""
    keys = [key for key in kind.model_fields if key != "phase" or kind is not LimitSignal]
    return (
        [*keys, *(f"phase.{key}" for key in Budget.model_fields)] if kind is LimitSignal else keys
    )
