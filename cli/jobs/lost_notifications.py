"""Notifications that did not reach people, as the server knows them. Needs no worker."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from pydantic import TypeAdapter, ValidationError
from temporalio.client import Client, WorkflowExecution, WorkflowExecutionStatus
from temporalio.service import RPCError

from protocol.notification_requests import LOST, NOTIFY, RECIPIENTS, LostNotification
from protocol.short_text import count_noun, first_few, one_line

DAYS = 7
"""How long one that was given up is named, unless a later one reaches the same recipient."""
LATE = timedelta(minutes=10)
"""How long one may be tried before it is named."""
MOST, MOST_ASKED = 200, 5
"""Notifications that are examined, and that are asked why they are still tried."""
WHY_CHARACTERS = 150
REMEDY = (
    "correct the recipient, `notify` or its hook; `starter.py doctor --leave 1h AGENT` sends a test"
)
_LOST = TypeAdapter(list[LostNotification])


@dataclass(frozen=True)
class _LateNotification:
    job: str
    since: datetime
    given_up: datetime | None
    """None while it is still tried."""
    lost: list[LostNotification]


async def lost_notifications_notice(client: Client) -> str:
    """Say how many notifications did not arrive, since when, for whom, why and about which jobs.

    Empty if all arrived. Raises RPCError.
    """
    late = await _list_late_notifications(client)
    if given_up := [each.given_up for each in late if each.given_up]:
        reached = await _list_reached(client, min(given_up))
        late = [each for each in late if not _is_mended(each, reached)]
    if not late:
        return ""
    counts = {"given up": sum(each.given_up is not None for each in late)}
    counts["still tried"] = len(late) - counts["given up"]
    state = ", ".join(f"{count} {word}" for word, count in counts.items() if count)
    since = f"{min(each.since for each in late).astimezone():%Y-%m-%d %H:%M:%S}"
    whys = {lost.to: lost.why for each in late for lost in each.lost}
    whom = [f"{to} ({one_line(why, WHY_CHARACTERS)})" if why else to for to, why in whys.items()]
    about = list(dict.fromkeys(each.job for each in late))
    return (
        f"{count_noun(len(late), 'notification')} did not arrive, the first of {since} ({state}), "
        f"for {first_few(whom, 3)}, about {first_few(about, 3)}"
    )


async def lost_notifications_line(client: Client) -> str:
    """Return that notice with what to do; empty also if the server does not say."""
    try:
        notice = await lost_notifications_notice(client)
    except RPCError:
        return ""
    return f"{notice}; {REMEDY}" if notice else ""


async def _list_late_notifications(client: Client) -> list[_LateNotification]:
    now = datetime.now(UTC)
    query = (
        f"(ExecutionStatus = 'Failed' AND CloseTime > '{_stamp(now - timedelta(days=DAYS))}') OR "
        f"(ExecutionStatus = 'Running' AND StartTime < '{_stamp(now - LATE)}')"
    )
    found, asked = [], 0
    for execution in await _list_notifications(client, query):
        job, memo = execution.id.rpartition(NOTIFY)[0], await execution.memo()
        if execution.status == WorkflowExecutionStatus.RUNNING:
            asked += 1
            why = await _last_failure(client, execution) if asked <= MOST_ASKED else ""
            lost = [LostNotification(to=to, why=why) for to in _recipients(memo)]
            found.append(_LateNotification(job, execution.start_time, None, lost))
        elif lost := _lost(memo):
            found.append(_LateNotification(job, execution.start_time, execution.close_time, lost))
    return found


async def _list_reached(client: Client, since: datetime) -> dict[str, datetime]:
    """Return when the newest notification began that reached each recipient."""
    query = f"ExecutionStatus = 'Completed' AND StartTime > '{_stamp(since)}'"
    reached: dict[str, datetime] = {}
    for execution in await _list_notifications(client, query):
        for to in _recipients(await execution.memo()):
            reached[to] = max(execution.start_time, reached.get(to, execution.start_time))
    return reached


async def _list_notifications(client: Client, query: str) -> list[WorkflowExecution]:
    query = f"WorkflowType = 'Notify' AND ({query})"
    return [each async for each in client.list_workflows(query, limit=MOST)]


def _is_mended(late: _LateNotification, reached: Mapping[str, datetime]) -> bool:
    """Whether later notifications reached all recipients that this one did not."""
    given_up = late.given_up
    return given_up is not None and all(
        lost.to in reached and reached[lost.to] > given_up for lost in late.lost
    )


async def _last_failure(client: Client, execution: WorkflowExecution) -> str:
    """Return why the last attempt of one that is still tried failed; empty if none did."""
    description = await client.get_workflow_handle(execution.id).describe()
    pending = description.raw_description.pending_activities
    return next((each.last_failure.message for each in pending if each.last_failure.message), "")


def _lost(memo: Mapping[str, object]) -> list[LostNotification]:
    # Anyone who starts a workflow can set its memo, and without its key it cannot be read.
    try:
        return _LOST.validate_python(memo.get(LOST) or [])
    except ValidationError:
        return []


def _recipients(memo: Mapping[str, object]) -> list[str]:
    named = memo.get(RECIPIENTS)
    return [str(to) for to in named] if isinstance(named, list) else []


def _stamp(time: datetime) -> str:
    return f"{time.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
