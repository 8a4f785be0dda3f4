"""How many words, lines, rows, entries or files a statement demands."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from activities.text.indicators import shipped_indicators
from activities.text.statement_words import any_word

WORD_SHARE = 0.8
"""Share of the words that a number without a bound asks for, as nobody writes to the word."""
_UPPER = ("at most", "no more than", "höchstens")
_LOWER = ("at least", "no fewer than", "mindestens")
_UNITS = {
    "word": r"words?|wörtern?|worten?",
    "line": r"lines?",
    "line or row": r"zeilen?",
    "row": r"rows?",
    "bullet": r"bullet(?: point)?s?",
    "entry": r"entries|entry|einträgen?",
    "section": r"sections?|headings?",
}
_WRITE = (
    r"(?:please\s+)?(?:write|create|draft|compose|make|prepare|generate|put|list|add"
    r"|schreiben?|erstellen?|verfassen?)"
)
_ARTICLE = r"(?:an?|one|eine?[nrm]?)"
_KINDS = r"(?:\b(?:different|distinct|data|body|separate|unique)\s+)?"
_TABLES = r"(?:table|list|tabelle|liste|csv|file|datei|glossary|glossar|sheet|dataset)"
_HAS = (
    r"(?:(?:that|which|and|die|das)\s+)?(?:must\s+|should\s+|shall\s+|muss\s+|soll\s+)?"
    r"(?:with|of|be|is|has|have|contains?|containing|holds?|holding|mit|von|aus|hat|ist|enthält)"
)
_VAGUE = any_word(
    r"about|around|roughly|approximately|approx|circa|ca|some|nearly|almost|up to|under|within|"
    r"max(?:imum)?|less than|etwa|rund|ungefähr|bis zu|knapp"
)
_ENDS = re.compile(
    r"\s*(?:long|lang|or more|oder mehr)?\s*(?:[.;,:()]|$|(?:in|into|to|as|and save|nach|als)\s+"
    r"(?:(?:the|a|its|der|die|einer?|ihrer)\s+)?(?:file|datei|table|tabelle|[\"'`]?\0)"
    r"|(?:in|auf)\s+[A-Z]\w+\b|about\b|on\b|over\b|\u00fcber\b|zu\b|zum\b|zur\b)",
)
"""What may follow a number that is that of the whole file."""
_QUALIFIED = any_word(
    r"if|when|unless|not|never|without|no|where|possible|fewer|less|more|most|max\w*|limits?|ceiling"
    r"|bound|cap|tops|too|shorter|longer|are|is|was|were|or|plus|total|falls|wenn|sofern|nicht|ohne"
    r"|kein\w*|m\u00f6glich|weniger|mehr|h\u00f6chstens|maximal|grenze|oder|bis|sind|ist"
)
"""What after a number leaves open whether the file is to hold just so many."""
_FEWER = any_word(r"fewer|less|weniger")
_FOR_EACH = any_word(r"each|every|per|je|jede[nrms]?|pro|apiece")
_CONDITION = any_word(r"if|when|unless|not|never|without|no|falls|wenn|sofern|nicht|ohne|kein\w*")
_LESS = any_word(
    r"remov\w+|delet\w+|drop|merge|dedup\w*|fix|correct|mend|repair|entfern\w+|lösch\w+|korrigier\w+"
)
"""What may leave a file with fewer rows than it is said to have."""
_OWN_FILES = re.compile(
    r"\b(?:each|every|one|jede[nrms]?|je)\b[^.;]{0,40}?"
    r"\b(?:(?:own|separate|individual|single)\s+(?:\S+\s+)?files?|eigene[nr]?\s+datei)\b"
    r"|\bone\s+(?:\S+\s+)?file\s+(?:per|for each)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class DemandedCount:
    unit: str
    text: str
    """The number as the statement says it, such as "exactly 3"."""
    start: int
    """Where in the statement."""
    least: int = 0
    most: int | None = None


@cache
def _number() -> str:
    words = "|".join(sorted(_number_words()))
    return rf"(?P<number>\d{{1,3}}(?:,\d{{3}})+|\d{{1,6}}|{words})"


@cache
def _number_words() -> dict[str, int]:
    listed = shipped_indicators().data.meaning.numbers
    return {word: number for number, words in listed.items() for word in words}


def _value(number: str) -> int:
    return _number_words().get(number.casefold()) or int(number.replace(",", ""))


@cache
def _patterns(path: str) -> list[re.Pattern[str]]:
    """Return what finds "output/a.csv with 10 rows", "Write a 200-word essay" and the like."""
    bounds = "|".join([*_UPPER, *_LOWER, "exactly", "genau"])
    units = "|".join(_UNITS.values())
    counted = rf"(?:(?P<bound>{bounds})\s+)?{_number()}\s+{_KINDS}(?P<unit>{units})"
    hyphened = rf"(?:[^\W\d][\w-]*\s+){{0,2}}?{_number()}[- ](?P<unit>word|row|entry|section)"
    hyphened += r"(?:\s+\w+){1,2}?"
    table = rf"{_ARTICLE}\s+(?:[\w-]+\s+){{0,2}}?{_TABLES}\s+(?:of|with|that has|aus|von|mit)\s+"
    file = rf"{re.escape(path)}[\s\"'`,:()\u2013\u2014-]*"
    text = rf"{_ARTICLE}\s+(?:[\w-]+\s+){{1,3}}?(?:of|with|von|mit)\s+"
    return [
        re.compile(rf"{pattern}\b", re.IGNORECASE)
        for pattern in (
            rf"{file}(?:{_HAS}\s+)?(?:{table})?{counted}",
            rf"{file}(?:{_HAS}\s+)?{_ARTICLE}\s+{hyphened}",
            rf"^{_WRITE}\s+(?:{table}|{text})?{counted}",
            rf"^{_WRITE}\s+{_ARTICLE}\s+{hyphened}",
        )
    ]


def demanded_counts(said: str, path: str) -> Iterator[DemandedCount]:
    """Yield the count that a statement plainly demands of the file that it names, if any.

    A number stands in many sentences, and most say something else. Only those count in which the
    file has it, nothing qualifies it, and what follows goes on with something else. A number
    without a bound is the least: "a table of ten rows" may have more.
    """
    if _FOR_EACH.search(said) or _LESS.search(said):
        return
    for found in filter(None, (pattern.search(said) for pattern in _patterns(path))):
        bound = (found.groupdict().get("bound") or "").casefold()
        number, unit = _value(found["number"]), _unit_of(found["unit"])
        after = said[found.end() :].replace(path, "\0")
        if (
            _CONDITION.search(said[: found.start("number")])
            or _VAGUE.search(said[max(0, found.start("number") - 14) : found.start("number")])
            or not _ENDS.match(after)
            or _QUALIFIED.search(after.partition(". ")[0])
            or _FEWER.search(after)
            or (unit == "line" and not bound)  # a paragraph of three sentences is three to some
        ):
            continue
        least = 0 if bound in _UPPER else number
        if unit == "word" and not bound:
            least = round(WORD_SHARE * number)
        yield DemandedCount(
            unit,
            f"{bound or ('about' if unit == 'word' else '')} {number:,}".strip(),
            found.start("bound" if bound else "number"),
            least,
            None if bound in _LOWER or not bound else number,
        )
        return


def _unit_of(word: str) -> str:
    return next(name for name, unit in _UNITS.items() if re.fullmatch(unit, word, re.IGNORECASE))


def demanded_files(said: str) -> int:
    """Return how many files "15 poems, each as its own file in" a folder asks for; else 0."""
    match = re.match(
        rf"{_WRITE}\s+(?:(?:exactly|at least|genau|mindestens)\s+)?{_number()}\s+(?=\w)", said, re.I
    )
    if match is None or _CONDITION.search(said):
        return 0
    directly = re.match(
        r"(?:separate |markdown |text )?(?:files|dateien)\b", said[match.end() :], re.I
    )
    return _value(match["number"]) if directly or _OWN_FILES.search(said, match.end()) else 0


def says_range(said: str, count: int) -> bool:
    """Return whether "a_1.md to a_9.md" plainly means all from the one to the other."""
    numbers = re.findall(rf"(?<![\w/.-]){_number()}(?![\w/.-])", said, re.IGNORECASE)
    return count in map(_value, numbers) or _FOR_EACH.search(said) is not None
