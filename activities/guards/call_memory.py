"""The calls that a job has made, for guards with `match.history`.

Only calls of tools that such a guard names are kept, in the part `calls/` of a checkpoint, which no
rewind takes back: what a call did outside stays done.
"""

import json
import posixpath
import unicodedata
from collections.abc import Iterator, Sequence
from decimal import Decimal, InvalidOperation
from fnmatch import fnmatchcase
from typing import Any

from activities.checkpoints import Files
from activities.job.snapshot import Snapshot
from config.schema.guards import HistoryMatch
from protocol.data_model import Data

LOG = "log.jsonl"


class CallRecord(Data):
    """A call that was made."""

    tool: str
    at: int
    """Milliseconds since 1970."""
    ok: bool
    arguments: dict[str, Any]
    """Those that guards compare or add up."""


def remember_call(
    snapshot: Snapshot, tool: str, arguments: dict[str, Any], at: int, *, ok: bool
) -> None:
    """Keep a call if a guard remembers calls of this tool."""
    rules = [
        guard.match.history
        for guard in snapshot.config.rules
        if guard.match.history and _names_tool(guard.match.history.tool, tool)
    ]
    if not rules:
        return
    names = {name for rule in rules for name in (*rule.same, *rule.sum)}
    compared = {name: arguments[name] for name in sorted(names) if name in arguments}
    record = CallRecord(tool=tool, at=at, ok=ok, arguments=compared)
    line = json.dumps(record.model_dump()).encode() + b"\n"
    snapshot.calls = snapshot.calls.write(LOG, _log_bytes(snapshot.calls) + line)


def matches_remembered_calls(
    rule: HistoryMatch, calls: Files, arguments: dict[str, Any], now: int | None
) -> bool:
    """Return whether the calls before this one are such as the guard applies to.

    Args:
        arguments: Those of this call.
        now: Milliseconds since 1970; None counts earlier calls whatever their age.
    """
    earlier = [
        record
        for record in _read_calls(calls)
        if _names_tool(rule.tool, record.tool)
        and (rule.within is None or now is None or now - record.at <= rule.within_ms)
    ]
    if rule.missing:
        # Exact, and only what succeeded: a near miss is no permission.
        return not any(record.ok and _is_same(rule.same, record, arguments) for record in earlier)
    # Of a failed call nobody knows whether it took effect.
    alike = [record for record in earlier if _is_alike(rule.same, record, arguments)]
    if not rule.sum:
        return len(alike) >= rule.count
    return any(
        sum(_amounts(name, [*(each.arguments for each in alike), arguments])) > Decimal(str(most))
        for name, most in rule.sum.items()
    )


def _log_bytes(calls: Files) -> bytes:
    return calls.read(LOG) if calls.entry(LOG) else b""


def _read_calls(calls: Files) -> Iterator[CallRecord]:
    for line in _log_bytes(calls).splitlines():
        yield CallRecord.model_validate_json(line)


def _names_tool(patterns: Sequence[str], tool: str) -> bool:
    return any(fnmatchcase(tool, pattern) for pattern in patterns)


def _is_same(names: Sequence[str], record: CallRecord, arguments: dict[str, Any]) -> bool:
    """Whether both calls have these arguments, with the very same values."""
    return all(
        name in arguments
        and name in record.arguments
        and json.dumps(record.arguments[name], sort_keys=True)
        == json.dumps(arguments[name], sort_keys=True)
        for name in names
    )


def _is_alike(names: Sequence[str], record: CallRecord, arguments: dict[str, Any]) -> bool:
    """Whether the values are the same to a reader: other case or spacing evades no limit."""
    return all(
        _folded(record.arguments.get(name)) == _folded(arguments.get(name)) for name in names
    )


def _folded(value: Any) -> str:
    """Return a value without what a reader does not see: case, spaces, joiners, forms of a number
    or a path.
    """
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True)
    shown = (each for each in unicodedata.normalize("NFKC", text) if not _is_unseen(each))
    folded = "".join(shown).casefold()
    if (number := _as_number(folded)) is not None and number.is_finite():
        return str(number.normalize())
    return posixpath.normpath(folded) if "/" in folded else folded


def _is_unseen(character: str) -> bool:
    return character.isspace() or unicodedata.category(character) in ("Cf", "Mn")


def _as_number(value: Any) -> Decimal | None:
    try:
        return Decimal(str(value)) if not isinstance(value, bool) else None
    except InvalidOperation:
        return None


def _amounts(name: str, calls: Sequence[dict[str, Any]]) -> Iterator[Decimal]:
    """Yield the values of an argument: no number is too much, a negative one no credit."""
    for arguments in calls:
        amount = _as_number(arguments.get(name))
        is_known = amount is not None and not amount.is_nan()
        yield max(amount, Decimal(0)) if is_known and amount is not None else Decimal("Infinity")
