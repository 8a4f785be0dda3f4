"""Whether a sentence binds by its words of obligation."""

import re

from activities.text.indicators import shipped_indicators
from activities.text.statement_words import is_finite, is_verb, statement_words, words_of

LEAST_CONFIDENCE = 0.5
"""Phrases of obligation up to this confidence also stand in descriptions, such as `cannot`."""
_INDIRECT = re.compile(
    r"\b(?:what|whether|how|why|who|was|ob|wie|warum|wer)\b(?:\s+[\w'-]+){0,3}?\s+"
    r"(?:must|should|shall|has to|have to|needs to|need to|is to be|are to be|ought to"
    r"|muss|müssen|soll|sollen|sollte|sollten)\b",
    re.IGNORECASE,
)
_MODALS = r"(?:must|shall|should|may|will|can|muss|soll|sollte|darf|kann)(?:\s+(?:not|nicht))?"
_SHORT_NOT = re.compile(r"\b(is|are|should|do|does|has|have|need)n't\b", re.IGNORECASE)
_QUOTED = re.compile(
    r"(?<=\S\s)[\"\u201c\u201e\u00ab][^\"\u201c\u201d\u201e\u00ab\u00bb]{1,200}[\"\u201c\u201d\u00bb]"
)
_MENTION = re.compile(
    rf"\b{_MODALS}(?:\s*(?:,|/|\band|\bor|\bund|\boder)\s*(?:(?:and|or|und|oder)\s+)?{_MODALS}\b)+"
    r"|\b(?:kein|not a) (?:muss|must)\b",
    re.IGNORECASE,
)
"""Words of obligation that are only spoken of: "It says must or should", "It is not a must"."""
_WILL = re.compile(
    r"\b([\w'-]+)(?:\s+(?:also|then|only|always|not|never))?\s+(?:will|won't)\s+(\w+)",
    re.IGNORECASE,
)
_FORBIDS = re.compile(
    r"\b(?:do not|don'?t|does not|must not|mustn'?t|shall not|should not|shouldn'?t|may not"
    r"|is not to|are not to|never|no longer"
    r"|nicht|kein(?:e[nrms]?)?|nie|niemals|ne\b.{1,40}\bpas|jamais|nunca|no debe\w*)\b"
    r"|\b(?:leave|keep)\b.{1,60}\b(?:alone|unchanged|untouched|as it is|as they are)\b",
    re.IGNORECASE,
)


_IS_TO = re.compile(
    r"\b(?P<subject>[\w'-]+)\s+(?:is|are)(?:\s+(?:also|then|only|always|not|never))?\s+to\s+(?!the\b|a\b|an\b|this\b|its\b|their\b|our\b|\d)(?P<verb>[a-z]+)\b"
)
_NO_MAY = re.compile(
    r"(?:^|[,;:]\s|\bthat\s)(?:no|none of|neither)\b[^.;:!?]{1,80}\bmay\b", re.IGNORECASE
)
_ZU_FIRST = re.compile(r"(?:^|,\s)zu [a-zäöüß]+(?:en|ern|eln) (?:ist|sind)\b", re.IGNORECASE)
_ZU_SEEN = re.compile(r"\bzu (?:sehen|finden|lesen|erwarten|hören|spüren|erkennen|haben)\b")
_BINDING = frozenset(["obligation", "prohibition", "recommendation"])
_RELATIVES = frozenset(["that", "which", "who"])
_BLANKABLE = re.compile(r"[^,]{0,200},")
_CONDITION = re.compile(
    r"\s*(?:if|when|whenever|unless|because|since|although|though|while|wenn|falls|weil|obwohl|da|sollte|sollten)\b",
    re.IGNORECASE,
)


def has_obligation(text: str) -> bool:
    said = _QUOTED.sub(" ", _SHORT_NOT.sub(r"\1 not", text.replace("\u2019", "'")))
    searched = _MENTION.sub(" ", _INDIRECT.sub(" ", said))
    if _CONDITION.match(searched) and (condition := _BLANKABLE.match(searched)):
        searched = searched[condition.end() :]
    for hit in shipped_indicators().find(searched):
        if hit.modality in _BINDING and hit.confidence > LEAST_CONFIDENCE:
            found = searched[hit.start : hit.end]
            # Of words with a gap between them, a single comma within parts two clauses.
            parted = "\u2026" in hit.words and found.count(",") == 1
            if (
                not parted
                and not _ZU_SEEN.search(found)
                and not _is_of_subject(searched, hit.start)
            ):
                return True
    will = any(
        match[1].lower() not in statement_words().grammar.will_subjects
        and match[2].lower() not in statement_words().grammar.will_events
        for match in _WILL.finditer(searched)
    )
    is_to = any(
        match["subject"].lower() not in statement_words().grammar.is_to_subjects
        for match in _IS_TO.finditer(searched)
    )
    return will or is_to or any(each.search(searched) for each in (_NO_MAY, _ZU_FIRST))


def forbids(text: str) -> bool:
    return any(hit.modality == "prohibition" for hit in shipped_indicators().find(text))


def _is_of_subject(text: str, place: int) -> bool:
    """Return whether the words there describe a subject: "Files that it may not write are kept"."""
    before = words_of(text[max(0, place - 120) : place])
    last = range(1, min(6, len(before) + 1))
    relative = next((n for n in last if before[-n] in _RELATIVES), 0)
    return relative > 0 and not any(
        is_finite(word) or is_verb(word) or word in _RELATIVES or word == ","
        for word in before[:-relative]
    )


def is_prohibition(text: str) -> bool:
    """Return whether a text forbids something, for which the work has no words to show."""
    return bool(_FORBIDS.search(text.replace("\u2019", "'")))
