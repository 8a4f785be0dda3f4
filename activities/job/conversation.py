"""The messages of a phase, stored so that adding one costs the same however many there are.

conversation/0000/00 … 0031/31          one JSON message a blob, as it goes on the wire: on shelves,
conversation/0032/00/00 … 0032/31/31    32 to a shelf, and after 32 shelves 32 of them to a case
conversation/0033/00/00 …
conversation/provider/0000/03           what belongs to the model's provider of the message at the
                                        same place, such as reasoning that it wants back unchanged,
                                        and which images it shows
"""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import cached_property
from itertools import accumulate
from typing import Any, Protocol

from activities.checkpoints import Files
from activities.checkpoints.cache import Cache
from activities.checkpoints.objects import EMPTY_TREE
from activities.checkpoints.sharded_tree import FILE, TreeEntry, list_entries
from activities.redaction.credentials import hide_in_json
from activities.text.tokens import message_tokens
from protocol.state import ShownImage
from protocol.text import one_line

FAN_OUT = 32
CASE = FAN_OUT * FAN_OUT
MALFORMED = "malformed_arguments"
"""Key under which arguments that are no JSON are kept, so that they can be sent back."""
CUT = "arguments_cut_short"
"""The same for those that the output limit cut."""
MIXED_UP = "arguments_mixed_up"
"""The same for those of several calls that an endpoint sent so that nobody can distinguish them."""


SAME_FROM = 1000
"""Characters from which a result is not appended a second time."""
CALL_CHARACTERS = 200
"""Of a call that had the same result."""
LOOK_BACK = 64
"""Messages in which it is looked for: a bound on what a step costs."""


wire_cache: Cache[Hashable, bytes] = Cache(64_000_000, len)
"""Bytes of messages, of those of a shelf or case, joined, and the like."""
token_cache: Cache[Hashable, int] = Cache(200_000, lambda _: 1)
"""Numbers of tokens by what is counted and encoding."""

PROVIDER = "provider"
NO_DATA = b""
"""Stands for the id of what lies beside messages, where nothing does."""
Node = tuple[bytes, bytes]
"""The id of a message's blob or of a tree of messages, and that of what lies beside."""
Part = tuple[bytes, int, int, int, bytes]
"""Messages that lie together: the id of a message's blob, or of the tree of a shelf or case that is
full; how many messages it holds (1, 32 or 1,024); the first of them and the one after the last; the
id of what lies beside."""


Read = Callable[[bytes], bytes]


class MessageForm(Protocol):
    """How a message is sent to one endpoint and model."""

    @property
    def key(self) -> Hashable:
        """Equal for two forms that send the same."""

    @property
    def verbatim(self) -> bool:
        """Whether a message with nothing beside it is sent as it is stored."""

    def render(self, message: bytes, beside: bytes, read: Read | None = None) -> bytes:
        """The message in this form: elements of a JSON list, joined by commas.

        Args:
            message: As it is stored.
            beside: What lies beside it.
            read: Gives the bytes of an image by the id of its blob; None to leave images out.
        """

    @property
    def marks(self) -> str:
        """How cache marks are written at the end of a message; `none` for no marks."""

    def with_mark(self, message: bytes) -> bytes:
        """A message that no model made, in this form, with such a mark."""


class ProviderWeights(Protocol):
    """How much of what lies beside messages is sent to one endpoint and model."""

    @property
    def key(self) -> Hashable:
        """Equal for two that weigh the same."""

    def tokens(self, provider_data: bytes, encoding: str) -> int:
        """Tokens that are sent of it."""

    @property
    def without_images(self) -> ProviderWeights:
        """The same where images are left out."""


class Conversation:
    """An immutable handle on the messages; `append` returns a new one."""

    def __init__(self, files: Files) -> None:
        self.files = files

    def append(self, *messages: dict[str, Any]) -> Conversation:
        """Add messages at the end."""
        added = self
        for message in messages:
            added = added._with_message(message, added._original_id(message))
        return added

    def append_reply(
        self, message: dict[str, Any], provider_data: dict[str, Any] | None
    ) -> Conversation:
        """Add a reply.

        Args:
            message: The reply as a message.
            provider_data: What the provider wants back with it unchanged: `maker` says which
                endpoint and model that is, and `ids`, if there, its own ids of the calls by ours.
        """
        return self._with_message(message, provider_data)

    def append_images(self, images: Sequence[ShownImage]) -> Conversation:
        """Add a message that shows images; its text says what they are, the rest lies beside."""
        text = "\n".join(["Shown are:", *(f"- {image.pointer}" for image in images)])
        beside = [image.model_dump(include={"blob", "mime", "tokens"}) for image in images]
        return self._with_message({"role": "user", "content": text}, {"images": beside})

    def _with_message(
        self, message: dict[str, Any], provider_data: dict[str, Any] | None
    ) -> Conversation:
        files, place = self.files, _message_path(len(self))
        files = files.with_tree_entry(
            place, TreeEntry(FILE, files.store.write_blob(to_wire(message)))
        )
        if provider_data:
            blob = files.store.write_blob(to_wire(provider_data))
            files = files.with_tree_entry((PROVIDER, *place), TreeEntry(FILE, blob))
        return Conversation(files)

    def _original_id(self, message: dict[str, Any]) -> dict[str, Any] | None:
        """What lies beside the result of a call to which the provider gave an id of its own."""
        called = message.get("tool_call_id")
        if not called or self.files.tree_entry((PROVIDER,)) is None:
            return None
        # Results follow their reply, and each has something beside it if the reply has ids.
        for number in reversed(range(len(self))):
            data = self.provider_data(number)
            if data is None or "call_id" not in data:
                original = data and data.get("ids", {}).get(called)
                return {"maker": data["maker"], "call_id": original} if data and original else None
        return None

    def provider_data(self, number: int) -> dict[str, Any] | None:
        """What lies beside a message, None if nothing does."""
        raw = self.files.tree_entry((PROVIDER, *_message_path(number)))
        if raw is None:
            return None
        loaded: dict[str, Any] = json.loads(self.files.store.read(raw.id))
        return loaded

    def provider_bytes(self, start: int, stop: int) -> Iterator[bytes]:
        """The bytes of what lies beside each of those messages, empty where nothing does."""
        for number in range(start, stop):
            raw = self.files.tree_entry((PROVIDER, *_message_path(number)))
            yield self.files.store.read(raw.id) if raw else NO_DATA

    @property
    def without_provider_data(self) -> Files:
        """The messages without what lies beside them."""
        return self.files.with_tree_entry((PROVIDER,), None)

    def __len__(self) -> int:
        return self._start_numbers[-1]

    def wire_bytes(
        self,
        start: int = 0,
        stop: int | None = None,
        form: MessageForm | None = None,
        marked: Sequence[int] = (),
    ) -> list[bytes]:
        """Messages as they go on the wire, oldest first: joined by commas, they are the list.

        A shelf or case that is full is one piece, so that a long conversation costs little more
        than copying its bytes.

        Args:
            start: Number of the first.
            stop: Number after the last; None for all.
            form: None for the one they are stored in.
            marked: Numbers of messages that get a mark for the provider's cache, in order; not of
                replies.
        """
        pieces: list[bytes] = []
        end = len(self) if stop is None else stop
        for number in marked if form else ():
            if form and start <= number < end:
                if start < number:
                    pieces += [
                        self._part_bytes(part, form) for part in self._range_parts(start, number)
                    ]
                [single] = self._range_parts(number, number + 1)
                pieces.append(form.with_mark(self._part_bytes(single, form)))
                start = number + 1
        if start < end:
            pieces += [self._part_bytes(part, form) for part in self._range_parts(start, end)]
        return pieces

    def cache_points(self) -> list[int]:
        """The messages with which this request and the one before it end, in order.

        Where a provider looks for what it cached only at marks, the first is where it finds it.
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
        return self._read_message(number).startswith(b'{"role":"assistant"')

    def stored_messages(self) -> Iterator[bytes]:
        """The messages one by one, oldest first; nothing of it is held in memory."""
        for number in range(len(self)):
            yield self._read_message(number)

    def count_tokens(
        self,
        encoding: str,
        start: int = 0,
        stop: int | None = None,
        weights: ProviderWeights | None = None,
    ) -> int:
        """Tokens of those messages; what was counted once is not counted again.

        Args:
            encoding: Of the model.
            start: Number of the first.
            stop: Number after the last; None for all.
            weights: For what lies beside them, if that counts.
        """
        return sum(
            self._part_tokens(part, encoding, weights) for part in self._range_parts(start, stop)
        )

    def content_ids(self, start: int, stop: int) -> tuple[Part, ...]:
        """What names those messages by their content."""
        return tuple(self._range_parts(start, stop))

    def messages(self, start: int = 0, stop: int | None = None) -> list[dict[str, Any]]:
        """Those messages, oldest first."""
        loaded: list[dict[str, Any]] = json.loads(b"[%b]" % b",".join(self.wire_bytes(start, stop)))
        return loaded

    def message(self, index: int) -> dict[str, Any]:
        """One message by its number, from 0."""
        loaded: dict[str, Any] = json.loads(self._read_message(index))
        return loaded

    def find_same_result(self, content: str, start: int) -> str:
        """A recent call that had this very result, as `read_file {"path": "a.md"}`; else empty.

        Not its id: over the Responses API the model knows its calls by the provider's own.

        Args:
            content: The result. One that is short is not looked for: to name another is no shorter.
            start: Number of the first message that is shown whole.
        """
        if len(content) < SAME_FROM:
            return ""
        ending = to_wire(content)
        for number in range(len(self) - 1, max(start, len(self) - LOOK_BACK) - 1, -1):
            if ending in self._read_message(number):
                return self._call_text(number)
        return ""

    def _call_text(self, number: int) -> str:
        """The call that the message with this number is the result of, in a line."""
        answered = self.message(number)["tool_call_id"]
        for earlier in range(number - 1, -1, -1):
            for call in self.message(earlier).get("tool_calls", ()):
                if call["id"] == answered:
                    function = call["function"]
                    return one_line(f"{function['name']} {function['arguments']}", CALL_CHARACTERS)
        return ""

    def tool_calls(self, step: int) -> list[dict[str, Any]]:
        """The tool calls of the reply made at this step, the newest reply there is.

        Raises:
            LookupError: the newest reply is of another step.
        """
        for number in reversed(range(len(self))):
            message = self.message(number)
            if message["role"] == "assistant":
                calls: list[dict[str, Any]] = message.get("tool_calls", [])
                if calls and calls[0]["id"] == call_id(step, 0):
                    return calls
                break
        raise LookupError(f"the conversation holds no reply of step {step}")

    @cached_property
    def _top_nodes(self) -> list[tuple[Node, int]]:
        """The cases and shelves that are full, and the messages of the last shelf, with sizes."""
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
        """The number of the first message of each of them, and that of all messages."""
        return list(accumulate((size for _, size in self._top_nodes), initial=0))

    def _child_nodes(self, node: Node) -> list[Node]:
        """What is in one tree; the names were made so that they sort in the order of messages."""
        tree, beside = node
        children = sorted(list_entries(self.files.store, tree).items())
        if not beside:
            return [(raw.id, NO_DATA) for _, raw in children]
        others = list_entries(self.files.store, beside)
        return [
            (raw.id, others[name].id if name in others else NO_DATA)
            for name, raw in children
            if name != PROVIDER.encode()
        ]

    def _range_parts(self, start: int, stop: int | None) -> list[Part]:
        """The pieces of a range."""
        return _cut_parts(
            self._top_nodes, self._start_numbers, start, len(self) if stop is None else stop
        )

    def _split_part(self, part: Part) -> list[Part]:
        """The pieces of a part of a case or shelf."""
        tree, size, low, high, beside = part
        each = size // FAN_OUT
        pieces = [(piece, each) for piece in self._child_nodes((tree, beside))]
        return _cut_parts(pieces, range(0, size + 1, each), low, high)

    def _part_bytes(self, part: Part, form: MessageForm | None) -> bytes:
        if form and form.verbatim and not part[4]:
            form = None
        data = wire_cache.get(key := (part, form.key) if form else part)
        if data is None:
            if part[1] > 1:
                data = b",".join(self._part_bytes(piece, form) for piece in self._split_part(part))
            else:
                data = self.files.store.read(part[0])
                if form:
                    data = form.render(data, self._read_provider(part), self.files.store.read)
            wire_cache.put(key, data)
        return data

    def _part_tokens(self, part: Part, encoding: str, weights: ProviderWeights | None) -> int:
        if not part[4]:
            weights = None
        total = token_cache.get(key := (part, encoding, weights.key if weights else None))
        if total is None:
            if part[1] > 1:
                total = sum(
                    self._part_tokens(piece, encoding, weights) for piece in self._split_part(part)
                )
            else:
                total = message_tokens(self.files.store.read(part[0]), encoding)
                if weights:
                    total += weights.tokens(self._read_provider(part), encoding)
            token_cache.put(key, total)
        return total

    def _read_provider(self, part: Part) -> bytes:
        return self.files.store.read(part[4]) if part[4] else NO_DATA

    def _read_message(self, number: int) -> bytes:
        [part] = self._range_parts(number, number + 1)
        while part[1] > 1:
            [part] = self._split_part(part)
        return self.files.store.read(part[0])


def _cut_parts(
    pieces: Sequence[tuple[Node, int]], starts: Sequence[int], start: int, stop: int
) -> list[Part]:
    """The parts of pieces that lie between two messages."""
    first, after = bisect_right(starts, start) - 1, bisect_left(starts, stop)
    parts = [(node, size, 0, size, beside) for (node, beside), size in pieces[first:after]]
    if parts:
        node, size, _, high, beside = parts[0]
        parts[0] = node, size, start - starts[first], high, beside
        node, size, low, high, beside = parts[-1]
        parts[-1] = node, size, low, min(high, stop - starts[after - 1]), beside
    return parts


def _message_path(number: int) -> tuple[str, ...]:
    shelf, place = divmod(number, FAN_OUT)
    if shelf < FAN_OUT:
        return f"{shelf:04d}", f"{place:02d}"
    case, shelf = divmod(shelf, FAN_OUT)
    return f"{FAN_OUT - 1 + case:04d}", f"{shelf:02d}", f"{place:02d}"


def to_wire(value: Any) -> bytes:
    """A part of a request in the bytes that are sent.

    Files that no tool has shown may hold a credential: they are in the system prompt, and in what
    judges and summaries are asked. Here it is looked for once in each part.
    """
    written = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return hide_in_json(written.encode("utf-8", "replace"))


def call_id(step: int, index: int) -> str:
    """Id of a tool call: made from where it stands, so that it is the same in every run."""
    return f"s{step}c{index}"


ERROR_PREFIX = "Error: "
"""Before the results of calls that failed."""


def tool_result(step: int, index: int, content: str) -> dict[str, Any]:
    """The message that answers a tool call."""
    return {"role": "tool", "tool_call_id": call_id(step, index), "content": content}


def executed_tools(conversation: Conversation) -> frozenset[str]:
    """The tools that were carried out since the last todo was completed, refused ones not."""
    fine: set[str] = set()
    tools: set[str] = set()
    for number in reversed(range(len(conversation))):
        message = conversation.message(number)
        if message["role"] == "tool" and not str(message["content"]).startswith(ERROR_PREFIX):
            fine.add(message["tool_call_id"])
        names = [c["function"]["name"] for c in message.get("tool_calls", []) if c["id"] in fine]
        if "todo_complete" in names:
            last = len(names) - names[::-1].index("todo_complete")
            return frozenset(tools.union(names[last:]))
        tools.update(names)
    return frozenset(tools)


def count_results(conversation: Conversation) -> int:
    """How many calls of the newest reply have their result."""
    count = 0
    for number in reversed(range(len(conversation))):
        role = conversation.message(number)["role"]
        if role == "assistant":
            break
        count += role == "tool"
    return count
