"""The form of `phrases/*.yaml`: wording that classifies replies that call no tool."""

from __future__ import annotations

from typing import Annotated, Literal

import re2
from pydantic import AfterValidator, ConfigDict, Field

from config.patterns import compile_pattern, why_not
from protocol.state import Data


def compile_phrase(pattern: str, *, at_start: bool = False) -> re2._Regexp:
    """A phrase, ready to be sought in a sentence: whole words, in any case, in linear time.

    Raises:
        re2.error: it is no regular expression.
    """
    # The engine's \b knows ASCII letters only.
    return _compile_within(r"[^\pL\pN_]", pattern, at_start=at_start)


def _compile_within(edge: str, pattern: str, *, at_start: bool = False) -> re2._Regexp:
    begin = "^" if at_start else f"(?:^|{edge})"
    compiled: re2._Regexp = compile_pattern(f"{begin}(?:{pattern})(?:$|{edge})", any_case=True)
    return compiled


def _check_phrase(pattern: str) -> str:
    try:
        # All letters there are cost a millisecond a phrase; whether it is one, a space shows.
        _compile_within(" ", pattern)
    except re2.error as error:
        raise ValueError(f"not a regular expression of RE2: {why_not(error)}") from None
    return pattern


Pattern = Annotated[str, Field(min_length=1), AfterValidator(_check_phrase)]


class _FrozenData(Data):
    model_config = ConfigDict(frozen=True)


class PhraseClass(_FrozenData):
    """Phrases of one kind, and what takes a sentence out."""

    phrases: tuple[Pattern, ...]
    exceptions: tuple[Pattern, ...] = ()


class Wording(_FrozenData):
    """The phrases of all languages together, as a job pins them."""

    asking: tuple[PhraseClass, ...]
    claiming: tuple[PhraseClass, ...]
    answers: tuple[Pattern, ...]
    """How a sentence begins that answers the question before it."""


class WordingFile(_FrozenData):
    """`config/phrases/<language>.yaml`."""

    version: Literal[1]
    asking: PhraseClass
    claiming: PhraseClass
    answers: tuple[Pattern, ...] = ()


def merge_wordings(files: list[WordingFile]) -> Wording:
    """All languages as one: nobody says which one a model answers in."""
    return Wording(
        asking=tuple(file.asking for file in files),
        claiming=tuple(file.claiming for file in files),
        answers=tuple(pattern for file in files for pattern in file.answers),
    )
