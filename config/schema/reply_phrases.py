"""The schema of `phrases/*.yaml`: wording that classifies replies without tool calls."""

from functools import lru_cache
from typing import Annotated, Literal

import re2
from pydantic import AfterValidator, ConfigDict, Field

from config.regexes import compile_regex, regex_error
from protocol.data_model import Data


def compile_phrase(pattern: str, *, at_start: bool = False) -> re2._Regexp:
    """Compile a phrase that matches whole words in a sentence, ignoring case.

    Raises re2.error: the phrase is not a valid regular expression.
    """
    # The engine's \b covers ASCII letters only.
    return _compile_phrase_within(r"[^\pL\pN_]", pattern, at_start=at_start)


@lru_cache(maxsize=1024)
def _compile_phrase_within(edge: str, pattern: str, *, at_start: bool = False) -> re2._Regexp:
    begin = "^" if at_start else f"(?:^|{edge})"
    compiled: re2._Regexp = compile_regex(f"{begin}(?:{pattern})(?:$|{edge})", any_case=True)
    return compiled


def _check_phrase(pattern: str) -> str:
    try:
        # The Unicode classes cost a millisecond per phrase; a space suffices to validate it.
        _compile_phrase_within(" ", pattern)
    except re2.error as error:
        raise ValueError(f"not a regular expression of RE2: {regex_error(error)}") from None
    return pattern


Pattern = Annotated[str, Field(min_length=1), AfterValidator(_check_phrase)]


class _FrozenData(Data):
    model_config = ConfigDict(frozen=True)


class PhraseClass(_FrozenData):
    """Phrases of one kind, and exceptions that exclude a sentence."""

    phrases: tuple[Pattern, ...]
    exceptions: tuple[Pattern, ...] = ()


class Wording(_FrozenData):
    """The phrases of all languages, as a job pins them."""

    refusing: tuple[PhraseClass, ...] = ()
    asking: tuple[PhraseClass, ...]
    claiming: tuple[PhraseClass, ...]
    answers: tuple[Pattern, ...]
    """Beginnings of sentences that answer the preceding question."""


class WordingFile(_FrozenData):
    """`config/phrases/<language>.yaml`."""

    version: Literal[1]
    refusing: PhraseClass = PhraseClass(phrases=())
    asking: PhraseClass
    claiming: PhraseClass
    answers: tuple[Pattern, ...] = ()


def merge_reply_wordings(files: list[WordingFile]) -> Wording:
    """Merge all languages, since the language of a model's reply is unknown."""
    return Wording(
        refusing=tuple(file.refusing for file in files if file.refusing.phrases),
        asking=tuple(file.asking for file in files if file.asking.phrases),
        claiming=tuple(file.claiming for file in files if file.claiming.phrases),
        answers=tuple(pattern for file in files for pattern in file.answers),
    )
