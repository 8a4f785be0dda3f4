"""Guards that remember what the job has called: windows, sums and approvals."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from config.schema.guards import Guard, HistoryMatch
from tests.activities.standing import AT, Standing

HOUR = 3600
PAY = ["append_file"]
"""Stands for a payment: `path` is its account, `content` its amount."""


def job(tmp_path: Path, decision: str = "deny", **history: Any) -> Standing:
    rule = Guard.model_validate(
        {
            "name": "memory",
            "point": "before_tool",
            "match": {"tool": PAY, "history": {"tool": PAY, **history}},
            "decision": decision,
            "message": "Not again.",
        }
    )
    standing = Standing.begin(tmp_path)
    standing.pin(standing.open().config.model_copy(update={"rules": [rule]}))
    return standing


def paid(standing: Standing, account: str, amount: object = "1", at: float = 0) -> bool:
    standing.at = AT + at
    text = standing.call("append_file", path=f"notes/{account}", content=amount)
    assert text.startswith("Error: Refused by memory") or "Refused" not in text
    return "Refused by memory" not in text


def test_at_most_so_many_in_a_window(tmp_path: Path) -> None:
    standing = job(tmp_path, count=2, within="1h")
    assert [paid(standing, "a", at=at) for at in (0, 60, 120)] == [True, True, False]
    # What was refused was not made, and the first has left the window.
    assert paid(standing, "a", at=HOUR + 30)
    assert not paid(standing, "a", at=HOUR + 40)


@pytest.mark.parametrize("spelling", ["a", "A", " a", "ａ", "a\u200b"])  # noqa: RUF001
def test_once_for_each_account_however_it_is_spelt(tmp_path: Path, spelling: str) -> None:
    standing = job(tmp_path, count=1, same=["content"])
    assert paid(standing, "x", "a")
    assert not paid(standing, "y", spelling)
    assert paid(standing, "z", "b")


@pytest.mark.parametrize(
    ("amounts", "allowed"),
    [
        (["400", "600", "1"], [True, True, False]),
        (["1001", "1000"], [False, True]),
        (["-5000", "1000", "0.5"], [True, True, False]),
        (["nan", "inf", "1,0", "a lot", "1000"], [False, False, False, False, True]),
        (["999.9", "0.1", "0.001"], [True, True, False]),
    ],
)
def test_a_running_sum(tmp_path: Path, amounts: list[str], allowed: list[bool]) -> None:
    standing = job(tmp_path, sum={"content": 1000})
    assert [paid(standing, "a", amount) for amount in amounts] == allowed


@pytest.mark.parametrize("spelling", ["5", "5.0", "05", "+5"])
def test_a_number_is_the_same_in_any_form(tmp_path: Path, spelling: str) -> None:
    standing = job(tmp_path, count=1, same=["content"])
    assert paid(standing, "x", "5")
    assert not paid(standing, "y", spelling)


def test_what_neither_call_has_permits_nothing(tmp_path: Path) -> None:
    standing = job(tmp_path, same=["order"], missing=True)
    assert not paid(standing, "a")
    standing.call("write_file", path="notes/b", content="yes")
    assert not paid(standing, "b")


def test_only_after_an_approval_of_the_very_same(tmp_path: Path) -> None:
    rule = Guard.model_validate(
        {
            "name": "memory",
            "point": "before_tool",
            "match": {
                "tool": PAY,
                "history": {"tool": ["write_file"], "same": ["path"], "missing": True},
            },
            "decision": "deny",
            "message": "Have it approved first.",
        }
    )
    standing = Standing.begin(tmp_path)
    standing.pin(standing.open().config.model_copy(update={"rules": [rule]}))
    assert not paid(standing, "a")
    standing.call("write_file", path="notes/b", content="yes")
    standing.call("write_file", path="/etc/notes/a", content="fails")
    assert not paid(standing, "a")
    assert not paid(standing, "B")
    assert paid(standing, "b")


def test_a_failed_call_counts_since_nobody_knows_its_effect(tmp_path: Path) -> None:
    standing = job(tmp_path, count=1)
    standing.call("append_file", path="config.json/none/../..", content="1")
    assert not paid(standing, "a")


def test_a_rewind_takes_no_call_back(tmp_path: Path) -> None:
    standing = job(tmp_path, count=1)
    assert paid(standing, "a")
    snapshot = standing.open()
    snapshot.begin_conversation({"role": "system", "content": "again"})
    standing.commit = snapshot.save("rewound", AT)
    assert not paid(standing, "a")


def test_two_runs_of_the_same_calls_end_in_the_same_tree(tmp_path: Path) -> None:
    first, later = job(tmp_path / "1", count=1), job(tmp_path / "2", count=1)
    assert paid(first, "a") and paid(later, "a", at=HOUR)
    assert first.open().calls.id != later.open().calls.id
    assert first.open().comparable_tree == later.open().comparable_tree


@pytest.mark.parametrize(
    "history",
    [{}, {"count": 1, "missing": True}, {"count": 0}, {"count": 1, "within": "1 day"}],
)
def test_a_rule_says_one_thing(history: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        HistoryMatch.model_validate({"tool": PAY, **history})
