"""Turns at an endpoint with a quota: what is used of it, what is refused, and who gets it."""

import os
import time
from collections.abc import Callable
from functools import partial

import pytest
from sqlalchemy import Connection

from activities.checkpoints import Root
from activities.stores.endpoint_turns import (
    UNUSED_SECONDS,
    EndpointTurns,
    TurnKey,
    TurnWait,
    endpoint_has_quota,
)
from activities.stores.learned_quota import LearnedQuota, NamedLimits, Quota
from activities.stores.relational_store import RelationalStore
from tests.activities.stores.limited_endpoint import AnyMinute, Buckets, Outcome, Play
from tests.activities.stores.test_processes import process, received
from tests.soak import soak

HERE = TurnKey("http://here/v1 m KEY", "job 1", "call 1")
THERE = TurnKey(HERE.endpoint, "job 2", "call 2")
NOTHING = Quota(None, None)
EQUAL = [1.0] * 200
MINUTES = soak(1, 20)


def used_share(outcome: Outcome, quota: Quota, minutes: float) -> float:
    """Return the share of what is used of the quota that is used up first."""
    calls = sum(outcome.done.values()) / minutes
    requests = calls / quota.requests if quota.requests else 0.0
    return max(requests, outcome.tokens / minutes / quota.tokens if quota.tokens else 0.0)


def refused_share(outcome: Outcome) -> float:
    return outcome.refused / (sum(outcome.done.values()) + outcome.refused)


def test_two_hundred_jobs_use_a_set_quota_evenly_and_are_not_refused() -> None:
    quota = Quota(120, 900_000)
    outcome = Play(AnyMinute(quota, names=False), EQUAL, quota).run(60, 60 * MINUTES)
    assert used_share(outcome, quota, MINUTES) >= 0.95
    assert refused_share(outcome) < 0.01
    assert max(outcome.done.values()) - min(outcome.done.values()) <= 2


@pytest.mark.parametrize(
    "endpoint",
    soak(
        # It counts a tenth of what we count: cached tokens are free.
        [Buckets(Quota(120, 60_000), free_cached=0.9)],
        [
            AnyMinute(Quota(120, 900_000)),
            AnyMinute(Quota(2_400, 700_000)),
            Buckets(Quota(120, 900_000)),
            Buckets(Quota(120, 60_000), free_cached=0.9),
        ],
    ),
)
def test_two_hundred_jobs_use_the_quota_that_the_answers_name(
    endpoint: AnyMinute | Buckets,
) -> None:
    outcome = Play(endpoint, EQUAL).run(180, 60 * MINUTES)
    quota = endpoint.quota
    if isinstance(endpoint, Buckets) and endpoint.free_cached:
        quota = Quota(quota.requests, 10 * (quota.tokens or 0))
    assert used_share(outcome, quota, MINUTES) >= 0.95
    assert refused_share(outcome) < 0.01


def test_refusals_alone_teach_most_of_a_quota() -> None:
    quota = Quota(120, None)
    outcome = Play(AnyMinute(quota, names=False), EQUAL).run(120, 60 * MINUTES)
    assert used_share(outcome, quota, MINUTES) >= 0.9
    assert refused_share(outcome) < 0.02


def test_what_workers_sent_that_learn_of_a_quota_together_adds_up() -> None:
    learned = LearnedQuota()
    learned.note_refusal(1_000, None, 400, "a")
    # Each once, in whatever order; and none that was sent by the rate.
    learned.note_refusal(1_001, None, 400, "a")
    learned.note_refusal(1_003, 995, 380, "b")
    learned.note_refusal(1_004, 995, 380, "b")
    learned.note_refusal(1_005, 1_002, 380, "c")
    assert learned.rate == pytest.approx(0.9 * 780)


def test_waiting_for_a_place_raises_no_learned_rate(store: RelationalStore) -> None:
    def ask(at: float, *, settled: bool) -> float:
        def look(connection: Connection) -> float:
            asked = turns(connection, Quota(None, None, 1), at)
            if not asked.learned.rate:
                asked.note_refusal(THERE, 0, 400, "a")
            if settled:
                asked.leave(THERE.call)
            asked.ask(THERE if at == 1_000 else HERE, 100, THERE.call)
            asked.save()
            return asked.learned.rate or 0.0

        return store.run(look)

    rates = [ask(at, settled=at == 1_020) for at in (1_000, 1_010, 1_020)]
    assert rates[0] == rates[-1] == 360


def test_jobs_get_turns_by_their_weight() -> None:
    weights = [*[1.0] * 20, *[2.0] * 12, *[4.0] * 8]
    quota = Quota(240, None)
    play = Play(AnyMinute(quota, names=False), weights, quota, latency=(0.5, 2))
    outcome = play.run(20, 90 * MINUTES)
    calls = {
        weight: [outcome.done[job] for job, own in enumerate(weights) if own == weight]
        for weight in (1.0, 2.0, 4.0)
    }
    shares = [sum(each) / len(each) / weight for weight, each in calls.items()]
    assert max(shares) <= 1.1 * min(shares)
    # A job of weight 1 has a turn in each round, before or after one turn of each other job.
    assert max(outcome.waits) < (sum(weights) + len(weights)) * quota.request_seconds


def turns(
    connection: Connection, quota: Quota = NOTHING, clock: float | None = None
) -> EndpointTurns:
    return EndpointTurns(connection, HERE.endpoint, quota, clock)


def take_turns(
    root: Root, url: str, quota: Quota, count: int, _send: Callable[[float], None]
) -> list[float]:
    """Return the times of so many turns, one after the other."""
    store, times = RelationalStore(root, url), []
    for number in range(count):
        key = TurnKey(HERE.endpoint, f"{os.getpid()}", f"{os.getpid()} {number}")
        while (asked := wait(store, key, quota)).seconds:
            time.sleep(asked.look_seconds)
        times.append(time.time())
        settle(store, key, quota, 30)
    return times


def test_two_processes_share_one_quota(root: Root, url: str) -> None:
    quota, count = Quota(1_200, None), 20
    with (
        process(take_turns, root, url, quota, count) as (_, first),
        process(take_turns, root, url, quota, count) as (_, second),
    ):
        times = sorted([*received(first), *received(second)])
    assert len(times) == 2 * count
    for place, begun in enumerate(times):
        allowed = 2 + (times[-1] - begun + UNUSED_SECONDS) / quota.request_seconds
        assert len(times) - place <= allowed


SLOW = 15
"""Seconds that a busy machine may take between two looks."""


def wait(store: RelationalStore, key: TurnKey, quota: Quota, size: int = 100) -> TurnWait:
    def ask(connection: Connection) -> TurnWait:
        asked = EndpointTurns(connection, key.endpoint, quota)
        answer = asked.ask(key, size, key.call)
        asked.save()
        return answer

    return store.run(ask)


def settle(store: RelationalStore, key: TurnKey, quota: Quota, used: int | None) -> None:
    def give_up(connection: Connection) -> None:
        asked = turns(connection, quota)
        asked.settle(key, used)
        asked.save()

    store.run(give_up)


def near(seconds: float) -> object:
    return pytest.approx(seconds, abs=SLOW)


def test_a_repeated_call_keeps_its_turn_until_that_is_over(store: RelationalStore) -> None:
    quota = Quota(1, None)
    assert wait(store, HERE, quota).seconds == 0
    assert wait(store, THERE, quota).seconds == near(61.2)
    assert wait(store, THERE, quota).seconds == near(61.2)
    settle(store, HERE, quota, None)
    assert wait(store, HERE, quota).seconds == near(122.4)


def test_a_heavier_job_is_before_those_that_came_earlier(store: RelationalStore) -> None:
    quota = Quota(1, None)
    heavy = TurnKey(HERE.endpoint, "job 9", "call 9", 10)
    assert wait(store, HERE, quota).seconds == 0
    settle(store, HERE, quota, None)
    assert wait(store, heavy, quota).seconds == near(61.2)
    settle(store, heavy, quota, None)
    assert wait(store, HERE, quota).seconds == near(61.2)
    assert wait(store, heavy, quota).seconds == near(61.2)
    assert wait(store, HERE, quota).seconds == near(122.4)


def test_what_a_reply_has_used_makes_the_next_turn_earlier_or_later(store: RelationalStore) -> None:
    quota = Quota(None, 1_000)
    assert wait(store, HERE, quota, 2_000).seconds == 0
    settle(store, HERE, quota, 1_000)
    assert wait(store, THERE, quota).seconds == near(61.2)


def test_a_refusal_postpones_all_turns_once(store: RelationalStore) -> None:
    quota = Quota(1, None)
    assert wait(store, HERE, quota).seconds == 0
    assert wait(store, THERE, quota).seconds == near(61.2)

    def refuse(connection: Connection) -> None:
        asked = turns(connection, quota)
        asked.note_refusal(HERE, 300, 1)
        asked.save()

    for _ in range(2):
        store.run(refuse)
    assert wait(store, THERE, quota).seconds == near(300)
    third = TurnKey(HERE.endpoint, "job 3", "call 3")
    assert wait(store, third, quota).seconds == near(361.2)
    assert wait(store, TurnKey("http://other/v1 m KEY", "job 3", "c"), quota).seconds == 0


def test_what_is_learned_counts_for_all_and_is_forgotten(store: RelationalStore) -> None:
    assert not wait(store, HERE, NOTHING).quota

    def learn(connection: Connection) -> None:
        asked = turns(connection)
        asked.note_limits(NamedLimits(requests=1.0))
        asked.save()

    assert not store.read(lambda c: endpoint_has_quota(c, HERE.endpoint))
    store.run(learn)
    assert store.read(lambda c: endpoint_has_quota(c, HERE.endpoint))
    assert wait(store, HERE, NOTHING).seconds == 0
    assert wait(store, THERE, NOTHING).seconds == near(61.2)
    # What is set counts in place of what is learned.
    assert wait(store, THERE, Quota(60, None)).quota.requests == 60
    assert not store.run(lambda c: turns(c, clock=time.time() + 3_700).quota)
    assert not store.read(partial(endpoint_has_quota, endpoint="http://other/v1 m KEY"))


def test_a_place_is_free_again_when_it_is_left_or_its_lease_has_ended(
    store: RelationalStore,
) -> None:
    quota = Quota(None, None, 1)

    def ask(key: TurnKey, at: float) -> float:
        def look(connection: Connection) -> float:
            asked = turns(connection, quota, at)
            seconds = asked.ask(key, 100, key.call).seconds
            asked.save()
            return seconds

        return store.run(look)

    assert not ask(HERE, 1_000)
    # The store repeats a transaction whose answer was lost.
    assert not ask(HERE, 1_000)
    assert ask(THERE, 1_001)
    store.run(lambda c: turns(c, quota, 1_020).places.renew([HERE.call]))
    assert ask(THERE, 1_049)
    assert not ask(THERE, 1_051)
    store.run(lambda c: turns(c, quota, 1_052).leave(THERE.call))
    assert not ask(HERE, 1_053)
    # A lease that was given before the clock was set back holds nobody up.
    assert not ask(THERE, 500)


def test_the_lowest_limit_of_the_last_minute_counts_for_all(store: RelationalStore) -> None:
    def ask(name: str, at_once: int, at: float) -> float:
        def look(connection: Connection) -> float:
            asked = turns(connection, Quota(None, None, at_once), at)
            seconds = asked.ask(TurnKey(HERE.endpoint, name, name), 100, name).seconds
            asked.save()
            return seconds

        return store.run(look)

    assert not ask("a", 8, 1_000)
    assert not ask("b", 2, 1_001)
    assert ask("c", 8, 1_002)
    assert not ask("d", 8, 1_062)


@pytest.mark.parametrize("seconds", [1e300, float("inf"), float("nan")])
def test_a_refusal_for_ever_ends_after_an_hour(root: Root, seconds: float) -> None:
    store = RelationalStore(root)

    def refuse(connection: Connection) -> None:
        asked = EndpointTurns(connection, HERE.endpoint, NOTHING, 1000.0)
        asked.note_refusal(HERE, seconds, 0)
        asked.save()

    def free_at(connection: Connection) -> float:
        return EndpointTurns(connection, HERE.endpoint, NOTHING, 4600.0).schedule.free_at(4600.0)

    store.run(refuse)
    assert store.run(free_at) <= 4600.0
