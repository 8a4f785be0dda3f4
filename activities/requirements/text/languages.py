"""Whether a document is in a language whose words of obligation are known."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence

from activities.documents.pages import Page
from activities.requirements.text.indicators import shipped_indicators
from activities.requirements.text.statements import statements_of

LEAST_SHARE = 0.14
"""Share of frequent words in prose; two may be missing, since a few words prove little. English
and German texts have 0.26 or more, texts in other languages with the same letters up to 0.11, as
measured on Debian's manual pages in 14 languages."""
MAX_SCRIPT_SHARE = 0.2
"""Share of letters in words of another script."""
MAX_LETTER_SHARE = 0.04
"""Share of lower-case words with a letter of neither language. Names have capitals, so that a list
of names is no evidence."""
LEAST_FOREIGN = 2
SENTENCE_WORDS = 6
UNKNOWN_LANGUAGE = (
    "Much of it is neither English nor German, so it is not known which of its sentences bind"
)
_WORD = re.compile(r"[^\W\d_]{2,}")
_LATIN = re.compile(r"[A-Za-z\u00c0-\u024f\u1e00-\u1eff]")
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
    prose = [word.lower() for word in _prose_words(pages)]
    return sum(word in frequent for word in prose) + 2 >= LEAST_SHARE * len(prose)


def _has_foreign_letters(words: Sequence[str]) -> bool:
    other_script = sum(len(word) for word in words if not _LATIN.search(word))
    lower = [word for word in words if word[0].islower() and _LATIN.search(word)]
    foreign = sum(_FOREIGN.search(word) is not None for word in lower)
    return other_script > MAX_SCRIPT_SHARE * sum(map(len, words)) or (
        foreign >= LEAST_FOREIGN and foreign > MAX_LETTER_SHARE * len(lower)
    )


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
