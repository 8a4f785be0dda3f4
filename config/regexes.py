"""Regular expressions written by people and models (RE2), which match in linear time."""

from functools import lru_cache
from typing import Annotated, Any

import re2
from pydantic import AfterValidator

PASSED_OVER = 4096
"""Most characters of a text that is matched against all patterns at once."""


def compile_regex(pattern: str, *, any_case: bool = False, memory: int | None = None) -> Any:
    """Compile a pattern. Raises re2.error.

    Args:
        pattern: The regular expression.
        memory: Most bytes of the compiled pattern; None for the engine's own limit.
    """
    return re2.compile(pattern, options=_regex_options(any_case=any_case, memory=memory))


def _regex_options(*, any_case: bool = False, memory: int | None = None) -> re2.Options:
    options = re2.Options()
    options.log_errors = False
    options.case_sensitive = not any_case
    if memory is not None:
        options.max_mem = memory
    return options


@lru_cache(maxsize=1024)
def compile_cached_regex(pattern: str) -> Any:
    """Like `compile_regex`, cached. Raises re2.error."""
    return compile_regex(pattern)


def regex_error(error: re2.error) -> str:
    """The engine's message about an invalid pattern, which may come as bytes."""
    message = error.args[0]
    return message.decode() if isinstance(message, bytes) else str(message)


def regexes_that_may_match(patterns: tuple[str, ...], text: str) -> list[str]:
    """The patterns that may match somewhere in the text; the caller must still match each.

    Short texts are searched once for all patterns; for longer texts all patterns are returned.
    """
    # The engine reports no match when a set's states run out of memory. There are no more states
    # than characters, so a short text cannot exhaust it.
    pattern_set = _compile_pattern_set(patterns) if len(text) <= PASSED_OVER else None
    return (
        [patterns[place] for place in sorted(pattern_set.Match(text) or ())]
        if pattern_set
        else [*patterns]
    )


@lru_cache(maxsize=256)
def _compile_pattern_set(patterns: tuple[str, ...]) -> Any:
    """One matcher for all patterns; None when they are too large together."""
    pattern_set = re2.Set.SearchSet(_regex_options(memory=64 << 20))
    try:
        for pattern in patterns:
            pattern_set.Add(pattern)
        pattern_set.Compile()
    except re2.error:
        return None
    return pattern_set


def _check_pattern(text: str) -> str:
    try:
        compile_cached_regex(text)
    except re2.error as error:
        raise ValueError(f"expected a pattern in re2 syntax ({regex_error(error)})") from None
    return text


Pattern = Annotated[str, AfterValidator(_check_pattern)]
