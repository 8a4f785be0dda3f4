"""Turns at an endpoint with a quota: what is used of it, what is refused, and who gets it."""

import heapq
import os
import random
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from itertools import pairwise

import pytest
from sqlalchemy import Connection, select

from activities.checkpoints import Root
from activities.stores.endpoint_turns import (
    Quota,
    Schedule,
    TurnKey,
    postpone_turns,
    settle_turn,
    wait_for_turn,
)
from activities.stores.relational_store import RelationalStore
from activities.stores.schema import TURNS
from tests.activities.stores.test_processes import process, received

JOBS, MINUTE = 200, 60.0
HERE = TurnKey("http://here/v1 m KEY", "job 1")
THERE = TurnKey(HERE.endpoint, "job 2")


class Endpoint:
    """Refuses what exceeds its quota within any minute."""

    def __init__(self, quota: Quota) -> None:
        self.quota = quota
        self.answered: deque[tuple[float, int]] = deque()
        self.tokens = self.refused = self.total = 0

    def take(self, now: float, tokens: int) -> bool:
        while self.answered and self.answered[0][0] <= now - MINUTE:
            self.tokens -= self.answered.popleft()[1]
        full = self.quota.requests is not None and len(self.answered) >= self.quota.requests
        if full or (self.quota.tokens and self.tokens + tokens > self.quota.tokens):
            self.refused += 1
            return False
        self.answered.append((now, tokens))
        self.tokens += tokens
        self.total += tokens if self.quota.tokens else 1
        return True


@pytest.mark.parametrize("quota", [Quota(600, None), Quota(None, 2_000_000)], ids=str)
def test_two_hundred_jobs_use_a_quota_evenly_and_are_not_refused(quota: Quota) -> None:
    chance, schedule, endpoint = random.Random(7), Schedule(), Endpoint(quota)
    done = [0] * JOBS
    minutes = 20
    asking = [(chance.random(), job) for job in range(JOBS)]
    settling: list[tuple[float, int, int, float, int]] = []
    heapq.heapify(asking)
    while asking[0][0] < minutes * MINUTE:
        now, job = heapq.heappop(asking)
        while settling and settling[0][0] <= now:
            _, _, size, estimate, tokens = heapq.heappop(settling)
            schedule.settle(quota, size, estimate, tokens)
        size = chance.randint(4_000, 40_000)
        tokens = int(size * 0.25) + chance.randint(50, 1_500)
        at, estimate = schedule.take_turn(now, quota, size)
        sent = at + chance.random() * 0.2
        end = sent + chance.uniform(0.5, 4)
        if endpoint.take(sent, tokens):
            done[job] += sent < minutes * MINUTE
        heapq.heappush(settling, (end, job, size, estimate, tokens))
        heapq.heappush(asking, (end, job))
    allowed = (quota.tokens or quota.requests or 0) * minutes
    assert endpoint.total >= 0.95 * allowed
    assert endpoint.refused < 0.01 * sum(done)
    assert max(done) - min(done) <= 0.1 * sum(done) / JOBS


def turn_time(connection: Connection, key: TurnKey) -> float:
    return float(connection.scalar(select(TURNS.c.at).where(key.row)) or 0)


def take_turns(
    root: Root, url: str, quota: Quota, count: int, _send: Callable[[float], None]
) -> list[float]:
    """Return the times of so many turns, one after the other."""
    store, times = RelationalStore(root, url), []
    for number in range(count):
        key = TurnKey(HERE.endpoint, f"{os.getpid()} {number}")
        while seconds := wait(store, key, quota):
            time.sleep(seconds)
        times.append(store.read(partial(turn_time, key=key)))
        store.run(partial(settle_turn, key=key, quota=quota, used=30))
    return times


def test_two_processes_share_one_quota(root: Root, url: str) -> None:
    quota, count = Quota(1_200, None), 20
    with (
        process(take_turns, root, url, quota, count) as (_, first),
        process(take_turns, root, url, quota, count) as (_, second),
    ):
        times = sorted([*received(first), *received(second)])
    pauses = [later - before for before, later in pairwise(times)]
    assert len(times) == 2 * count
    assert min(pauses) >= 0.99 * quota.request_seconds


SLOW = 15
"""Seconds that a busy machine may take between two looks."""


def wait(store: RelationalStore, key: TurnKey, quota: Quota, size: int = 100) -> float:
    return store.run(partial(wait_for_turn, key=key, quota=quota, size=size))


def test_a_repeated_call_keeps_its_turn_until_that_is_over(store: RelationalStore) -> None:
    quota = Quota(1, None)
    assert wait(store, HERE, quota) == 0
    assert wait(store, THERE, quota) == pytest.approx(61.2, abs=SLOW)
    assert wait(store, THERE, quota) == pytest.approx(61.2, abs=SLOW)
    store.run(partial(settle_turn, key=HERE, quota=quota, used=None))
    assert wait(store, HERE, quota) == pytest.approx(122.4, abs=SLOW)


def test_what_a_reply_has_used_makes_the_next_turn_earlier_or_later(store: RelationalStore) -> None:
    quota = Quota(None, 1_000)
    assert wait(store, HERE, quota, 2_000) == 0
    store.run(partial(settle_turn, key=HERE, quota=quota, used=1_000))
    assert wait(store, THERE, quota) == pytest.approx(61.2, abs=SLOW)


def test_a_refusal_postpones_all_turns_once(store: RelationalStore) -> None:
    quota = Quota(1, None)
    assert wait(store, HERE, quota) == 0
    assert wait(store, THERE, quota) == pytest.approx(61.2, abs=SLOW)
    for _ in range(2):
        store.run(lambda c: postpone_turns(c, HERE.endpoint, 300))
    assert wait(store, THERE, quota) == pytest.approx(300, abs=SLOW)
    third = TurnKey(HERE.endpoint, "job 3")
    assert wait(store, third, quota) == pytest.approx(361.2, abs=SLOW)
    assert wait(store, TurnKey("http://other/v1 m KEY", "job 3"), quota) == 0
