"""The form of `phrases/*.yaml`: wording by which replies that call no tool are told apart."""

from __future__ import annotations

from typing import Annotated, Literal

import re2
from pydantic import AfterValidator, ConfigDict, Field

from config.patterns import compile_pattern, why_not
from protocol.state import Data


def expression(pattern: str, *, at_start: bool = False) -> re2._Regexp:
    """A phrase, ready to be sought in a sentence: whole words, in any case, in linear time.

    Raises:
        re2.error: it is no regular expression.
    """
    # The engine's \b knows ASCII letters only.
    return _within(r"[^\pL\pN_]", pattern, at_start=at_start)


def _within(edge: str, pattern: str, *, at_start: bool = False) -> re2._Regexp:
    begin = "^" if at_start else f"(?:^|{edge})"
    found: re2._Regexp = compile_pattern(f"{begin}(?:{pattern})(?:$|{edge})", any_case=True)
    return found


def _compiles(pattern: str) -> str:
    try:
        # All letters there are cost a millisecond a phrase; whether it is one, a space shows.
        _within(" ", pattern)
    except re2.error as error:
        raise ValueError(f"not a regular expression of RE2: {why_not(error)}") from None
    return pattern


Pattern = Annotated[str, Field(min_length=1), AfterValidator(_compiles)]


class _Strict(Data):
    model_config = ConfigDict(frozen=True)


class PhraseClass(_Strict):
    """Phrases of one kind, and what takes a sentence out."""

    phrases: tuple[Pattern, ...]
    exceptions: tuple[Pattern, ...] = ()


class Wording(_Strict):
    """The phrases of all languages together, as a job pins them."""

    asking: tuple[PhraseClass, ...]
    claiming: tuple[PhraseClass, ...]
    answers: tuple[Pattern, ...]
    """How a sentence begins that answers the question before it."""


class WordingFile(_Strict):
    """`config/phrases/<language>.yaml`."""

    version: Literal[1]
    asking: PhraseClass
    claiming: PhraseClass
    answers: tuple[Pattern, ...] = ()


def together(files: list[WordingFile]) -> Wording:
    """All languages as one: nobody says which one a model answers in."""
    return Wording(
        asking=tuple(file.asking for file in files),
        claiming=tuple(file.claiming for file in files),
        answers=tuple(pattern for file in files for pattern in file.answers),
    )
