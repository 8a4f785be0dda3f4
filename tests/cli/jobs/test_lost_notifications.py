"""Notifications that did not arrive: what `list` and `doctor` say, and until when."""

import asyncio
from datetime import timedelta

import pytest
from temporalio import activity
from temporalio.client import Client, WorkflowFailureError
from temporalio.exceptions import ApplicationError
from temporalio.runtime import MetricBuffer, Runtime, TelemetryConfig

from cli.jobs import lost_notifications
from cli.jobs.lost_notifications import lost_notifications_line
from engine.connection import connect_client
from engine.development import development_server
from engine.service import build_worker
from protocol.notification_requests import Destination, Notification, NotifyRequest, Sending, Sent
from workflows.runtime.notification_delivery import Notify

QUEUE = "notifying"
CHAT = Destination(on=["end"], url="https://chat.example.org/hooks/secret")
MAIL = Destination(on=["end"], command="/bin/mail", name="mail")


@activity.defn(name="send_notification")
async def send(request: Sending) -> Sent:
    """Deliver to hooks, and for one job to addresses; give up at once otherwise."""
    if request.to.command or request.notification.job == "later":
        return Sent(status=200)
    raise ApplicationError("The notification is not sent: chat answered 404", non_retryable=True)


async def notify(client: Client, job: str) -> None:
    """Send what a job would send, as far as it can be sent."""
    lost = Notification(
        key=f"1.{job}", event="end", job=job, agent="a", status="x", text="It ended."
    )
    request = NotifyRequest(notification=lost, to=[CHAT, MAIL], team="blue")
    await client.execute_workflow(
        "Notify", request.model_dump(exclude_defaults=True), id=f"{job}/notify/{lost.key}",
        task_queue=QUEUE, memo={"to": [to.title for to in request.to]},
    )  # fmt: skip


async def line(client: Client, word: str) -> str:
    """Return the line once it has this word; the server lists what happened a moment later."""
    async with asyncio.timeout(30):
        while word not in (said := await lost_notifications_line(client)) or (said and not word):  # noqa: ASYNC110 - the server reports nothing
            await asyncio.sleep(0.1)
    return said


def counted(metrics: MetricBuffer) -> list[tuple[object, ...]]:
    lost = [
        each
        for each in metrics.retrieve_updates()
        if each.metric.name == "longhaul_notifications_lost"
    ]
    labels = ("agent", "team", "event")
    return [(*(each.attributes.get(label) for label in labels), each.value) for each in lost]


async def lose_and_look(monkeypatch: pytest.MonkeyPatch) -> None:
    metrics = MetricBuffer(1000)
    runtime = Runtime(telemetry=TelemetryConfig(metrics=metrics))
    async with development_server(ui=False) as running:
        monkeypatch.setenv("TEMPORAL_ADDRESS", running.address)
        client = await connect_client(runtime=runtime)
        assert await lost_notifications_line(client) == ""
        async with build_worker(client, task_queue=QUEUE, workflows=[Notify], activities=[send]):
            for job in ("tea", "soup"):
                with pytest.raises(WorkflowFailureError):
                    await notify(client, job)
            both = await line(client, "2 notifications")
            assert "did not arrive, the first of 20" in both
            assert "(2 given up), for chat.example.org (The notification is not sent: chat " in both
            assert both.index("404), about ") < both.index("tea") < both.index("; correct the")
            assert "soup" in both
            assert "secret" not in both
            assert "mail" not in both
            assert counted(metrics) == [("a", "blue", "end", 1), ("a", "blue", "end", 1)]
            await notify(client, "later")
            await line(client, "")
        # Nobody sends this one.
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(notify(client, "cake"), 1)
        monkeypatch.setattr(lost_notifications, "LATE", timedelta(0))
        tried = await line(client, "1 still tried")
        assert "for chat.example.org, mail, about cake" in tried


def test_what_did_not_arrive_is_named_until_a_later_one_arrives(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asyncio.run(lose_and_look(monkeypatch))
