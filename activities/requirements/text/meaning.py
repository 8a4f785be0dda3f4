"""What a statement says that must not get lost: its numbers, units, negation, force and actor.

Remarks on its wording go by the same; they never refuse it.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, cached_property

from activities.requirements.text.candidate_sentences import FORCES, Force
from activities.requirements.text.imperatives import find_imperative
from activities.text.indicators import shipped_indicators

STRENGTHS: dict[Force, int] = {"must": 2, "must not": 2, "should": 1, "may": 0}
MAX_NAMED = 4
"""Words named as a difference, of each side."""

_NUMBER = re.compile(
    r"(?<![\w.-])(\d+(?:[ \u00a0\u202f]\d{3}(?!\d))*(?:[.,:/]\d+)*)\s?"
    r"(%|\u20ac|\$|\u00b0?[^\W\d_]+)?"
)
_REFERENCE = re.compile(
    r"(?i)(?:§+|\b(?:abs(?:atz|\.)?|art(?:icle|ikel|\.)?|s(?:ec|ect)?\.|section|chapter|clause|table|figure|annex|appendix|"
    r"kapitel|abschnitt|anhang|satz|nr\.?|nummer|ziff(?:er|\.)?|tabelle|bild|page|seite|step|version))\s*\(?$"
)
_NAME = re.compile(r"(?a)(?<![\w-])(?=[\w.-]*\d)(?=[\w.-]*[^\W\d_])[^\W_][\w.-]*[\w]")
_MEASURE = re.compile(r"[\d.,]+-?([^\W\d_]+)")
_PERIOD = re.compile(
    r"(?i)\b(?:dai|day|t[a\u00e4]g)|hour|week|month|quarter|year|annu|st[u\u00fc]nd|w[o\u00f6]che|"
    r"monat|quartal|j[a\u00e4]hr"
)
_WORDS = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_ENDINGS = re.compile(r"(?:ungen|ung|ing|ies|ed|es|en|er|em|s|e|n|y)$")
_MODAL = re.compile(
    r"(?i)\b(?:must|shall|should|may|can|will|has to|have to|needs? to|is|are|"
    r"mu(?:ss|ß)|m\u00fcssen|soll\w*|darf|d\u00fcrfen|hat|haben|ist|sind|kann|k\u00f6nnen)\b"
)
_SEPARATORS = str.maketrans("", "", " \u00a0\u202f")


@dataclass(frozen=True)
class StatementFacts:
    """What a statement says, as far as code can see."""

    text: str

    @cached_property
    def measures(self) -> dict[str, set[str]]:
        """Units of each number, by the number in its plain form; numbers in words count too."""
        units_by_number: dict[str, set[str]] = {}
        units = _units()
        for match in _NUMBER.finditer(self.text):
            if _REFERENCE.search(self.text[max(0, match.start() - 14) : match.start()]):
                continue
            units_by_number.setdefault(_plain_number(match[1]), set()).update(
                units.get((match[2] or "").lower(), set())
            )
        words = [word.lower() for word in re.findall(r"[^\W_]+", self.text)]
        numbers = _number_words()
        for word, after in zip(words, [*words[1:], ""], strict=False):
            if word in numbers:
                units_by_number.setdefault(numbers[word], set()).update(units.get(after, set()))
        return units_by_number

    @cached_property
    def names(self) -> set[str]:
        """Names with a digit, such as SHA-256 or TLS1.3."""
        names = {name.lower().rstrip(".-") for name in _NAME.findall(self.text)}
        measures = {each[0]: each[1] for name in names if (each := _MEASURE.fullmatch(name))}
        return {name for name in names if measures.get(name) not in _units()}

    @cached_property
    def negated(self) -> bool:
        """Whether it has a word such as not, no or kein."""
        return self._has("negations")

    @cached_property
    def limited(self) -> bool:
        """Whether it has a word such as only, except or without."""
        return self._has("limits")

    def _has(self, kind: str) -> bool:
        words = {word.lower() for word in re.findall(r"[^\W\d_]+(?:['\u2019]t)?", self.text)}
        known = _listed_words(kind)
        return any(
            word.replace("\u2019", "'") in known or word.endswith(("n't", "n\u2019t"))
            for word in words
        )

    @cached_property
    def forces(self) -> set[Force]:
        hits = shipped_indicators().find(self.text)
        forces = {FORCES[hit.modality] for hit in hits if hit.modality}
        if order := find_imperative(self.text, item=True):
            forces.add(FORCES[order.modality])
        return forces

    @cached_property
    def content(self) -> dict[str, str]:
        """Its words by their stems, without frequent words, numbers and words of obligation."""
        phrases = shipped_indicators()
        spent = {
            word.lower()
            for hit in phrases.find(self.text)
            if hit.modality
            for word in re.findall(r"[^\W\d_]+", hit.words)
        }
        left_out = phrases.words | spent | _listed_words("negations") | _number_words().keys()
        return {
            _ENDINGS.sub("", word.lower()): word
            for word in _WORDS.findall(self.text)
            if word.lower() not in left_out and len(word) > 1
        }

    @cached_property
    def actor(self) -> str:
        """The words before its verb of obligation; empty if it begins with it."""
        match = _MODAL.search(self.text)
        return " ".join(self.text[: match.start()].split()) if match else ""


def statement_faults(text: str, force: Force | None, passages: str, context: str) -> list[str]:
    """Return what a statement says that its passages surely do not.

    A number may be one of theirs in another unit, if they have one that it leaves out. A negation
    turns their meaning round for sure only where most words are their own.

    Args:
        force: How strongly it is said to bind, if that is given apart.
        passages: All quotes, with the lead-ins of their lists.
        context: Where they stand: section, number, document, which a statement may name.
    """
    said, quoted = StatementFacts(text), StatementFacts(passages)
    around = StatementFacts(context)
    if not (said.content or said.names or said.measures):
        return ["nothing: it names neither who nor what"]
    faults = []
    known = quoted.measures
    converted = [
        units or _form(number)
        for number, units in known.items()
        if number not in said.measures or not said.measures[number] >= units
    ]
    if _PERIOD.search(_NUMBER.sub("", passages)):
        converted.append({"period"})
    for number, units in said.measures.items():
        if known.get(number):
            if units and not units & known[number]:
                faults.append(f"{number} {min(units)}, and they say {number} {min(known[number])}")
        elif number not in known.keys() | around.measures.keys() and not (
            re.search(rf"(?<![\d.,]){re.escape(number)}(?![.,]?\d)", passages)
            or re.search(rf"(?<!\d){re.escape(number)}(?!\d)", context)
            or (converted and (units or _form(number)) not in converted)
        ):
            faults.append(f"{' '.join([number, *sorted(units)[:1]])}, which they do not")
    names = re.sub(r"[\s-]+", "", f"{passages} {context}").lower()
    faults += [
        f"{name}, which they do not"
        for name in sorted(said.names)
        if name.replace("-", "") not in names
    ]
    faults += _force_faults(said, force, quoted)
    return faults


def _form(number: str) -> set[str]:
    """Return what tells a time or ratio (18:00, 7:1) from other numbers without a unit."""
    return {":"} & set(number)


def _force_faults(said: StatementFacts, force: Force | None, quoted: StatementFacts) -> list[str]:
    faults = []
    strengths = {STRENGTHS[each] for each in quoted.forces}
    quoted_forces = ", ".join(sorted(quoted.forces))
    strengths_said = {STRENGTHS[each] for each in said.forces}
    if strengths and force and STRENGTHS[force] not in strengths:
        faults.append(f"that it is a {force}, and they say {quoted_forces}")
    elif strengths and strengths_said and not strengths_said & strengths:
        faults.append(f"{', '.join(sorted(said.forces))}, and they say {quoted_forces}")
    if 2 * len(said.content.keys() & quoted.content.keys()) <= len(said.content):
        return faults  # in other words a negation may turn nothing round
    if said.negated and not (quoted.negated or quoted.limited):
        faults.append("not, and they do not")
    elif quoted.forces == {"must not"} and quoted.negated and not (said.negated or said.limited):
        faults.append("it without not, and they say must not")
    return faults


@dataclass(frozen=True)
class Difference:
    hard: list[str]
    """Numbers, units, force and negation: they cannot be duplicates."""
    words: str = ""
    """Other words; they may say the same in other words."""
    contradicts: bool = False
    is_paraphrase: bool = False
    """Whether most of the words differ, so that a single one says nothing."""

    def __str__(self) -> str:
        if self.contradicts:
            return f"contradicts? {'; '.join(self.hard)}"
        return f"differs in: {'; '.join([*self.hard, *([self.words] if self.words else [])])}"

    def __bool__(self) -> bool:
        return bool(self.hard or self.words)


def compare_statements(
    first: str, other: str, forces: tuple[Force | None, Force | None] = (None, None)
) -> Difference:
    """Return what two statements differ in; empty if code sees no difference.

    Args:
        forces: How strongly each binds, where that is known.
    """
    mine, theirs = StatementFacts(first), StatementFacts(other)
    hard = []
    if pairs := _unlike(_measure_words(mine), _measure_words(theirs)):
        hard.append(pairs)
    if pairs := _unlike(mine.names, theirs.names):
        hard.append(pairs)
    strong = [
        max((STRENGTHS[each] for each in ({force} if force else facts.forces)), default=None)
        for force, facts in zip(forces, (mine, theirs), strict=True)
    ]
    if None not in strong and strong[0] != strong[1]:
        names = {2: "must", 1: "should", 0: "may"}
        hard.append(" / ".join(names[each] for each in strong if each is not None))
    opposed = mine.negated != theirs.negated and not (mine.limited or theirs.limited)
    words = _unlike(
        {stem for stem in mine.content if stem not in theirs.content},
        {stem for stem in theirs.content if stem not in mine.content},
        mine.content | theirs.content,
    )
    same = len(mine.content.keys() & theirs.content.keys())
    is_paraphrase = 2 * same < len(mine.content.keys() | theirs.content.keys())
    if opposed:
        hard.append("not / without not" if mine.negated else "without not / not")
        return Difference(hard, words, contradicts=len(hard) == 1 and not words)
    return Difference(hard, words, is_paraphrase=is_paraphrase)


def _measure_words(facts: StatementFacts) -> set[str]:
    return {" ".join([number, *sorted(units)[:1]]) for number, units in facts.measures.items()}


def _unlike(first: Iterable[str], other: Iterable[str], names: dict[str, str] | None = None) -> str:
    mine, theirs = set(first), set(other)
    if mine == theirs:
        return ""
    sides = [sorted(mine - theirs)[:MAX_NAMED], sorted(theirs - mine)[:MAX_NAMED]]
    return " / ".join(
        ", ".join((names or {}).get(each, each) for each in side) or "nothing" for side in sides
    )


def _plain_number(text: str) -> str:
    """Return a number without separators of thousands, with a point for decimals."""
    plain = text.translate(_SEPARATORS)
    if re.fullmatch(r"\d{1,3}(?:[.,]\d{3})+", plain):
        return re.sub(r"[.,]", "", plain)
    if re.fullmatch(r"\d+,\d+", plain):
        plain = plain.replace(",", ".")
    return re.sub(r"^0+(?=\d)", "", plain)


@cache
def _units() -> dict[str, set[str]]:
    return {
        word: {unit}
        for unit, words in shipped_indicators().data.meaning.units.items()
        for word in words
    }


@cache
def _number_words() -> dict[str, str]:
    return {
        word: str(number)
        for number, words in shipped_indicators().data.meaning.numbers.items()
        for word in words
    }


@cache
def _listed_words(kind: str) -> frozenset[str]:
    words: frozenset[str] = getattr(shipped_indicators().data.meaning, kind)
    return words


_VAGUE = re.compile(
    r"(?i)\b(?:appropriate(?:ly)?|adequate(?:ly)?|reasonabl[ey]|sufficient(?:ly)?|timely|etc|"
    r"as far as possible|where possible|if necessary|user.friendly|easy|fast|and/or|suitable|"
    r"angemessen\w*|geeignet\w*|hinreichend\w*|ausreichend\w*|m\u00f6glichst|zeitnah\w*|usw|"
    r"gegebenenfalls|bei bedarf|unverz\u00fcglich)\b"
)
_LIMITS = re.compile(
    r"(?i)\b(?:within|at least|at most|minimum|maximum|innerhalb|mindestens|h\u00f6chstens)\b"
)


def wording_remarks(text: str) -> list[str]:
    """Return what makes it hard to test: several duties, vague words, no actor or measure."""
    remarks = []
    duties = [hit for hit in shipped_indicators().find(text) if hit.modality]
    if len(duties) > 1:
        remarks.append(f"{len(duties)} words of obligation in one statement")
    if vague := dict.fromkeys(match[0].lower() for match in _VAGUE.finditer(text)):
        remarks.append(f"vague: {', '.join(vague)}")
    facts = StatementFacts(text)
    if not facts.actor and find_imperative(text, item=True) is None:
        remarks.append("no actor is named")
    if _LIMITS.search(text) and not facts.measures:
        remarks.append("a limit without a measure")
    return remarks
