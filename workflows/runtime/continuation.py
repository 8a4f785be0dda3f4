"""Continue-as-new: the state that one run passes to the next, and when."""

from typing import Any, TypeVar

from temporalio import workflow

from protocol.job_record import JobRecord
from protocol.payload_reading import InvalidPayload, check_payload_is_decrypted
from protocol.project_record import ProjectRecord
from workflows.runtime.inbox import Inbox

Record = TypeVar("Record", JobRecord, ProjectRecord)

MAX_HISTORY_BYTES = 10 << 20
"""A fifth of the server's limit. A few dozen signals of maximum size would exceed that limit long
before the history has many events.
"""


class Continuation:
    """The chain of runs of one job or project."""

    def __init__(self, inbox: Inbox) -> None:
        self._inbox = inbox
        self.started_at = ""
        """Start of the first run (ISO 8601); the server may forget that run before the last one
        closes."""

    def restore_record(self, kind: type[Record], start: tuple[Any, ...]) -> Record | None:
        """Return the record of the previous run and restore its inbox; None in the first run.

        Raises:
            InvalidPayload: The server has begun the run anew, so its input is that of a start.
        """
        info = workflow.info()
        if info.cron_schedule or info.attempt > 1:
            raise InvalidPayload(
                "a cron or a retry policy cannot begin a job or project again, which goes on from "
                "its checkpoints; a schedule can start others (`starter.py start --every`)"
            )
        if not info.continued_run_id:
            self.started_at = info.workflow_start_time.isoformat(timespec="seconds")
            return None
        check_payload_is_decrypted(start)
        record = kind.model_validate(start[0])
        self.started_at = record.started_at
        self._inbox.restore(record.inbox, record.notices)
        return record

    def is_due(self, record: JobRecord | ProjectRecord, events: int) -> bool:
        """Return whether the run has enough events or bytes of history to continue as new.

        False while the record exceeds the size of a payload, which would fail the workflow task
        forever. The record shrinks once its signals are handled and its traces stored; until then
        the run grows.
        """
        info = workflow.info()
        record.inbox = self._inbox.signals
        is_long = (
            info.get_current_history_length() >= events
            or info.get_current_history_size() >= MAX_HISTORY_BYTES
        )
        return is_long and record.fits

    async def begin_run(self, record: JobRecord | ProjectRecord) -> None:
        """Continue as new with the same state. Does not return."""
        await self._inbox.close()
        record.inbox, record.notices = self._inbox.signals, self._inbox.notices
        record.started_at = self.started_at
        workflow.continue_as_new(args=[record.model_dump(mode="json", exclude_defaults=True)])
