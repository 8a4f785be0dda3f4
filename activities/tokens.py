"""Token counts, offline: o200k_base, with the vocabulary that a package carries."""

from __future__ import annotations

from functools import lru_cache

import bpe_openai

PIECE = 100_000
"""Characters encoded at a time: the encoder refuses a million, and holds the interpreter."""


@lru_cache(maxsize=1)
def _encoding() -> bpe_openai.Encoding:
    return bpe_openai.get_encoding("o200k_base")


def count(text: str) -> int:
    """Number of tokens of a text."""
    return sum(len(_encode(text[at : at + PIECE])) for at in range(0, len(text), PIECE))


def _encode(piece: str) -> list[int]:
    tokens: list[int] = _encoding().encode(piece, disallowed_special=())
    return tokens


def clip(text: str, limit: int, pointer: str) -> str:
    """The first `limit` tokens of a text; `pointer` says where the rest is."""
    taken = 0
    for at in range(0, len(text), PIECE):
        tokens = _encode(text[at : at + PIECE])
        if taken + len(tokens) > limit:
            # A token may end inside a character; what is left of that one goes.
            head = _encoding().decode(tokens[: limit - taken]).rstrip("\ufffd")
            left = len(text) - at - len(head)
            return f"{text[:at]}{head}\n[TRUNCATED {left:,} characters; {pointer}]"
        taken += len(tokens)
    return text
