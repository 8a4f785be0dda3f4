"""Queries that wait for a worker which is not ready for them."""

import asyncio
from typing import Any

from temporalio.client import WorkflowHandle, WorkflowQueryFailedError

from engine.setup_errors import TOO_EARLY
from protocol.notices import Notice


async def query_status(handle: WorkflowHandle[Any, Any]) -> dict[str, Any]:
    """Return the job's status, with notices as people read them.

    Query again while a new worker has no workflow task yet.
    """
    while True:
        try:
            status: dict[str, Any] = await handle.query("status")
        except WorkflowQueryFailedError as error:
            if TOO_EARLY not in str(error):
                raise
            await asyncio.sleep(0.1)
        else:
            return {**status, "notices": notice_texts(status)}


def notice_texts(status: dict[str, Any]) -> list[str]:
    return [str(Notice.model_validate(each)) for each in status.get("notices") or []]
