"""Writes to shared stores that outlast a store's absence.

A store that does not answer stops no job: the write is kept in the job's state, and made by a
following write that reaches the store, or before the job completes. Who owns a kind of write says
with `register_maker` how it is made and in which store; it must be idempotent by the key and the
time of its call.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from activities.checkpoints import Files, Root
from activities.stores.engine import RelationalStore
from activities.stores.errors import StoreRefusedError, StoreUnavailableError
from config.schema.agent import AgentConfig
from protocol.state import DeferredWrite, JobState

if TYPE_CHECKING:
    from activities.toolkit.context import ToolContext

MAX_DEFERRED_WRITES = 200
"""Deferred writes of one job; more would swell its state."""


@dataclass(frozen=True)
class Call:
    """Who writes: the job, the call's idempotency key, and when it was scheduled."""

    job: str
    key: str
    at: int
    """Epoch milliseconds, by the server that runs the jobs."""


@dataclass
class StoreWriter:
    """A job at the moment it writes."""

    root: Root
    call: Call
    files: Files
    state: JobState
    config: AgentConfig

    @property
    def store(self) -> RelationalStore:
        return RelationalStore(self.root)

    @classmethod
    def for_call(cls, context: ToolContext) -> StoreWriter:
        """For a tool's call: `context.state` is changed, `context.files` as they are now read."""
        call = Call(context.job, context.key, context.time_ms)
        return cls(context.root, call, context.files, context.state, context.config)


StoreName = Literal["relational", "graph"]
WriteMaker = Callable[[StoreWriter, DeferredWrite], list[str]]
"""Makes a write; answers with remarks. Raises StoreUnavailableError when it cannot be made yet,
StoreRefusedError when it never can."""
_MAKERS: dict[str, WriteMaker] = {}
_STORES: dict[str, StoreName] = {}


def register_maker(
    kind: str, store: StoreName = "relational"
) -> Callable[[WriteMaker], WriteMaker]:
    """Enter who makes the deferred writes of a kind, and where."""

    def enter_maker(make: WriteMaker) -> WriteMaker:
        _MAKERS[kind] = make
        _STORES[kind] = store
        return make

    return enter_maker


def flush_deferred(writer: StoreWriter, store: StoreName | None = None) -> list[str]:
    """Make what is deferred for a store, or for all, in order; answers with remarks for the model.

    Raises:
        StoreUnavailableError: a store still does not answer; what was not made stays deferred.
    """
    remarks, refused = attempt_deferred(writer, store)
    writer.state.deferred_writes = [
        each
        for each in writer.state.deferred_writes
        if all(each is not entry for entry, _ in refused)
    ]
    return [*remarks, *(f"A deferred write was dropped: {why}" for _, why in refused)]


def attempt_deferred(
    writer: StoreWriter, store: StoreName | None = None
) -> tuple[list[str], list[tuple[DeferredWrite, str]]]:
    """The same, but what a store refuses stays deferred; answers also with that, and why.

    Raises:
        StoreUnavailableError: a store still does not answer; what was not made or was refused
        stays deferred.
    """
    remarks: list[str] = []
    refused: list[tuple[DeferredWrite, str]] = []
    away: dict[StoreName, StoreUnavailableError] = {}
    for entry in list(writer.state.deferred_writes):
        where = _STORES[entry.kind]
        if store not in (None, where) or where in away:
            continue
        try:
            remarks += _MAKERS[entry.kind](writer, entry)
        except StoreRefusedError as refusal:
            refused.append((entry, str(refusal)))
            continue
        except StoreUnavailableError as error:
            away[where] = error
            continue
        writer.state.deferred_writes = [
            each for each in writer.state.deferred_writes if each is not entry
        ]
    for problem in away.values():
        raise problem
    return remarks, refused


def write_or_defer(writer: StoreWriter, entry: DeferredWrite) -> list[str]:
    """Make a write, after those before it in its store, or defer it; answers with remarks.

    Raises:
        StoreRefusedError: too much is deferred already, or the store will not have it.
    """
    try:
        return [*flush_deferred(writer, _STORES[entry.kind]), *_MAKERS[entry.kind](writer, entry)]
    except StoreRefusedError:
        raise
    except StoreUnavailableError as error:
        if len(writer.state.deferred_writes) >= MAX_DEFERRED_WRITES:
            raise StoreRefusedError(
                f"{MAX_DEFERRED_WRITES} writes are deferred already, since {error} Call "
                "wait(seconds), then try "
                "again."
            ) from None
        return defer_write(writer, entry, error)


def defer_write(
    writer: StoreWriter, entry: DeferredWrite, error: StoreUnavailableError
) -> list[str]:
    """Keep a write for later; the remark that says so."""
    writer.state.deferred_writes = [*writer.state.deferred_writes, entry]
    return [f"Deferred, and made later by itself: {error}"]
