"""The start of a job, as often as it takes: what it cannot do without may not be there yet."""

from __future__ import annotations

from contextlib import suppress

from temporalio import workflow

from protocol.payloads import Refused
from protocol.record import Letter, Waiting
from protocol.starting import Prepared, PrepareRequest
from workflows import parking, status
from workflows.inbox import Inbox
from workflows.parking import StepFailed
from workflows.steps import Steps


class Start:
    """Prepares a job."""

    def __init__(self, steps: Steps, inbox: Inbox) -> None:
        self._steps = steps
        self._inbox = inbox
        self.waiting: Waiting | None = None
        """How the start waits, if it does."""

    async def prepared(self, request: PrepareRequest) -> Prepared:
        """The job, once all is there that it needs.

        Raises:
            Refused: a person cancelled it before that.
            StepFailed: it cannot start.
        """
        pause = parking.TRY_AGAIN
        while True:
            try:
                made = await self._steps.prepare(request)
            except StepFailed as failed:
                if failed.kind not in ("Dependency", "WrongRoot"):
                    raise
                self.waiting = parking.not_there(failed)
                self._show(request)
                with suppress(TimeoutError):
                    await workflow.wait_condition(lambda: bool(self._asked()), timeout=pause)
                pause = min(pause * 2, parking.LONGEST)
                self._heed()
            else:
                self.waiting = None
                return made

    def _asked(self) -> list[Letter]:
        """What people want of a start; other letters are for the job once it has begun."""
        return [one for one in self._inbox.letters if one.signal in ("resume", "cancel")]

    def _heed(self) -> None:
        for letter in self._asked():
            if letter.signal == "cancel":
                reason = letter.payload.get("reason") or "cancelled by a person"
                raise Refused(f"cancelled before it began: {reason}")
            self._inbox.letters.remove(letter)

    def _show(self, request: PrepareRequest) -> None:
        assert self.waiting
        workflow.set_current_details(status.preparing_details(self.waiting, self._inbox.notices))
        told = {"agent": request.agent, "status": f"waiting: {self.waiting.reason}"}
        workflow.upsert_memo({**told, "state": self.waiting.message})
