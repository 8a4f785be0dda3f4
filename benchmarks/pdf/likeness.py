"""Compares two texts by words: shared ones, their order, and words run together."""

import re
import unicodedata
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise

# Scripts without spaces between words are compared letter by letter.
_UNSPACED = (
    r"\u0590-\u08ff\u0900-\u0dff\u0e00-\u0eff\u1000-\u109f\u2e80-\u30ff\u3400-\u9fff\uac00-\ud7af"
    r"\uf900-\ufaff"
)
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+")
_LINE_END = re.compile(r"(?<=\w)[-\u00ad\u2010\ufffe\x02][ \t]*\r?\n\s*(?=\w)")
# Direction marks, and Arabic and Hebrew points, which engines put before or after a letter.
_SIGNS = re.compile(r"[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufffe]")


def page_words(pages: list[str]) -> list[str]:
    """Split into words, ignoring layout: case, ligatures, hyphens, points."""
    text = "\n".join(pages)
    text = _SIGNS.sub("", _LINE_END.sub("", text))
    text = unicodedata.normalize("NFKD", text)
    text = "".join(letter for letter in text if not unicodedata.combining(letter))
    return _WORD.findall(re.sub(r"(?<=\w)[-\u2010\u2011](?=\w)", "", text).lower())


@dataclass(frozen=True)
class Likeness:
    words: int
    share: float
    """Fraction of the reference's words that occur here, counted with repetitions."""
    order: float
    """Fraction of the reference's neighbouring pairs that are neighbours here."""
    run_together: float
    """Words per 1,000 that are several words of the reference without a space."""


def likeness(reference: list[str], pages: list[str]) -> Likeness:
    right, ours = page_words(reference), page_words(pages)
    known = set(right)
    glued = sum(
        word not in known and len(word) > 7 and _is_compared_word_glued(word, known)
        for word in ours
    )
    return Likeness(
        words=len(right),
        share=_likeness_word_share(Counter(right), Counter(ours)),
        order=_likeness_word_share(Counter(pairwise(right)), Counter(pairwise(ours))),
        run_together=1000 * glued / max(len(ours), 1),
    )


def _likeness_word_share(right: Counter, ours: Counter) -> float:  # type: ignore[type-arg]
    return (right & ours).total() / max(right.total(), 1)


def _is_compared_word_glued(word: str, known: set[str]) -> bool:
    """Return whether the word is a sequence of known words, each of at least two letters."""
    best: list[int | None] = [0] + [None] * len(word)
    for end in range(1, len(word) + 1):
        counts = [
            count + 1
            for start in range(max(0, end - 30), end - 1)
            if (count := best[start]) is not None and word[start:end] in known
        ]
        best[end] = min(counts, default=None)
    parts = best[len(word)]
    return parts is not None and parts > 1
