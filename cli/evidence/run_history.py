"""What the history of one run says: its calls and their results, people's signals, its end."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC
from typing import Any

from temporalio.api.common.v1 import Payload
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import WorkflowHistory
from temporalio.converter import DataConverter

from cli.report.history import LOCAL_ACTIVITY
from engine.converter import encrypted_payload_reason

COMPLETED = "complete_workflow_execution"
CONTINUED = "continue_as_new_workflow_execution"
PUBLISH = "publish_branch"
"""The activity whose commit is none of a checkpoint, but of the branch that it pushed."""
SHOW_CALL = "show_call"
"""The activity that shows a person the arguments of a call."""
_ENDS = {
    "workflow_execution_completed_event_attributes": COMPLETED,
    "workflow_execution_continued_as_new_event_attributes": CONTINUED,
    "workflow_execution_failed_event_attributes": "fail_workflow_execution",
    "workflow_execution_canceled_event_attributes": "cancel_workflow_execution",
    "workflow_execution_terminated_event_attributes": "terminated",
    "workflow_execution_timed_out_event_attributes": "timed out",
}


@dataclass(frozen=True)
class HistoryCall:
    activity_id: str
    name: str
    event: int
    """Id of the event by which it is known."""
    local: bool = False
    request: Any = None
    """Its argument; a history has none for a local activity."""
    result: Any = None
    """None if it has none yet, or failed."""

    @property
    def commit(self) -> str:
        """The checkpoint that it made; empty without one."""
        return "" if self.name == PUBLISH else _text(self.result, "commit")

    @property
    def base(self) -> str:
        """The checkpoint that it started from; empty without one."""
        return _text(self.request, "commit")


@dataclass
class RunHistory:
    """One run of a chain."""

    run_id: str
    history: WorkflowHistory
    workflow: str = ""
    """Name of the workflow's type."""
    started_as: str = ""
    """The run id that it began with; another than `run_id` after a reset."""
    continued_from: str = ""
    continued_to: str = ""
    arguments: list[Any] = field(default_factory=list)
    calls: list[HistoryCall] = field(default_factory=list)
    """In the order in which they were called."""
    people: list[dict[str, Any]] = field(default_factory=list)
    """What people were asked and what they sent, as `people.json` has it."""
    end: str = ""
    """As in `ReplayedRun`; empty while it runs."""
    end_values: list[Any] = field(default_factory=list)
    encrypted: str = ""
    """Why a payload cannot be read here; empty if all can."""

    @property
    def ids(self) -> set[str]:
        return {self.run_id, self.started_as}


class _Reader:
    def __init__(self, run: RunHistory, converter: DataConverter) -> None:
        self._run = run
        self._codec = converter.payload_codec
        self._by_event: dict[int, str] = {}
        self._calls: dict[str, HistoryCall] = {}

    async def read(self) -> None:
        for event in self._run.history.events:
            await self._read_event(event, event.WhichOneof("attributes") or "")
        self._run.calls = sorted(self._calls.values(), key=lambda call: _number(call.activity_id))
        self._run.people += [
            {"run": self._run.run_id, "event": call.event, **question}
            for call in self._run.calls
            if (question := _question_to_person(call))
        ]
        self._run.people.sort(key=lambda entry: int(entry["event"]))

    async def _read_event(self, event: HistoryEvent, kind: str) -> None:
        about = getattr(event, kind) if kind else None
        if about is None:
            return
        match kind:
            case "workflow_execution_started_event_attributes":
                self._run.workflow = about.workflow_type.name
                self._run.started_as = about.original_execution_run_id
                self._run.continued_from = about.continued_execution_run_id
                self._run.arguments = await self.values(about.input.payloads)
            case "activity_task_scheduled_event_attributes":
                values = await self.values(about.input.payloads)
                call = HistoryCall(about.activity_id, about.activity_type.name, event.event_id)
                self._calls[call.activity_id] = replace(call, request=_first(values))
                self._by_event[event.event_id] = call.activity_id
            case "activity_task_completed_event_attributes":
                key = self._by_event.get(about.scheduled_event_id, "")
                if key in self._calls:
                    result = _first(await self.values(about.result.payloads))
                    self._calls[key] = replace(self._calls[key], result=result)
            case "marker_recorded_event_attributes" if about.marker_name == LOCAL_ACTIVITY:
                await self._read_marker(event, about)
            case "workflow_execution_signaled_event_attributes":
                at = event.event_time.ToDatetime(tzinfo=UTC).isoformat()
                values = await self.values(about.input.payloads)
                signal = {"run": self._run.run_id, "event": event.event_id, "at": at}
                self._run.people.append({**signal, "signal": about.signal_name, "payload": values})
            case _ if kind in _ENDS:
                self._run.end = _ENDS[kind]
                if self._run.end == COMPLETED:
                    self._run.end_values = await self.values(about.result.payloads)
                elif self._run.end == CONTINUED:
                    self._run.continued_to = about.new_execution_run_id
                    self._run.end_values = await self.values(about.input.payloads)

    async def _read_marker(self, event: HistoryEvent, about: Any) -> None:
        marker = _first(await self.values(about.details["data"].payloads)) or {}
        result = None
        if "result" in about.details:
            result = _first(await self.values(about.details["result"].payloads))
        key, name = str(marker.get("activity_id")), str(marker.get("activity_type"))
        self._calls[key] = HistoryCall(key, name, event.event_id, local=True, result=result)

    async def values(self, payloads: Iterable[Payload]) -> list[Any]:
        decoded = list(payloads)
        if self._codec and decoded:
            decoded = await self._codec.decode(decoded)
        for payload in decoded:
            self._run.encrypted = self._run.encrypted or encrypted_payload_reason(payload)
        return payload_values(decoded)


async def read_run_history(
    run_id: str, history: WorkflowHistory, converter: DataConverter
) -> RunHistory:
    """Read one run. Payloads that cannot be decrypted are None, and `encrypted` says why."""
    run = RunHistory(run_id, history)
    await _Reader(run, converter).read()
    return run


def payload_values(payloads: Iterable[Payload]) -> list[Any]:
    """Return JSON payloads as values, others as None."""
    values = []
    for payload in payloads:
        is_json = payload.metadata.get("encoding") == b"json/plain"
        try:
            values.append(json.loads(payload.data) if is_json else None)
        except (ValueError, RecursionError):
            values.append(None)
    return values


def encryption_reason(runs: Iterable[RunHistory]) -> str:
    """Return why the histories cannot be read here; empty if they can."""
    return next((f"the histories: {run.encrypted}" for run in runs if run.encrypted), "")


def named_commits(runs: Iterable[RunHistory]) -> list[str]:
    """Return every checkpoint that the histories name, in their order."""
    commits = [commit for run in runs for call in run.calls for commit in (call.base, call.commit)]
    return list(dict.fromkeys(filter(None, commits)))


def last_commit(runs: Iterable[RunHistory]) -> str:
    """Return the newest checkpoint: the result's, or of the call that ended last."""
    commits = [call.commit for run in runs for call in run.calls if call.commit]
    return commits[-1] if commits else ""


def _first(values: list[Any]) -> Any:
    return values[0] if values else None


def _question_to_person(call: HistoryCall) -> dict[str, Any]:
    """Return what a person was asked about a call; empty if nobody was."""
    if question := _text(call.result, "asks"):
        return {"asked": question, "call": call.name, "guard": _text(call.result, "guard")}
    if call.name == SHOW_CALL and isinstance(call.result, dict):
        return {"shown": call.result.get("arguments")}
    return {}


def _text(value: Any, key: str) -> str:
    text = value.get(key) if isinstance(value, dict) else None
    return text if isinstance(text, str) else ""


def _number(activity_id: str) -> tuple[int, str]:
    return (int(activity_id) if activity_id.isdecimal() else 0, activity_id)
