"""Signals are kept in order or visibly refused, and the number kept is limited."""

from typing import Any

import pytest

from protocol.scope_ledger import scope_from_texts
from protocol.trace_requests import MOST_CHARACTERS, MOST_KEPT
from tests.workflows.records import record
from workflows.runtime import trace_notes
from workflows.runtime.inbox import FULL, MAX_BYTES, MAX_SIGNALS, Inbox


def test_letters_keep_their_order_and_only_what_was_sent() -> None:
    inbox = Inbox()
    inbox.put("pause", ())
    inbox.put("resume", (None,))
    inbox.put("rewind", ({"issue": "wrong", "phase": 2},))
    assert [(letter.signal, letter.payload) for letter in inbox.signals] == [
        ("pause", {}),
        ("resume", {}),
        ("rewind", {"issue": "wrong", "phase": 2}),
    ]
    assert inbox.refused == 0


@pytest.mark.parametrize(
    ("signal", "values", "expected"),
    [
        ("rewnid", (), "the signals are rewind, cancel, pause, resume, limit"),
        ("rewind", (), "issue: field required"),
        ("rewind", ({"issue": ""},), "issue"),
        ("rewind", ({"issue": "x", "fase": 3},), "its keys are: by, issue, phase, restore_files"),
        ("rewind", ({"issue": "x", "phase": 0},), "phase"),
        ("rewind", ({"issue": "x", "phase": True},), "phase: input should be a valid integer"),
        ("rewind", ({"issue": "x", "phase": 3.0},), "phase: input should be a valid integer"),
        ("rewind", ({"issue": "x", "restore_files": "no"},), "restore_files"),
        ("limit", (), "signal limit: names no limit"),
        ("limit", ({},), 'expected such as {"cost": 20}'),
        ("limit", ({"phase": {}},), "phase: names no limit"),
        ("limit", ({"phase": None},), "phase"),
        ("limit", ({"phase": 3},), "phase"),
        ("limit", ({"phase": {"phase": {"cost": 1}}},), "phase.phase: unknown key"),
        ("limit", ({"cost": "20"},), "cost: input should be a valid number"),
        ("limit", ({"cost": True},), "cost: input should be a valid number"),
        ("limit", ({"cost": None},), "cost: input should be a valid number"),
        ("limit", ({"cost": 0},), "cost: input should be greater than 0"),
        ("limit", ({"cost": -1},), "cost: input should be greater than 0"),
        ("limit", ({"cost": float("nan")},), "cost"),
        ("limit", ({"cost": float("inf")},), "cost"),
        ("limit", ({"cost": 10**400},), "cost"),
        ("limit", ({"tokens": 1.5},), "tokens: input should be a valid integer"),
        ("limit", ({"tokens": True},), "tokens: input should be a valid integer"),
        ("limit", ({"seconds": 10**30},), "seconds"),
        ("limit", ({"cost": 20, "money": 3},), "money: unknown key"),
        ("limit", ({"cost": 20}, {"cost": 30}), "found 2 values"),
        ("rewind", ({"issue": "x" * 20_001},), "issue"),
        ("rewind", ({"issue": "x"}, {"issue": "y"}), "found 2 values"),
        ("cancel", ("now",), "expected a JSON object, found 'now'"),
        ("pause", ({"undecodable": "odd"},), "signal pause: odd"),
        ("x" * 100_000, (), "is not known"),
    ],
)
def test_what_cannot_be_used_is_refused(signal: str, values: Any, expected: str) -> None:
    inbox = Inbox()
    inbox.put(signal, values)
    assert inbox.signals == []
    assert inbox.refused == 1
    [notice] = inbox.notices
    assert (notice.topic, notice.signal) == ("refused signal", signal[:100])
    assert len(notice.text) <= 500
    assert expected in str(notice)


def test_a_flood_is_refused_before_it_cannot_be_carried_over() -> None:
    many, heavy = Inbox(), Inbox()
    for _ in range(MAX_SIGNALS + 5):
        many.put("pause", ())
    for _ in range(60):
        heavy.put("rewind", ({"issue": "x" * 20_000},))
    assert (len(many.signals), many.refused) == (MAX_SIGNALS, 5)
    assert sum(len(str(letter.payload)) for letter in heavy.signals) <= MAX_BYTES
    assert len(heavy.signals) + heavy.refused == 60
    assert [str(each) for each in heavy.notices] == [f"{FULL}{heavy.refused} rewind"]


def test_a_record_that_fits_into_no_payload_does_once_its_letters_are_opened() -> None:
    heavy, text = Inbox(), "茶" * MOST_CHARACTERS
    for _ in range(100):
        heavy.put("answer", ({"text": text * 20},))
    job = record(inbox=heavy.signals)
    job.state.scope = [item.slim for item in scope_from_texts(["茶" * 160] * 2000)]
    assert job.fits
    for _ in range(MOST_KEPT):
        trace_notes.note_trace(
            job, "violation", "gate", "scope", text, why=text, what_was_correct=text, path=text
        )
    assert not job.fits
    job.inbox = []
    assert job.fits


@pytest.mark.parametrize(
    ("signal", "payload", "urgent"),
    [
        ("rewind", {"issue": "x"}, True),
        ("cancel", {}, True),
        ("pause", {}, False),
        ("resume", {}, False),
        ("limit", {"phase": {"cost": 2}}, False),
    ],
)
def test_only_rewind_and_cancel_break_into_a_step(
    signal: str, payload: dict[str, Any], urgent: bool
) -> None:
    inbox = Inbox()
    inbox.put(signal, (payload,))
    assert len(inbox.signals) == 1
    assert inbox.has_urgent({1, 2}) is urgent


def test_a_rewind_to_a_phase_that_does_not_exist_waits_its_turn() -> None:
    inbox = Inbox()
    inbox.put("rewind", ({"issue": "x", "phase": 7},))
    assert not inbox.has_urgent({1, 2})
    inbox.put("rewind", ({"issue": "x", "phase": 2},))
    assert inbox.has_urgent({1, 2})
