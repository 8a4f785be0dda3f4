"""Payloads that people send: the start of a job, and its signals with their table."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

from pydantic import ConfigDict, Field, field_validator, model_validator

from protocol.data_model import Data
from protocol.handoffs import ProjectLink
from protocol.limits import Amount, Count, TrialShare
from protocol.notices import PersonAct
from protocol.publishing import CHANGEABLE, PUBLISH, Publish
from protocol.repository_start import RepositoryStart
from protocol.scope_ledger import MAX_ITEMS
from protocol.short_text import fork_command, text_title_line
from protocol.teams import TeamName

MAX_INSTRUCTIONS = 200_000

MAX_ID_CHARACTERS = 1000
MAX_SETTINGS = 20
UPDATE = "signal"
"""The update by which the command line sends a signal: its name, then its payload."""
MAX_REMARK_CHARACTERS = 4000


class Fork(Data):
    """Where a fork begins: a phase start of another job, or its end."""

    job: str = Field(min_length=1, max_length=1000)
    phase: int | None = Field(None, ge=1)
    """Phase number; None for the end of a closed job."""

    @property
    def place(self) -> str:
        """`the start of phase 2`."""
        return "its end" if self.phase is None else f"the start of phase {self.phase}"


class JobStart(Data):
    """Input of the workflow `Job`."""

    agent: str = ""
    instructions: str = Field("", max_length=MAX_INSTRUCTIONS)
    documents: list[str] = Field(default_factory=list, max_length=1000)
    brief: list[str] = Field(default_factory=list, max_length=100)
    """Documents that say what the job is to do; `{"path": …, "brief": true}` among `documents`
    means the same."""
    items: list[str] = Field(default_factory=list, max_length=MAX_ITEMS)
    approve_plan: bool = Field(False, strict=True)
    """Whether a person approves the plan before the work begins."""
    set: dict[str, Any] = Field(default_factory=dict)
    fork: Fork | None = None
    repository: RepositoryStart | None = None
    publish: Publish | None = None
    project: ProjectLink | None = None
    """Set by the project that the job works for."""
    trial: TrialShare | None = None
    """Set by the trial that the job is a run of."""
    team: TeamName | Literal[""] = ""
    """Whose quota it counts for, and whose spend it is."""
    by: str = Field("", max_length=100)
    """Who starts it, such as `ada@host`; the command line fills it in."""

    @property
    def title(self) -> str:
        """A name for people, as far as the start has one; empty for a fork."""
        return text_title_line(
            self.instructions or (self.project.handoff.task if self.project else "")
        )

    @model_validator(mode="before")
    @classmethod
    def _divide_documents(cls, data: Any) -> Any:
        """Take documents that are marked as brief out of the list of the others."""
        documents = data.get("documents") if isinstance(data, dict) else None
        if not isinstance(documents, list):
            return data
        plain, brief = list[Any](), list(data.get("brief") or [])
        for entry in documents:
            marked = isinstance(entry, dict) and {"path"} <= set(entry) <= {"path", "brief"}
            path = entry["path"] if marked else entry
            (brief if marked and entry.get("brief") is True else plain).append(path)
        return {**data, "documents": plain, **({"brief": brief} if brief else {})}

    @model_validator(mode="after")
    def _check_start_payload(self) -> Self:
        if not self.agent and not self.fork:
            raise ValueError("agent: field required")
        if self.approve_plan:
            self.set = {**self.set, "approve_plan": True}
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

    act: ClassVar[str]
    """What the person did, as a predicate: `paused the {what}`."""

    def did(self, what: str) -> str:
        """Return `paused the job`; `what` is `job`, `project` or `trial`."""
        return self.act.format(what=what)

    @property
    def words(self) -> str:
        return ""


class RewindSignal(SignalPayload):
    issue: str = Field(min_length=1, pattern=r"\S")
    phase: int | None = Field(None, ge=1, strict=True)
    restore_files: bool = Field(True, strict=True)

    def did(self, what: str) -> str:
        if self.phase is None:
            return "took the running phase back"
        files = "" if self.restore_files else ", keeping the files"
        return f"went back to the start of phase {self.phase}{files}"

    @property
    def words(self) -> str:
        return self.issue


class ReasonSignal(SignalPayload):
    reason: str = ""

    @property
    def words(self) -> str:
        return self.reason


class CancelSignal(ReasonSignal):
    act = "cancelled the {what}"


class PauseSignal(SignalPayload):
    act = "paused the {what}"


class ResumeSignal(SignalPayload):
    set: dict[str, Any] = Field(default_factory=dict, max_length=MAX_SETTINGS)
    """Settings of the model, such as `{"model.send_reasoning": true}`, and of the push at the end,
    such as `{"publish.branch": "other"}` or `{"publish": null}`."""

    act = "let the {what} go on"

    @property
    def words(self) -> str:
        return _named_values(self.set)

    @field_validator("set")
    @classmethod
    def _check_model_settings(cls, settings: dict[str, Any]) -> dict[str, Any]:
        for key, value in settings.items():
            if key == PUBLISH and value not in (None, False, "none"):
                raise ValueError("publish takes none here: the work ends without a push")
            if key in (PUBLISH, *CHANGEABLE):
                continue
            if not (key.startswith("model.") and key.count(".") == 1):
                raise ValueError(
                    f"{key[:100]!r} cannot be set of a job under way; expected a key of model, "
                    f"such as model.name, or {', '.join(CHANGEABLE)}. "
                    f"{_model_setting_advice(key[:100])}"
                )
            if value is not None and not isinstance(value, (str, int, float)):
                raise ValueError(f"{key[:100]} takes one value, found {str(value)[:100]!r}")
            if isinstance(value, str) and len(value) > MAX_ID_CHARACTERS:
                raise ValueError(f"{key[:100]} is longer than {MAX_ID_CHARACTERS} characters")
        return settings


def _named_values(values: dict[str, Any], prefix: str = "") -> str:
    """Return `cost=20, phase.model_calls=800`."""
    return ", ".join(
        _named_values(value, f"{key}.") if isinstance(value, dict) else f"{prefix}{key}={value}"
        for key, value in values.items()
    )


def _model_setting_advice(key: str) -> str:
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

    act = "set limits"
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

    @property
    def words(self) -> str:
        return _named_values(self.model_dump(exclude_unset=True, exclude={"by"}))


class LimitSignal(PhaseLimits):
    """New limits of the job."""

    phase: PhaseLimits = Field(default_factory=PhaseLimits.model_construct)

    @model_validator(mode="before")
    @classmethod
    def _nest_dotted_keys(cls, payload: Any) -> Any:
        """Read `{"phase.cost": 5}`, as people type it, like `{"phase": {"cost": 5}}`."""
        if not isinstance(payload, dict):
            return payload
        dotted = {key for key in payload if isinstance(key, str) and key.startswith("phase.")}
        if not dotted or not isinstance(of_phase := payload.get("phase", {}), dict):
            return payload
        nested = {key.removeprefix("phase."): payload[key] for key in dotted}
        if twice := sorted(nested.keys() & of_phase.keys()):
            raise ValueError(f"phase.{twice[0]} is given twice")
        rest = {key: value for key, value in payload.items() if key not in dotted}
        return {**rest, "phase": {**of_phase, **nested}}


class AnswerSignal(SignalPayload):
    id: str | None = None
    text: str = Field(min_length=1, pattern=r"\S")

    act = "answered the question"

    @property
    def words(self) -> str:
        return self.text


class ApproveSignal(ReasonSignal):
    id: str | None = None
    signature: str = Field("", max_length=4000)
    """Over the `ApprovalStatement`, where the agent's configuration asks for one."""
    expires: str = Field("", max_length=40)
    """Until when the signature counts, as the statement says it."""

    act = "approved the call"


class DenySignal(ReasonSignal):
    id: str | None = None
    reason: str = Field(min_length=1, pattern=r"\S")

    act = "denied the call"


class TellSignal(SignalPayload):
    text: str = Field(min_length=1, max_length=MAX_REMARK_CHARACTERS, pattern=r"\S")
    item: bool = Field(False, strict=True)
    """Whether to add it to the job's scope."""
    unit: str = Field("", max_length=40)
    """Of a project: the feature, group or stage that it is about."""

    def did(self, what: str) -> str:
        return "told the agent" + (" a further item" if self.item else "")

    @property
    def words(self) -> str:
        return self.text


class BypassSignal(ReasonSignal):
    guard: str = Field(min_length=1, max_length=200)
    reason: str = Field("", max_length=2000)

    def did(self, what: str) -> str:
        return f"let through once what {self.guard} refused"


@dataclass(frozen=True)
class SignalSpec:
    """A row of the table of signals."""

    payload: type[SignalPayload]
    example: str
    """An example payload, as Temporal Web shows it."""
    effect: str
    for_one_job: bool = False
    """Whether a project forwards it to one of its jobs."""


class ReceivedSignal(Data):
    """A signal as received; it is decoded when the job next processes its inbox."""

    signal: str
    payload: dict[str, Any] = Field(default_factory=dict)
    at: int = 0
    act: PersonAct | None = Field(None, exclude=True)
    """What came of it, once it was handled in this run."""

    @property
    def read(self) -> SignalPayload:
        payload = {key: value for key, value in self.payload.items() if key != "job"}
        return SIGNALS[self.signal].payload.model_validate(payload)

    @property
    def by(self) -> str:
        return str(self.payload.get("by") or "")


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
    "pause": SignalSpec(
        PauseSignal,
        "{}",
        "Pause during a model call, whose reply is kept, or after the calls of a reply; a call "
        "that is only retried is given up.",
    ),
    "resume": SignalSpec(
        ResumeSignal,
        '{"set": {"model.name": "…"}}',
        "Continue, and retry at once what made the job wait, or what is being retried. `set` "
        "changes settings of its model.",
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
        '{"text": "…", "item": false, "unit": ""}',
        "Say something to the agent: it reads it in its next turn and follows it "
        "until the job ends. Of a project, `unit` names the feature, group or stage that is told.",
    ),
}
"""The signals of jobs and projects. A new signal needs its payload and a row here, and a handler in
`workflows.jobs.job_signals`; one in `workflows.projects.project_signals` too if projects do not
just forward it."""
