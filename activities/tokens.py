"""Token counts, offline: o200k_base, with the vocabulary that a package carries."""

from __future__ import annotations

from functools import lru_cache

import bpe_openai


@lru_cache(maxsize=1)
def _encoding() -> bpe_openai.Encoding:
    return bpe_openai.get_encoding("o200k_base")


def count(text: str) -> int:
    """Number of tokens of a text."""
    return len(_encoding().encode(text, disallowed_special=()))


def clip(text: str, limit: int, pointer: str) -> str:
    """The first `limit` tokens of a text; `pointer` says where the rest is."""
    tokens = _encoding().encode(text, disallowed_special=())
    if len(tokens) <= limit:
        return text
    return (
        f"{_encoding().decode(tokens[:limit])}\n[TRUNCATED {len(tokens) - limit} tokens; {pointer}]"
    )
