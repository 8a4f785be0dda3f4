"""Offline token counts, with the vocabularies bundled in a package."""

import importlib
import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from tiktoken.model import encoding_name_for_model

if TYPE_CHECKING:
    import bpe_openai

PIECE = 100_000
"""Characters encoded at a time: the encoder refuses a million, and holds the GIL meanwhile."""
UNKNOWN = "o200k_base"
CARRIED = frozenset({"o200k_base", "cl100k_base"})
MESSAGE_TOKENS = 4
"""Overhead per message besides its texts."""


@lru_cache(maxsize=256)
def token_encoding_name(model: str) -> str:
    """Return the name of a model's encoding; the newest one for unknown models."""
    try:
        name = encoding_name_for_model(model)
    except KeyError:
        return UNKNOWN
    return name if name in CARRIED else UNKNOWN


@lru_cache(maxsize=2)
def _load_encoding(name: str) -> "bpe_openai.Encoding":
    # Loaded on first use: it loads all vocabularies, a fifth of the whole start-up time, and most
    # commands count no tokens.
    return importlib.import_module("bpe_openai").get_encoding(name)


def count_tokens(text: str, encoding: str = UNKNOWN) -> int:
    pieces = (text[start : start + PIECE] for start in range(0, len(text), PIECE))
    return sum(len(_encode_tokens(piece, encoding)) for piece in pieces)


def message_tokens(data: bytes, encoding: str) -> int:
    message: dict[str, Any] = json.loads(data)
    called = [call["function"] for call in message.get("tool_calls", [])]
    texts = [str(message.get("content") or "")]
    texts += [f"{function['name']} {function['arguments']}" for function in called]
    return MESSAGE_TOKENS + sum(count_tokens(text, encoding) for text in texts)


def _encode_tokens(piece: str, encoding: str = UNKNOWN) -> list[int]:
    tokens: list[int] = _load_encoding(encoding).encode_ordinary(piece)
    return tokens


def clip_to_tokens(text: str, limit: int, pointer: str) -> str:
    """Return a text's first `limit` tokens, marked if cut; `pointer` says where the rest is."""
    used = 0
    for start in range(0, len(text), PIECE):
        tokens = _encode_tokens(text[start : start + PIECE])
        if used + len(tokens) > limit:
            # A token may end inside a character; drop the incomplete one.
            head = _load_encoding(UNKNOWN).decode(tokens[: limit - used]).rstrip("\ufffd")
            omitted = len(text) - start - len(head)
            return f"{text[:start]}{head}\n[TRUNCATED {omitted:,} characters; {pointer}]"
        used += len(tokens)
    return text
