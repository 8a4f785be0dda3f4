"""Whether a document is in a language whose words of obligation are known."""

import re
from collections.abc import Iterable

from activities.documents.pages import Page
from activities.requirements.text.indicators import shipped_indicators

LEAST_WORDS = 40
"""A shorter document is not judged by its language."""
LEAST_SHARE = 0.08
"""Share of frequent words. English and German texts have more than 0.11, other languages up to
0.06."""
UNKNOWN_LANGUAGE = (
    "Hardly a word of it is English or German, so it is not known which of its sentences bind"
)
_WORD = re.compile(r"[^\W\d_]+")


def is_language_known(pages: Iterable[Page]) -> bool:
    """Whether enough words are frequent ones of a language with known words of obligation."""
    words = [word.lower() for page in pages for word in _WORD.findall(page.text)]
    frequent = shipped_indicators().words
    return len(words) < LEAST_WORDS or (
        sum(word in frequent for word in words) >= LEAST_SHARE * len(words)
    )
