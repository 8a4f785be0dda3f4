"""Writes to shared stores that survive a store's outage.

A store that does not answer stops no job: the write is deferred in the job's state, and made before
a later write that reaches the store, or before the job completes. The owner of a kind of write
registers its maker and store with `register_outbox_maker`; the maker must be idempotent by the key
and time of its call.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from activities.checkpoints import Files, Root
from activities.stores.relational_store import RelationalStore
from activities.stores.store_errors import StoreRefusedError, StoreUnavailableError
from config.schema.agent import AgentConfig
from protocol.job_state import DeferredWrite, JobState

if TYPE_CHECKING:
    from activities.toolkit.tool_context import ToolContext

MAX_DEFERRED_WRITES = 200
"""Limit per job, since they are part of its state."""


@dataclass(frozen=True)
class Call:
    """The writing call: the job, its idempotency key, and its scheduled time."""

    job: str
    key: str
    at: int
    """Epoch milliseconds by the Temporal server's clock."""


@dataclass
class OutboxWriter:
    """What a job needs in order to write to shared stores."""

    root: Root
    call: Call
    files: Files
    state: JobState
    config: AgentConfig

    @property
    def store(self) -> RelationalStore:
        return RelationalStore(self.root)

    @classmethod
    def for_call(cls, context: "ToolContext") -> "OutboxWriter":
        """Return the writer for a tool's call: shares its `state`, and its `files` as of now."""
        call = Call(context.job, context.key, context.time_ms)
        return cls(context.root, call, context.files, context.state, context.config)


StoreName = Literal["relational", "graph"]
WriteMaker = Callable[[OutboxWriter, DeferredWrite], list[str]]
"""Makes a write and returns remarks. Raises StoreUnavailableError if it cannot be made yet,
StoreRefusedError if it never can."""
_MAKERS: dict[str, WriteMaker] = {}
_STORES: dict[str, StoreName] = {}


def register_outbox_maker(
    kind: str, store: StoreName = "relational"
) -> Callable[[WriteMaker], WriteMaker]:
    """Register the maker of a kind of deferred writes, and its store."""

    def enter_maker(make: WriteMaker) -> WriteMaker:
        _MAKERS[kind] = make
        _STORES[kind] = store
        return make

    return enter_maker


def flush_outbox(writer: OutboxWriter, store: StoreName | None = None) -> list[str]:
    """Make the deferred writes of one store, or of all, in order; return remarks for the model.

    Raises:
        StoreUnavailableError: A store still does not answer; writes not made stay deferred.
    """
    remarks, refused = attempt_outbox_writes(writer, store)
    writer.state.deferred_writes = [
        each
        for each in writer.state.deferred_writes
        if all(each is not entry for entry, _ in refused)
    ]
    return [*remarks, *(f"A deferred write was dropped: {why}" for _, why in refused)]


def attempt_outbox_writes(
    writer: OutboxWriter, store: StoreName | None = None
) -> tuple[list[str], list[tuple[DeferredWrite, str]]]:
    """Like `flush_outbox`, but refused writes stay deferred and are returned with the reasons.

    Raises:
        StoreUnavailableError: A store still does not answer; writes not made or refused stay
            deferred.
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


def write_or_defer(writer: OutboxWriter, entry: DeferredWrite) -> list[str]:
    """Make a write after the deferred ones of its store, or defer it; return remarks.

    Raises:
        StoreRefusedError: Too many writes are deferred, or the store refuses this one.
    """
    try:
        return [*flush_outbox(writer, _STORES[entry.kind]), *_MAKERS[entry.kind](writer, entry)]
    except StoreRefusedError:
        raise
    except StoreUnavailableError as error:
        if len(writer.state.deferred_writes) >= MAX_DEFERRED_WRITES:
            raise StoreRefusedError(
                f"{MAX_DEFERRED_WRITES} writes are deferred already, since {error} Call "
                "wait(seconds), then try again."
            ) from None
        return defer_write(writer, entry, error)


def defer_write(
    writer: OutboxWriter, entry: DeferredWrite, error: StoreUnavailableError
) -> list[str]:
    """Defer a write and return a remark for the model."""
    writer.state.deferred_writes = [*writer.state.deferred_writes, entry]
    return [f"Deferred, and made later by itself: {error}"]


def waiting_writes_message(writer: OutboxWriter, error: StoreUnavailableError) -> str:
    """Return a message such as `2 writes wait, since the store does not answer.`"""
    waiting = len(writer.state.deferred_writes) or 1
    return f"{waiting} {'write waits' if waiting == 1 else 'writes wait'}, since {error}"
