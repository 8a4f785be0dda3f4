"""Updates what Temporal Web shows of a job or project: details, memo, search attributes."""

from __future__ import annotations

from collections.abc import Collection

from temporalio import workflow
from temporalio.common import SearchAttributeKey

from protocol.outline import Outline
from protocol.search_attribute_names import AGENT, PHASE, STATUS
from protocol.status import AnyStatus
from protocol.waiting import status_value
from workflows.continuation import Continuation
from workflows.outline_markdown import outline_markdown


class WebDisplay:
    """Writes memo and search attributes only when they change: each write is in the history."""

    def __init__(self, continuation: Continuation) -> None:
        self._continuation = continuation
        self._memo: dict[str, str] = {}
        self._attributes: dict[str, str] = {}

    def update(self, outline: Outline, memo: dict[str, str], attributes: dict[str, str]) -> None:
        workflow.set_current_details(outline_markdown(outline))
        memo = {**memo, "began": self._continuation.started_at}
        if memo != self._memo:
            workflow.upsert_memo(memo)
        if attributes != self._attributes:
            workflow.upsert_search_attributes(
                [SearchAttributeKey.for_keyword(k).value_set(v) for k, v in attributes.items()]
            )
        self._memo, self._attributes = memo, attributes


def status_memo(status: AnyStatus, state: str) -> dict[str, str]:
    """Return the last state in short, for lists, and for when no worker can be asked."""
    word = status_value(status.status, status.waiting_for)
    return {"title": status.title, "agent": status.agent or "", "status": word, "state": state}


def search_attributes(
    memo: dict[str, str], registered: Collection[str], **more: str
) -> dict[str, str]:
    """Return the memo's values of the search attributes that the server has registered.

    Args:
        more: Further values, by the names of their attributes.
    """
    values = {
        AGENT: memo["agent"],
        STATUS: memo["status"],
        PHASE: memo.get("phase") or memo["state"][:100],
        **more,
    }
    return {name: value for name, value in values.items() if name in registered}
