"""Select the part of a phase's conversation that is sent to the model.

All messages are kept. A few numbers in the checkpoint's `context.json` say which are shown as
placeholders and which are folded into the summary. They change only at a compaction, so requests
between two compactions share their prefix byte for byte.

    opening         system prompt and first message, always complete
    skills          bodies of skills that an open todo needs, if cleared or folded below
    summary         of folded messages, if any
    cleared         old exchanges, with long results and written texts as one-line placeholders
    recent          the rest, unchanged
"""

import json
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from typing import Any

from pydantic import Field

from activities.job.compaction_plan import MessageSize
from activities.job.conversation import (
    Conversation,
    MessageEncoding,
    MessageWeights,
    Part,
    token_cache,
    wire_cache,
)
from activities.job.conversation_calls import ERROR_PREFIX, WRITTEN
from activities.redaction.credentials import encode_without_credentials
from activities.text.tokens import message_tokens
from protocol.data_model import Data

OPENING = 2
SHORT_RESULT = 200
"""Results up to this many characters are never cleared: a placeholder would be no shorter."""
WRITERS = frozenset({"write_file", "append_file", "edit_file"})
"""Tools whose texts stand in a file once they have succeeded."""
SAME_AGAIN = frozenset({"list_files", "search_files", "extract_document_text", "use_skill"})
"""Tools that return the same when called again, unlike read_file after a change of its path."""
FOLDED_PIECE = MessageSize("folded", 0, 0)
SKILLS = "Skills in use, kept here while the todo that needed them is open:\n\n{skills}"
SUMMARY = """\
Summary of the earlier part of this phase. What it leaves out, search_history finds.

{summary}

Go on with the current todo; what follows is the newest part of the conversation."""


class Compaction(Data):
    cleared: int = 0
    folded: int = 0
    unseen: int = 0
    spared: list[int] = Field(default_factory=list)
    summary: str = Field("", max_length=100_000)
    skills: str = ""
    """Bodies of skills that an open todo needs and whose results are no longer shown."""


class ContextView:
    def __init__(self, conversation: Conversation, compaction: Compaction) -> None:
        self._conversation = conversation
        self._compaction = compaction
        self._start = max(OPENING, compaction.folded)
        self._recent = max(self._start, compaction.cleared)

    @property
    def first_uncleared(self) -> int:
        return self._recent

    def wire_bytes(self, form: MessageEncoding | None = None) -> list[bytes]:
        added = [encode_without_credentials(message) for message in self._added]
        middle = [form.render(message, b"") if form else message for message in added]
        if self._recent > self._start:
            middle.append(self._cleared_bytes(form))
        has_marks = form is not None and form.marks != "none"
        marked = [0, *self._conversation.cache_points()] if has_marks else []
        return [
            *self._conversation.wire_bytes(0, OPENING, form, marked),
            *middle,
            *self._conversation.wire_bytes(self._recent, None, form, marked),
        ]

    def count_tokens(self, encoding: str, weights: MessageWeights | None = None) -> int:
        return (
            self._conversation.count_tokens(encoding, 0, OPENING)
            + self._added_tokens(encoding)
            + self._cleared_tokens(encoding)
            + self._provider_tokens(encoding, weights)
            + self._conversation.count_tokens(encoding, self._recent, None, weights)
        )

    def message_sizes(
        self, encoding: str, todos: str = "", weights: MessageWeights | None = None
    ) -> list[MessageSize]:
        folded = [FOLDED_PIECE] * (self._start - OPENING)
        recent = self._range_sizes(encoding, todos, weights, self._start, len(self._conversation))
        return [*self._range_sizes(encoding, todos, weights, 0, OPENING), *folded, *recent]

    def _range_sizes(
        self, encoding: str, todos: str, weights: MessageWeights | None, start: int, stop: int
    ) -> list[MessageSize]:
        messages = self._conversation.messages(start, stop)
        sizes = [
            self._conversation.count_tokens(encoding, n, n + 1, weights) for n in range(start, stop)
        ]
        calls = [call for message in messages for call in message.get("tool_calls", [])]
        paths = {call["id"]: _read_path(call["function"]) for call in calls}

        def cleared(message: dict[str, Any], brief: dict[str, Any], size: int) -> int:
            if brief is message and message["role"] != "user":
                return size
            shown = message_tokens(encode_without_credentials(brief), encoding)
            if brief is message:
                return shown  # its images are cleared
            return size - message_tokens(encode_without_credentials(message), encoding) + shown

        return [
            MessageSize(
                message["role"],
                size,
                cleared(message, brief, size),
                bool(path := paths.get(message.get("tool_call_id", ""), "")) and path in todos,
            )
            for message, brief, size in zip(
                messages, shorten_exchanges(messages), sizes, strict=True
            )
        ]

    @property
    def _added(self) -> list[dict[str, str]]:
        """Return the messages that replace what is not shown."""
        texts = []
        if skills := self._compaction.skills:
            texts.append(SKILLS.format(skills=skills))
        if summary := self._compaction.summary:
            texts.append(SUMMARY.format(summary=summary))
        return [{"role": "user", "content": text} for text in texts]

    def _added_tokens(self, encoding: str) -> int:
        key = (encoding, self._compaction.skills, self._compaction.summary)
        count = token_cache.get(key)
        if count is None:
            count = sum(
                message_tokens(encode_without_credentials(message), encoding)
                for message in self._added
            )
            token_cache.put(key, count)
        return count

    def _cleared_bytes(self, form: MessageEncoding | None) -> bytes:
        form_key = form.key if form else None
        joined = wire_cache.get(
            key := ("cleared", form_key, *self._spared_numbers, *self._old_parts())
        )
        if joined is None:
            messages: Iterable[bytes] = map(encode_without_credentials, self._shortened_messages())
            if form:
                data = self._conversation.provider_bytes(self._start, self._recent)
                messages = map(form.render, messages, data)
            joined = wire_cache.put(key, b",".join(messages))
        return joined

    def _cleared_tokens(self, encoding: str) -> int:
        count = token_cache.get(key := (encoding, *self._spared_numbers, *self._old_parts()))
        if count is None:
            total = sum(
                message_tokens(encode_without_credentials(message), encoding)
                for message in self._shortened_messages()
            )
            count = token_cache.put(key, total)
        return count

    @property
    def _spared_numbers(self) -> tuple[int, ...]:
        """Part of the cache key: the cleared exchanges depend on these numbers as well."""
        return (self._compaction.unseen, *self._compaction.spared)

    def _provider_tokens(self, encoding: str, weights: MessageWeights | None) -> int:
        if weights is None or self._recent <= self._start:
            return 0
        beside = weights.without_images
        with_it = self._conversation.count_tokens(encoding, self._start, self._recent, beside)
        return with_it - self._conversation.count_tokens(encoding, self._start, self._recent)

    def _old_parts(self) -> tuple[Part, ...]:
        return self._conversation.content_ids(self._start, self._recent)

    def _shortened_messages(self) -> list[dict[str, Any]]:
        messages = self._conversation.messages(self._start, self._recent)
        spared = [number - self._start for number in self._compaction.spared]
        return shorten_exchanges(messages, self._compaction.unseen - self._start, spared)


def _read_path(call: dict[str, Any]) -> str:
    """Return the path that a call of read_file names; empty for another call."""
    if call.get("name") == "read_file":
        with suppress(ValueError, LookupError, TypeError, RecursionError):
            path = json.loads(call["arguments"])["path"]
            return path if isinstance(path, str) else ""
    return ""


def shorten_exchanges(
    messages: list[dict[str, Any]], unseen: int = -1, spared: Sequence[int] = ()
) -> list[dict[str, Any]]:
    """Return the messages with long results and written texts replaced by where to see them."""
    calls = {
        call["id"]: call["function"]
        for message in messages
        for call in message.get("tool_calls", [])
    }
    reply = messages[unseen] if 0 <= unseen < len(messages) else {}
    new = {call["id"] for call in reply.get("tool_calls", [])}
    done = {
        message["tool_call_id"]
        for message in messages
        if message.get("tool_call_id") and not message["content"].startswith(ERROR_PREFIX)
    }
    return [
        {**message, "content": _result_placeholder(calls.get(id_, {}), was_shown=id_ not in new)}
        if place not in spared
        and (id_ := message.get("tool_call_id"))
        and len(message["content"]) > SHORT_RESULT
        else _without_written_texts(message, done)
        for place, message in enumerate(messages)
    ]


def _without_written_texts(message: dict[str, Any], done: Collection[str]) -> dict[str, Any]:
    calls = message.get("tool_calls", [])
    shown = [_without_written_text(call) if call["id"] in done else call for call in calls]
    return message if shown == calls else {**message, "tool_calls": shown}


def _without_written_text(call: dict[str, Any]) -> dict[str, Any]:
    function = call["function"]
    if function["name"] not in WRITERS or len(function["arguments"]) <= SHORT_RESULT:
        return call
    with suppress(ValueError, AttributeError, RecursionError):
        arguments = {
            name: WRITTEN
            if name != "path" and isinstance(value, str) and len(value) > SHORT_RESULT
            else value
            for name, value in json.loads(function["arguments"]).items()
        }
        written = json.dumps(arguments, ensure_ascii=False)
        return {**call, "function": {**function, "arguments": written}}
    return call


def _result_placeholder(call: dict[str, Any], *, was_shown: bool) -> str:
    name, arguments = call.get("name", ""), call.get("arguments", "")
    again = "search_history"
    if path := _read_path(call):
        again = f"read_file({json.dumps(path, ensure_ascii=False)})"
    elif name in SAME_AGAIN and len(arguments) <= SHORT_RESULT:
        again = f"{name}({arguments})"
    if was_shown:
        return f"[result cleared to make room; {again} to see it again]"
    return f"[result left out for lack of room, not seen yet; {again} to see it]"
