"""Whether a document is in a language whose words of obligation are known."""

import re
import unicodedata
from collections.abc import Iterator, Sequence

from activities.documents.pages import Page
from activities.requirements.text.statements import statements_of
from activities.text.indicators import shipped_indicators

LEAST_SHARE = 0.14
"""Share of frequent words in prose; two may be missing, since a few words prove little. English
and German texts have 0.26 or more, texts in other languages with the same letters up to 0.11, as
measured on Debian's manual pages in 14 languages."""
BLOCK_WORDS = 30
MAX_FREQUENT = 3
"""Most frequent words in so many words of another language. Of English and German, one block in a
thousand has as few; so two are needed."""
LEAST_BLOCKS = 2
MAX_FOREIGN_SHARE = 0.2
"""Share of blocks, and of letters in words of another script."""
LETTERS_OF_IDEOGRAM = 3
"""A character of Chinese, Japanese or Korean says as much as so many letters."""
MAX_LETTER_SHARE = 0.04
"""Share of lower-case words with a letter of neither language. Names have capitals, so that a list
of names is no evidence."""
LEAST_FOREIGN = 3
"""Two may be loan words."""
SENTENCE_WORDS = 6
UNKNOWN_LANGUAGE = (
    "Much of it is neither English nor German, so it is not known which of its sentences bind"
)
_WORD = re.compile(r"[^\W\d_]{2,}")
_LATIN = re.compile(r"[A-Za-z\u00c0-\u024f\u1e00-\u1eff]")
_IDEOGRAM = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_FOREIGN = re.compile(r"[à-ãå-õø-ûý-ÿ\u0100-\u024f\u1e00-\u1eff]")
_MARKS = ".,;:!?\u2026\"'\u201c\u201d\u201e\u2018\u2019\u00ab\u00bb()[]*_"
_STOPS = tuple(".!?:;\u2026")


def is_language_known(pages: Sequence[Page]) -> bool:
    """Whether neither the letters nor the prose are those of another language.

    Tables, numbers and part codes are no evidence: a document of these alone has no language.
    """
    readable = "\n".join(page.text for page in pages if not page.unread)
    if _has_foreign_letters(_WORD.findall(unicodedata.normalize("NFC", readable))):
        return False
    frequent = shipped_indicators().words
    return not _is_foreign_prose([word.lower() in frequent for word in _prose_words(pages)])


def _is_foreign_prose(are_frequent: Sequence[bool]) -> bool:
    """Whether all of the prose, or much of it, has too few frequent words."""
    if sum(are_frequent) + 2 < LEAST_SHARE * len(are_frequent):
        return True
    starts = range(0, len(are_frequent) - BLOCK_WORDS + 1, BLOCK_WORDS)
    foreign = sum(
        sum(are_frequent[start : start + BLOCK_WORDS]) <= MAX_FREQUENT for start in starts
    )
    return foreign >= LEAST_BLOCKS and foreign > MAX_FOREIGN_SHARE * len(starts)


def _has_foreign_letters(words: Sequence[str]) -> bool:
    other_script = sum(_count_letters(word) for word in words if not _LATIN.search(word))
    lower = [word for word in words if word[0].islower() and _LATIN.search(word)]
    foreign = sum(_FOREIGN.search(word) is not None for word in lower)
    return other_script > MAX_FOREIGN_SHARE * sum(map(_count_letters, words)) or (
        foreign >= LEAST_FOREIGN and foreign > MAX_LETTER_SHARE * len(lower)
    )


def _count_letters(word: str) -> int:
    return len(word) + (LETTERS_OF_IDEOGRAM - 1) * len(_IDEOGRAM.findall(word))


def _prose_words(pages: Sequence[Page]) -> Iterator[str]:
    """Yield the words of sentences that end with a stop and are mostly words in lower case."""
    sentences = statements_of(pages).sentences.values()
    for sentence in (each for of_page in sentences for each in of_page if not each.is_heading):
        text = sentence.full_text.rstrip(" \n\"'\u201d\u2019\u00bb)]*_")
        if not text.endswith(_STOPS):
            continue
        tokens = [token.strip(_MARKS) for token in text.split()]
        words = [token for token in tokens if token.isalpha()]
        lower = sum(not word[0].isupper() for word in words)
        if len(words) >= SENTENCE_WORDS and 2 * lower >= len(tokens):
            yield from words
