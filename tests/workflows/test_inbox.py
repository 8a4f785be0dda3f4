"""Signals are kept in order or refused visibly, and what is kept stays bounded."""

from __future__ import annotations

from typing import Any

import pytest

from workflows.inbox import MAX_CHARACTERS, MAX_LETTERS, MAX_NOTICES, Inbox


def test_letters_keep_their_order_and_only_what_was_sent() -> None:
    inbox = Inbox()
    inbox.put("pause", ())
    inbox.put("resume", (None,))
    inbox.put("rewind", ({"issue": "wrong", "phase": 2},))
    assert [(letter.signal, letter.payload) for letter in inbox.letters] == [
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
        ("rewind", ({"issue": "x", "fase": 3},), "its keys are: issue, phase, restore_files"),
        ("rewind", ({"issue": "x", "phase": 0},), "phase"),
        ("rewind", ({"issue": "x" * 20_001},), "issue"),
        ("rewind", ({"issue": "x"}, {"issue": "y"}), "found 2 values"),
        ("cancel", ("now",), "expected a JSON object, found 'now'"),
        ("pause", ({"undecodable": "odd"},), "its keys are: none"),
        ("x" * 100_000, (), "is not known"),
    ],
)
def test_what_cannot_be_used_is_refused(signal: str, values: Any, expected: str) -> None:
    inbox = Inbox()
    inbox.put(signal, values)
    assert inbox.letters == []
    assert inbox.refused == 1
    assert inbox.notices[0].startswith("refused: ")
    assert len(inbox.notices[0]) <= 500
    assert expected in inbox.notices[0] or len(signal) > 500


def test_a_flood_is_refused_before_it_cannot_be_carried_over() -> None:
    many, heavy = Inbox(), Inbox()
    for _ in range(MAX_LETTERS + 5):
        many.put("pause", ())
    for _ in range(60):
        heavy.put("rewind", ({"issue": "x" * 20_000},))
    assert (len(many.letters), many.refused) == (MAX_LETTERS, 5)
    assert sum(len(str(letter.payload)) for letter in heavy.letters) <= MAX_CHARACTERS
    assert len(heavy.letters) + heavy.refused == 60
    assert "send it again later" in heavy.notices[-1]
    assert len(heavy.notices) == MAX_NOTICES


@pytest.mark.parametrize(
    ("signal", "urgent"), [("rewind", True), ("cancel", True), ("pause", False), ("resume", False)]
)
def test_only_rewind_and_cancel_break_into_a_step(signal: str, urgent: bool) -> None:
    inbox = Inbox()
    inbox.put(signal, ({"issue": "x"},) if signal == "rewind" else ())
    assert inbox.urgent({1, 2}) is urgent


def test_a_rewind_to_a_phase_that_does_not_exist_waits_its_turn() -> None:
    inbox = Inbox()
    inbox.put("rewind", ({"issue": "x", "phase": 7},))
    assert not inbox.urgent({1, 2})
    inbox.put("rewind", ({"issue": "x", "phase": 2},))
    assert inbox.urgent({1, 2})
