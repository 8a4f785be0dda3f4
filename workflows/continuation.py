"""Continue-as-new: what one run of a job or project hands over to the next, and when."""

from __future__ import annotations

from typing import Any, TypeVar

from temporalio import workflow

from protocol.payloads import check_decrypted
from protocol.project import ProjectRecord
from protocol.record import JobRecord
from workflows.inbox import Inbox

Record = TypeVar("Record", JobRecord, ProjectRecord)

MAX_HISTORY_BYTES = 10 << 20
"""The server ends a run at five times that, which some dozens of the largest signals fill long
before there are many events."""


class Continuation:
    """The chain of runs that make up one job or project."""

    def __init__(self, inbox: Inbox) -> None:
        self._inbox = inbox
        self.started_at = ""
        """When the first run began, which the server forgets before the last one is closed."""

    def restore_record(self, kind: type[Record], start: tuple[Any, ...]) -> Record | None:
        """The record that the run before this one handed over; None in the first run."""
        if not workflow.info().continued_run_id:
            self.started_at = workflow.info().workflow_start_time.isoformat(timespec="seconds")
            return None
        check_decrypted(start)
        record = kind.model_validate(start[0])
        self.started_at = record.started_at
        self._inbox.signals[:0] = record.inbox
        self._inbox.notices[:0] = record.notices
        return record

    def is_due(self, record: JobRecord | ProjectRecord, events: int) -> bool:
        """Whether this run has so many events, or so many bytes, that a new one is due.

        Not while the record fits into no payload, which would fail the workflow task for ever. It
        fits once its signals are handled and its notes are in the store; until then the run grows.
        """
        info = workflow.info()
        record.inbox = self._inbox.signals
        is_long = (
            info.get_current_history_length() >= events
            or info.get_current_history_size() >= MAX_HISTORY_BYTES
        )
        return is_long and record.fits

    def begin_run(self, record: JobRecord | ProjectRecord) -> None:
        """Begin a new run with the same state. Does not return."""
        record.inbox, record.notices = self._inbox.signals, self._inbox.notices
        record.started_at = self.started_at
        workflow.continue_as_new(args=[record.model_dump(mode="json", exclude_defaults=True)])
