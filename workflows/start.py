"""The start of a job or project, as often as it takes: what it needs may not be there yet."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, NoReturn, TypeVar

from temporalio import workflow

from protocol.payloads import Refused
from protocol.record import Letter, Waiting
from workflows import parking, status
from workflows.activity_calls import ActivityCalls
from workflows.inbox import Inbox
from workflows.lifecycle import is_cancelled, to_its_end
from workflows.parking import StepFailed

R = TypeVar("R")


class Start:
    """Prepares a job or a project."""

    def __init__(self, steps: ActivityCalls, inbox: Inbox) -> None:
        self._steps = steps
        self._inbox = inbox
        self._memo: dict[str, str] = {}
        self.waiting: Waiting | None = None
        """How the start waits, if it does."""
        self.told = ""
        """What the project was told of it, if the job works for one."""

    async def prepared(
        self, prepare: Callable[[], Coroutine[Any, Any, R]], *, project: str = "", **memo: str
    ) -> R:
        """What it begins with, once all is there that it needs.

        Args:
            project: The id of the one that a job works for.
            memo: What is known of it before it begins.

        Raises:
            CancelledError: a person cancelled it before that.
            Refused: the same, and the server could not be asked to cancel it.
            StepFailed: it cannot start.
        """
        self._memo = memo
        pause = parking.TRY_AGAIN
        while True:
            try:
                made = await self._attempt(prepare)
            except StepFailed as failed:
                if not _may_pass(failed):
                    # Without the reason: it is in the failure, and a list shows all of it.
                    workflow.upsert_memo(status.preparing_memo(self._memo, "failed", ""))
                    raise
                self.waiting = parking.not_there(failed)
                self._show()
                if project and self.told != f"waiting {self.waiting.message}":
                    await self._tell(project, self.waiting)
                with suppress(TimeoutError):
                    await workflow.wait_condition(lambda: bool(self._asked()), timeout=pause)
                pause = min(pause * 2, parking.LONGEST)
                await self._heed()
            else:
                self.waiting = None
                return made

    async def _attempt(self, prepare: Callable[[], Coroutine[Any, Any, R]]) -> R:
        """One attempt; given up at once when a person cancels, since documents may take long."""

        def cancels() -> Letter | None:
            return next((one for one in self._asked() if one.signal == "cancel"), None)

        attempt = asyncio.create_task(prepare())
        # Temporal's own as well is heeded once it is known whether there is something to close.
        with suppress(asyncio.CancelledError):
            await workflow.wait_condition(lambda: attempt.done() or cancels() is not None)
        if given_up := not attempt.done():
            attempt.cancel()
            await to_its_end(workflow.wait([attempt]))
        if attempt.cancelled() or attempt.exception() is not None:
            if is_cancelled():
                raise asyncio.CancelledError
            if given_up and (letter := cancels()):
                await self._cancel(letter)
        return attempt.result()

    def _asked(self) -> list[Letter]:
        """What people want of a start; other letters are for the job once it has begun."""
        return [
            one
            for one in self._inbox.letters
            if one.signal in ("resume", "cancel") and "job" not in one.payload
        ]

    async def _heed(self) -> None:
        for letter in self._asked():
            if letter.signal == "cancel":
                await self._cancel(letter)
            before = self._inbox.letters[: self._inbox.letters.index(letter)]
            for pause in [one for one in before if one.signal == "pause"]:
                self._inbox.letters.remove(pause)
            self._inbox.letters.remove(letter)
            if letter.payload.get("set"):
                self._inbox.refuse(
                    "signal resume: the job has not begun; cancel it and start it with these "
                    "settings"
                )

    async def _cancel(self, letter: Letter) -> NoReturn:
        """There is nothing to close, and only the server can end it as cancelled."""
        reason = letter.payload.get("reason") or "by a person"
        told = f"cancelled before it began: {reason}"
        self.waiting = None
        self._inbox.notice(told)
        workflow.set_current_details(told)
        workflow.upsert_memo(status.preparing_memo(self._memo, "cancelled", told))
        try:
            await self._steps.cancel_start(reason)
        except StepFailed:
            raise Refused(told) from None
        await workflow.wait_condition(is_cancelled)
        raise asyncio.CancelledError

    async def _tell(self, project_id: str, waiting: Waiting) -> None:
        """Tell the project, which would show its job as at work."""
        self.told = f"waiting {waiting.message}"
        told = status.report_of_start(waiting, workflow.info().workflow_id)
        if why := await self._steps.tell(project_id, "report", told.model_dump(mode="json")):
            self._inbox.notice(f"project {project_id} could not be told: {why}")

    def _show(self) -> None:
        assert self.waiting
        workflow.set_current_details(status.preparing_details(self.waiting, self._inbox.notices))
        word = f"waiting: {self.waiting.reason}"
        workflow.upsert_memo(status.preparing_memo(self._memo, word, self.waiting.message))


def _may_pass(failed: StepFailed) -> bool:
    """Whether a person can mend it and the start then go on."""
    return failed.kind in ("Dependency", "Storage", "WrongRoot")
