"""What people send by signals: each way of writing it is read, or refused with what is wrong."""

from typing import Any

import pytest

from protocol.payload_reading import InvalidPayload, read_signal_payload


@pytest.mark.parametrize(
    ("sent", "read"),
    [
        ({"phase.model_calls": 800}, {"phase": {"model_calls": 800}}),
        ({"phase": {"model_calls": 800}}, {"phase": {"model_calls": 800}}),
        (
            {"cost": 9, "phase.cost": 8, "phase": {"tokens": 7}},
            {"cost": 9, "phase": {"cost": 8, "tokens": 7}},
        ),
    ],
)
def test_limits_of_phases_are_read_as_the_command_line_writes_them(
    sent: dict[str, Any], read: dict[str, Any]
) -> None:
    assert read_signal_payload("limit", (sent,)).model_dump(exclude_unset=True) == read


@pytest.mark.parametrize(
    ("signal", "sent", "why"),
    [
        ("limit", {"phase.cost": 8, "phase": {"cost": 7}}, "phase.cost is given twice"),
        ("limit", {"phase.nope": 8}, "phase.nope: unknown key"),
        ("limit", {"phase": 8, "phase.cost": 7}, "phase"),
        ("rewind", {"issue": " \n"}, "issue: must not be blank"),
        ("answer", {"text": " "}, "text: must not be blank"),
        ("deny", {"reason": "\t"}, "reason: must not be blank"),
        ("tell", {"text": " "}, "text: must not be blank"),
    ],
)
def test_what_cannot_be_meant_is_refused(signal: str, sent: dict[str, Any], why: str) -> None:
    with pytest.raises(InvalidPayload, match=why):
        read_signal_payload(signal, (sent,))
