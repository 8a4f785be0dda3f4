"""Stores a phase's messages so that adding one costs the same at any length.

conversation/0000/00 … 0031/31          one JSON message per blob, as sent: 32 to a shelf,
conversation/0032/00/00 … 0032/31/31    and after 32 shelves, 32 shelves to a case
conversation/0033/00/00 …
conversation/provider/0000/03           data beside the message at the same place, for the
                                        model's provider: reasoning to send back unchanged,
                                        and the images that the message shows
"""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import cached_property
from itertools import accumulate
from typing import Any, NamedTuple, Protocol

from activities.checkpoints import Files
from activities.checkpoints.journal import Cache
from activities.checkpoints.object_store import EMPTY_TREE
from activities.checkpoints.sharded_tree import FILE, TreeEntry, list_tree_entries
from activities.redaction.credentials import encode_without_credentials
from activities.text.tokens import message_tokens
from protocol.job_state import ShownImage

FAN_OUT = 32
CASE = FAN_OUT * FAN_OUT

wire_cache: Cache[Hashable, bytes] = Cache(64_000_000, len)
"""Bytes of messages, of the joined messages of a shelf or case, and the like."""
token_cache: Cache[Hashable, int] = Cache(200_000, lambda _: 1)
"""Token counts by content and encoding."""

PROVIDER = "provider"
NO_DATA = b""
"""Id used where no data lies beside a message."""
Node = tuple[bytes, bytes]
"""Ids of a message's blob, or of a tree of messages, and of the data beside it."""


class Part(NamedTuple):
    """Messages stored together: one, or those of a full shelf or case."""

    id: bytes
    """Of the message's blob, or of the tree of messages."""
    size: int
    """Number of messages in it: 1, 32 or 1,024."""
    low: int
    """The first message that counts."""
    high: int
    """The one after the last that counts."""
    beside: bytes
    """Id of the data beside them."""


class Conversation:
    def __init__(self, files: Files) -> None:
        self.files = files

    def append(self, *messages: dict[str, Any]) -> Conversation:
        added = self
        for message in messages:
            added = added._with_message(message, added._original_id(message))
        return added

    def append_reply(
        self, message: dict[str, Any], provider_data: dict[str, Any] | None
    ) -> Conversation:
        """Add a reply.

        Args:
            provider_data: Data that the provider wants back unchanged. `maker` names the endpoint
                and model; `ids`, if present, maps our call ids to the provider's.
        """
        return self._with_message(message, provider_data)

    def append_images(self, images: Sequence[ShownImage]) -> Conversation:
        """Add a message that shows images. Its text describes them; the images lie beside it."""
        text = "\n".join(["Shown are:", *(f"- {image.pointer}" for image in images)])
        beside = [image.model_dump(include={"blob", "mime", "tokens"}) for image in images]
        return self._with_message({"role": "user", "content": text}, {"images": beside})

    def _with_message(
        self, message: dict[str, Any], provider_data: dict[str, Any] | None
    ) -> Conversation:
        files, place = self.files, _message_path(len(self))
        files = files.with_tree_entry(
            place, TreeEntry(FILE, files.store.write_blob(encode_without_credentials(message)))
        )
        if provider_data:
            blob = files.store.write_blob(encode_without_credentials(provider_data))
            files = files.with_tree_entry((PROVIDER, *place), TreeEntry(FILE, blob))
        return Conversation(files)

    def _original_id(self, message: dict[str, Any]) -> dict[str, Any] | None:
        """Return the data beside the result of a call that has a provider's own id."""
        called = message.get("tool_call_id")
        if not called or self.files.tree_entry((PROVIDER,)) is None:
            return None
        # Results follow their reply, and each has data beside it if the reply has ids.
        for number in reversed(range(len(self))):
            data = self.provider_data(number)
            if data is None or "call_id" not in data:
                original = data and data.get("ids", {}).get(called)
                return {"maker": data["maker"], "call_id": original} if data and original else None
        return None

    def provider_data(self, number: int) -> dict[str, Any] | None:
        raw = self.files.tree_entry((PROVIDER, *_message_path(number)))
        if raw is None:
            return None
        loaded: dict[str, Any] = json.loads(self.files.store.read(raw.id))
        return loaded

    def provider_bytes(self, start: int, stop: int) -> Iterator[bytes]:
        for number in range(start, stop):
            raw = self.files.tree_entry((PROVIDER, *_message_path(number)))
            yield self.files.store.read(raw.id) if raw else NO_DATA

    @property
    def without_provider_data(self) -> Files:
        return self.files.with_tree_entry((PROVIDER,), None)

    def __len__(self) -> int:
        return self._start_numbers[-1]

    def wire_bytes(
        self,
        start: int = 0,
        stop: int | None = None,
        form: MessageEncoding | None = None,
        marked: Sequence[int] = (),
    ) -> list[bytes]:
        """Return messages as they are sent, oldest first; full shelves and cases are one piece."""
        pieces: list[bytes] = []
        end = len(self) if stop is None else stop
        for number in marked if form else ():
            if form and start <= number < end:
                if start < number:
                    pieces += [
                        self._part_bytes(part, form) for part in self._range_parts(start, number)
                    ]
                [single] = self._range_parts(number, number + 1)
                pieces.append(form.render_marked(self._part_bytes(single, form)))
                start = number + 1
        if start < end:
            pieces += [self._part_bytes(part, form) for part in self._range_parts(start, end)]
        return pieces

    def cache_points(self) -> list[int]:
        """Return the last messages of the previous request and of this one, in order.

        A provider that looks for cached prefixes only at marks finds its cache at the first of
        them.
        """
        points: list[int] = []
        number = len(self) - 1
        while number >= 0 and len(points) < 2:
            while number >= 0 and self._is_reply(number):
                number -= 1
            if number >= 0:
                points.insert(0, number)
            while number >= 0 and not self._is_reply(number):
                number -= 1
        return points

    def _is_reply(self, number: int) -> bool:
        return self.message_bytes(number).startswith(b'{"role":"assistant"')

    def stored_messages(self) -> Iterator[bytes]:
        """Yield the messages one by one, oldest first, without keeping them in memory."""
        for number in range(len(self)):
            yield self.message_bytes(number)

    def count_tokens(
        self,
        encoding: str,
        start: int = 0,
        stop: int | None = None,
        weights: MessageWeights | None = None,
    ) -> int:
        return sum(
            self._part_tokens(part, encoding, weights) for part in self._range_parts(start, stop)
        )

    def content_ids(self, start: int, stop: int) -> tuple[Part, ...]:
        return tuple(self._range_parts(start, stop))

    def messages(self, start: int = 0, stop: int | None = None) -> list[dict[str, Any]]:
        loaded: list[dict[str, Any]] = json.loads(b"[%b]" % b",".join(self.wire_bytes(start, stop)))
        return loaded

    def message(self, index: int) -> dict[str, Any]:
        loaded: dict[str, Any] = json.loads(self.message_bytes(index))
        return loaded

    def message_bytes(self, number: int) -> bytes:
        [part] = self._range_parts(number, number + 1)
        while part.size > 1:
            [part] = self._split_part(part)
        return self.files.store.read(part.id)

    @cached_property
    def _top_nodes(self) -> list[tuple[Node, int]]:
        """Return the full cases and shelves, and the messages of the last shelf, with sizes."""
        raw = self.files.tree_entry((PROVIDER,))
        root = bytes.fromhex(self.files.id), raw.id if raw else NO_DATA
        *full, last = self._child_nodes(root) or [(EMPTY_TREE, NO_DATA)]
        sizes = [FAN_OUT] * min(len(full), FAN_OUT) + [CASE] * (len(full) - FAN_OUT)
        if len(full) >= FAN_OUT:
            *shelves, last = self._child_nodes(last)
            full += shelves
            sizes += [FAN_OUT] * len(shelves)
        newest = self._child_nodes(last)
        return list(zip(full + newest, sizes + [1] * len(newest), strict=True))

    @cached_property
    def _start_numbers(self) -> list[int]:
        """Return the number of the first message of each node, and the number of all messages."""
        return list(accumulate((size for _, size in self._top_nodes), initial=0))

    def _child_nodes(self, node: Node) -> list[Node]:
        """Return the children of a tree. Their names sort in the order of the messages."""
        tree, beside = node
        children = sorted(list_tree_entries(self.files.store, tree).items())
        if not beside:
            return [(raw.id, NO_DATA) for _, raw in children]
        others = list_tree_entries(self.files.store, beside)
        return [
            (raw.id, others[name].id if name in others else NO_DATA)
            for name, raw in children
            if name != PROVIDER.encode()
        ]

    def _range_parts(self, start: int, stop: int | None) -> list[Part]:
        return _cut_conversation_parts(
            self._top_nodes, self._start_numbers, start, len(self) if stop is None else stop
        )

    def _split_part(self, part: Part) -> list[Part]:
        each = part.size // FAN_OUT
        pieces = [(piece, each) for piece in self._child_nodes((part.id, part.beside))]
        return _cut_conversation_parts(pieces, range(0, part.size + 1, each), part.low, part.high)

    def _part_bytes(self, part: Part, form: MessageEncoding | None) -> bytes:
        if form and form.verbatim and not part.beside:
            form = None
        data = wire_cache.get(key := (part, form.key) if form else part)
        if data is None:
            if part.size > 1:
                data = b",".join(self._part_bytes(piece, form) for piece in self._split_part(part))
            else:
                data = self.files.store.read(part.id)
                if form:
                    data = form.render(data, self._read_provider(part), self.files.store.read)
            wire_cache.put(key, data)
        return data

    def _part_tokens(self, part: Part, encoding: str, weights: MessageWeights | None) -> int:
        if not part.beside:
            weights = None
        total = token_cache.get(key := (part, encoding, weights.key if weights else None))
        if total is None:
            if part.size > 1:
                total = sum(
                    self._part_tokens(piece, encoding, weights) for piece in self._split_part(part)
                )
            else:
                total = message_tokens(self.files.store.read(part.id), encoding)
                if weights:
                    total += weights.tokens(self._read_provider(part), encoding)
            token_cache.put(key, total)
        return total

    def _read_provider(self, part: Part) -> bytes:
        return self.files.store.read(part.beside) if part.beside else NO_DATA


def _cut_conversation_parts(
    pieces: Sequence[tuple[Node, int]], starts: Sequence[int], start: int, stop: int
) -> list[Part]:
    first, after = bisect_right(starts, start) - 1, bisect_left(starts, stop)
    parts = [Part(id, size, 0, size, beside) for (id, beside), size in pieces[first:after]]
    if parts:
        parts[0] = parts[0]._replace(low=start - starts[first])
        parts[-1] = parts[-1]._replace(high=min(parts[-1].high, stop - starts[after - 1]))
    return parts


def _message_path(number: int) -> tuple[str, ...]:
    shelf, place = divmod(number, FAN_OUT)
    if shelf < FAN_OUT:
        return f"{shelf:04d}", f"{place:02d}"
    case, shelf = divmod(shelf, FAN_OUT)
    return f"{FAN_OUT - 1 + case:04d}", f"{shelf:02d}", f"{place:02d}"


Read = Callable[[bytes], bytes]


class MessageEncoding(Protocol):
    """How a message is sent to one endpoint and model."""

    @property
    def key(self) -> Hashable:
        """Equal for two forms that send the same."""

    @property
    def verbatim(self) -> bool:
        """Whether a message with no data beside it is sent as stored."""

    def render(self, message: bytes, beside: bytes, read: Read | None = None) -> bytes:
        """Render the message in this form, as elements of a JSON list joined by commas.

        Args:
            read: Returns an image's bytes by the id of its blob; None to omit images.
        """

    @property
    def marks(self) -> str:
        """How cache marks are written at the end of a message; `none` for no marks."""

    def render_marked(self, message: bytes) -> bytes:
        """Render a message that is not the model's, with such a mark."""


class MessageWeights(Protocol):
    """How many tokens of the data beside messages are sent to one endpoint and model."""

    @property
    def key(self) -> Hashable:
        """Equal for two that weigh the same."""

    def tokens(self, provider_data: bytes, encoding: str) -> int:
        """Count the tokens that are sent of it."""

    @property
    def without_images(self) -> MessageWeights:
        """The same without images."""
