"""Updates what Temporal Web shows of a job or project: details, memo, search attributes."""

from __future__ import annotations

from temporalio import workflow
from temporalio.common import SearchAttributeKey

from workflows.continuation import Continuation


class WebDisplay:
    """Writes memo and search attributes only when they change: each write is in the history."""

    def __init__(self, continuation: Continuation) -> None:
        self._continuation = continuation
        self._memo: dict[str, str] = {}
        self._attributes: dict[str, str] = {}

    def update(self, details: str, memo: dict[str, str], attributes: dict[str, str]) -> None:
        workflow.set_current_details(details)
        memo = {**memo, "began": self._continuation.started_at}
        if memo != self._memo:
            workflow.upsert_memo(memo)
        if attributes != self._attributes:
            workflow.upsert_search_attributes(
                [SearchAttributeKey.for_keyword(k).value_set(v) for k, v in attributes.items()]
            )
        self._memo, self._attributes = memo, attributes
