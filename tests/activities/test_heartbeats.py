"""Heartbeats of work in a thread."""

from __future__ import annotations

from temporalio.testing import ActivityEnvironment

from activities.heartbeats import now_and_then


def test_a_loop_that_asks_at_every_turn_sends_one_in_a_second() -> None:
    sent: list[object] = []
    environment = ActivityEnvironment()
    environment.on_heartbeat = lambda *details: sent.append(details)

    def loop() -> None:
        beat = now_and_then()
        for _ in range(1000):
            beat()

    environment.run(loop)
    assert len(sent) == 1
