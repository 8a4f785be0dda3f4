"""The signals of a job. They only put into the inbox; the job opens it when it attends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from temporalio import workflow
from temporalio.common import RawValue

from workflows.inbox import Inbox, Read, read_payload


class Signals:
    """What people can send to a job; see `protocol.payloads` for what each takes."""

    def __init__(self, read: Read = read_payload) -> None:
        self._inbox = Inbox(read)

    @workflow.signal(description='{"issue": "…", "phase": 3, "restore_files": true}')
    def rewind(self, *payload: Any) -> None:
        """Take the work back: reconsider the approach in the light of the issue."""
        self._inbox.put("rewind", payload)

    @workflow.signal(description='{"reason": "…"}')
    def cancel(self, *payload: Any) -> None:
        """End the job as cancelled; its last checkpoint is kept."""
        self._inbox.put("cancel", payload)

    @workflow.signal(description="{}")
    def pause(self, *payload: Any) -> None:
        """Stand still after the step in flight."""
        self._inbox.put("pause", payload)

    @workflow.signal(description='{"set": {"model.name": "…"}}')
    def resume(self, *payload: Any) -> None:
        """Go on; also tries again what parked the job. `set` changes settings of its model."""
        self._inbox.put("resume", payload)

    @workflow.signal(description='{"cost": 20, "phase": {"model_calls": 800}}')
    def limit(self, *payload: Any) -> None:
        """Set limits of the job and, under `phase`, of each phase; go on if there is room now."""
        self._inbox.put("limit", payload)

    @workflow.signal(description='{"id": "…", "text": "…"}')
    def answer(self, *payload: Any) -> None:
        """Answer the agent's question. The id may be left out."""
        self._inbox.put("answer", payload)

    @workflow.signal(description='{"id": "…", "reason": "…"}')
    def approve(self, *payload: Any) -> None:
        """Let the call that waits for approval be carried out. The id may be left out."""
        self._inbox.put("approve", payload)

    @workflow.signal(description='{"id": "…", "reason": "…"}')
    def deny(self, *payload: Any) -> None:
        """Refuse that call; the agent is told the reason. The id may be left out."""
        self._inbox.put("deny", payload)

    @workflow.signal(description='{"guard": "…", "reason": "…"}')
    def bypass(self, *payload: Any) -> None:
        """Let through once what a guard or hook refused: its next refusal is passed over."""
        self._inbox.put("bypass", payload)

    @workflow.signal(description='{"text": "…", "item": false}')
    def tell(self, *payload: Any) -> None:
        """Say something to the agent: it is in its next turn, and in force until the job ends."""
        self._inbox.put("tell", payload)

    @workflow.signal(dynamic=True)
    def unknown(self, name: str, payload: Sequence[RawValue]) -> None:
        """A signal by a name that does not exist is refused visibly."""
        self._inbox.put(name, ())
