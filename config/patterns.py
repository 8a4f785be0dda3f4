"""Patterns that people and models write (RE2): sought in a time that grows with the text alone."""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Any

import re2
from pydantic import AfterValidator

PASSED_OVER = 4096
"""Characters of a text that is held against many patterns at once."""


def compile_pattern(pattern: str, *, any_case: bool = False, memory: int | None = None) -> Any:
    """The pattern, ready to be looked for. Raises re2.error.

    Args:
        any_case: Whether the case of letters counts for nothing.
        memory: Bytes that it may take; None: as many as the engine's own limit lets it.
    """
    return re2.compile(pattern, options=_pattern_options(any_case=any_case, memory=memory))


def _pattern_options(*, any_case: bool = False, memory: int | None = None) -> re2.Options:
    options = re2.Options()
    options.log_errors = False
    options.case_sensitive = not any_case
    if memory is not None:
        options.max_mem = memory
    return options


@lru_cache(maxsize=1024)
def compile_cached(pattern: str) -> Any:
    """The same for those that are looked for again and again. Raises re2.error."""
    return compile_pattern(pattern)


def why_not(error: re2.error) -> str:
    """The engine's words on a pattern that is none; it gives them as bytes."""
    said = error.args[0]
    return said.decode() if isinstance(said, bytes) else str(said)


def candidate_patterns(patterns: tuple[str, ...], text: str) -> list[str]:
    """Those of the patterns that may be somewhere in the text, each still to be looked for.

    Short texts are passed over once for all of them.
    """
    # The engine says "nothing" when a set's states run out of memory. A text has no more states
    # than characters, so a short one cannot.
    pattern_set = _compile_set(patterns) if len(text) <= PASSED_OVER else None
    return (
        [patterns[place] for place in sorted(pattern_set.Match(text) or ())]
        if pattern_set
        else [*patterns]
    )


@lru_cache(maxsize=256)
def _compile_set(patterns: tuple[str, ...]) -> Any:
    """The patterns as one; None for those that are too large together."""
    pattern_set = re2.Set.SearchSet(_pattern_options(memory=64 << 20))
    try:
        for pattern in patterns:
            pattern_set.Add(pattern)
        pattern_set.Compile()
    except re2.error:
        return None
    return pattern_set


def _check_pattern(text: str) -> str:
    try:
        compile_cached(text)
    except re2.error as error:
        raise ValueError(f"expected a pattern in re2 syntax ({why_not(error)})") from None
    return text


Pattern = Annotated[str, AfterValidator(_check_pattern)]
