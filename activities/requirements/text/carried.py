"""Which of the sentences that a requirement quotes its own statement says."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import takewhile

from activities.requirements.text.candidate_sentences import Candidate
from activities.requirements.text.languages import LEAST_SHARE
from activities.requirements.text.meaning import StatementFacts
from activities.text.indicators import LanguageCode, shipped_indicators

FEW = 3
"""Sentences that one statement may sum up in words of its own."""
CONDENSED = 4
"""How many times as long as the statement the text may be that it sums up."""
LEAD_WORDS = 2
"""Words that say more than "the following"."""
LEAD_SHARE = 0.5
"""Of the words before a list: a statement that has them stands for the items."""
SHORT = 5
"""Words below which a text shows no language."""
LEAST_PART = 4
"""Letters of a word that shows in another: warm, warmth."""
SAME_BEGINNING = 5
"""Letters that words of the same stem share at least: document, documentation."""
_MARKER = re.compile(r"\s*(?:\(?\w{1,4}[.)]|\d+(?:\.\d+)+\.?)\s+")


def carried_sentences(statement: str, sentences: Sequence[Candidate]) -> list[Candidate]:
    """Return those that the statement can say.

    A paraphrase may share no word with its sentence, so one of them is always said. Several are as
    far as the statement is long enough; of more than `FEW` each also has to share a word or a
    number by which it differs from the others. An item for which the words before its list bind is
    said with these.

    Args:
        sentences: Those that its quotes touch, in order.
    """
    words, numbers = _facts(statement)
    facts = {each.id: _facts(_full_text(each)) for each in sentences}
    common = _common(own for own, _ in facts.values())
    shares = {
        each.id: _share(facts[each.id][0] - common, words)
        + len(facts[each.id][1] & numbers)
        + (not _comparable(statement, each.language))
        for each in sentences
    }
    said, room = set[str](), CONDENSED * len(statement)
    for each in sorted(sentences, key=lambda each: -shares[each.id]):
        with_lead_in = _is_said_with_lead_in(each, words)
        room -= 0 if with_lead_in else len(each.text)
        fits = room >= 0 and (shares[each.id] > 0 or len(sentences) <= FEW)
        if with_lead_in or fits or not said:
            said.add(each.id)
    return [each for each in sentences if each.id in said]


def repeats_sentence(statement: str, sentence: Candidate) -> bool:
    """Whether a statement has all words and numbers of a sentence."""
    said, sought = _facts(statement), _facts(_full_text(sentence))
    return bool(sought[0]) and _share(sought[0], said[0]) == 1 and sought[1] <= said[1]


def _is_said_with_lead_in(sentence: Candidate, words: frozenset[str]) -> bool:
    """Whether the statement has most of the words before its list, which bind for the item."""
    if sentence.form != "item" and not (sentence.form == "order" and sentence.lead):
        return False
    lead, _ = _facts(sentence.lead_in)
    return len(lead) >= LEAD_WORDS and _share(lead, words) >= LEAD_SHARE


def _full_text(sentence: Candidate) -> str:
    return f"{sentence.text} {sentence.rest}"


@lru_cache(16_384)
def _facts(text: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return stems and names, and numbers, without the number of the item or paragraph."""
    facts = StatementFacts(_MARKER.sub("", text, count=1) if _MARKER.match(text) else text)
    numbers = (each for each in facts.measures if each.count(".") < 2)  # 4.2.1 is a section
    return frozenset(facts.content) | facts.names, frozenset(numbers)


def _common(facts: Iterable[frozenset[str]]) -> set[str]:
    """Return what more than half of the sentences have."""
    every = list(facts)
    counts = Counter(each for fact in every for each in fact)
    return {each for each, count in counts.items() if 2 * count > len(every)}


def _share(sought: Iterable[str], words: Iterable[str]) -> float:
    every = list(sought)
    return sum(any(_are_alike(one, other) for other in words) for one in every) / max(1, len(every))


def _are_alike(one: str, other: str) -> bool:
    """Whether two stems are of the same word, or one is part of the other, as in compounds."""
    short, long = sorted((one, other), key=len)
    if one == other or (len(short) >= LEAST_PART and short in long):
        return True
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
    return same >= SAME_BEGINNING


@lru_cache(16_384)
def _language(text: str) -> LanguageCode | None:
    """Return its language by its frequent words; None if it has too few."""
    phrases = shipped_indicators()
    code = phrases.language_of(text)
    words = re.findall(r"\w+", text.lower())
    frequent = sum(word in phrases.data.languages[code].words for word in words)
    return code if frequent and frequent >= LEAST_SHARE * len(words) else None


def _comparable(statement: str, language: LanguageCode) -> bool:
    mine = _language(statement)
    return mine == language or (mine is None and len(statement.split()) < SHORT)
