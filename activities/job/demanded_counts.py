"""How many words, lines, rows, entries, sections or files a statement demands of a file.

Only sentences of a plain form are read, in which the number belongs to the file and to nothing
else: "Write output/a.md with at least 500 words", "Write a 500-word essay on tea to output/a.md".
All others are left to the review, as a number may count customers, slides or what a program prints.
"""

import re
from dataclasses import dataclass
from functools import cache, lru_cache

from activities.text.indicators import shipped_indicators
from activities.text.statement_words import any_word

WORD_SHARE = 0.8
"""Share of the words that a number without a bound asks for, as nobody writes to the word."""
WORD_EXCESS = 1.1
"""How far more words go than the most, as people count links, dates and signs differently."""
_BOUNDS = {
    "least": r"at least|no fewer than|no less than|mindestens",
    "most": r"at most|no more than|not more than|up to|höchstens|maximal|bis zu",
    "exact": r"exactly|genau",
}
_UNITS = {
    "word": r"words?|wörtern?|worten?",
    "line": r"lines?|zeilen?",
    "row": r"rows?",
    "entry": r"entries|entry|einträgen?|bullet(?: point)?s?",
    "section": r"sections?|abschnitten?",
}
_UNIT = "|".join(f"(?P<{name}>{unit})" for name, unit in _UNITS.items())
_WRITE = (
    r"(?:please\s+)?(?:write|create|draft|compose|make|prepare|generate|produce|save|store"
    r"|schreiben?|erstellen?|verfassen?|speichern?)(?:\s+bitte)?"
)
_GATHER = rf"(?:{_WRITE}|(?:please\s+)?(?:list|put|collect))"
_ARTICLE = r"(?:an?|one|eine?[nrm]?)"
_LINKS = r"an?|and|of|for|from|on|about|with|to|in|und|von|für|aus|zu|über|mit|nach"
_THING = rf"{_ARTICLE}(?:\s+(?!(?:{_LINKS})\b)[^\W\d][\w-]*){{1,3}}?"
_ABOUT = r"\s+(?:of|on|about|from|for|über|zu|von|aus)(?:\s+(?!and\b|und\b)[\w'-]+){1,8}?"
_INTO = r"(?:to|into|as|nach|als|unter)"
_OF = r"(?:of|with|containing|von|mit|aus)"
_HAS = (
    r"(?:with|of|has|have|contains?|containing|holds?|holding|must|should|shall|needs|be|is|mit|von"
    r"|aus|hat|enthält|umfasst|soll|muss)"
)
_END = re.compile(
    r"(?:\s+(?:long|in total|lang(?:\s+sein)?|enthalten|haben|umfassen))?[\s\"'`)]*(?:[.;!]|$)",
    re.IGNORECASE,
)
_GOES_ON = re.compile(r"\s*(?:[,;:.)]|(?:on|about|of|in|for|über|zu|auf)\b)", re.IGNORECASE)
LEFT_OPEN = any_word(
    r"if|when|whenever|unless|where|as (?:many|much|far|long)|possible|fewer|less|shorter|smaller"
    r"|limit|ceiling|cap|bound|max\w*|upper|tops|most|more than|longer|exceed\w*|enough"
    r"|falls|wenn|sofern|soweit|so viele?|möglich\w*|weniger|kürzer|länger|höchst\w*|\w*grenze"
)
"""What around a number leaves open how many there have to be."""
_BESIDE = any_word(
    r"or|not?|never|without|each|every|per|that|which|whose|remov\w+|delet\w+|oder|nicht|kein\w*|nie"
    r"|ohne|je|pro|jede[nrms]?|entfern\w+|lösch\w+"
)
"""What within a sentence binds a number to something besides the file."""
_OWN_FILES = re.compile(
    r"\b(?:as|in|into|to|als)\s+(?:(?:its|their|an?|eine[rn]?|ihre[rn]?)\s+)?"
    r"(?:own|separate|individual|eigene[nr]?)\s+(?:\S+\s+)?(?:files?|datei(?:en)?)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class DemandedCount:
    unit: str
    text: str
    """The number as people say it, such as "exactly 3"."""
    words: str
    """The very words of the statement, such as "exactly 3 sections"."""
    least: int = 0
    most: int | None = None


@cache
def _number() -> str:
    words = "|".join(sorted(_number_words()))
    return rf"(?P<number>\d{{1,3}}(?:[,.]\d{{3}})+|\d{{1,6}}|{words})"


@cache
def _number_words() -> dict[str, int]:
    listed = shipped_indicators().data.meaning.numbers
    return {word: number for number, words in listed.items() for word in words}


def _value(number: str) -> int:
    return _number_words().get(number.casefold()) or int(re.sub("[,.]", "", number))


@lru_cache(maxsize=100)
def _forms(path: str) -> list[re.Pattern[str]]:
    """Return what finds a count of this file; `whole` is only there if it may be an upper one."""
    bounds = "|".join(f"(?P<{name}>{words})" for name, words in _BOUNDS.items())
    counted = (
        rf"(?P<count>(?:(?:{bounds})\s+)?{_number()}"
        rf"\s+(?:(?:different|distinct|data|unique)\s+)?(?:{_UNIT})\b)"
    )
    hyphened = (
        rf"{_ARTICLE}\s+(?P<count>{_number()}[- ](?P<word>word))"
        rf"\s+(?!(?:{_LINKS})\b)[\w-]+"
    )
    file = rf"[\"'`(]*{re.escape(path)}[\"'`)]*"
    start = (
        rf"^(?:[^:]{{0,60}}:\s+)?(?:{_WRITE}\s+(?:{_THING}(?:{_ABOUT}\s+{_INTO}|\s+in|\s+{_INTO})?\s+)?)?"
        rf"(?:(?:(?:the|a|die|eine)\s+)?(?:file|datei)\s+)?{file}"
    )
    has = rf"[\s,:(\u2013\u2014-]+(?:{_HAS}\s+)*"
    into = rf"(?:{_ABOUT})?\s+(?:in|{_INTO})\s+(?:(?:the|die)\s+(?:file|datei)\s+)?{file}"
    return [
        re.compile(pattern, re.IGNORECASE)
        for pattern in (
            rf"{start}(?P<whole>{has}){counted}",
            rf"{start}{has}{_THING}\s+{_OF}\s+{counted}",
            rf"{start}{has}{hyphened}",
            rf"^(?:{_GATHER}\s+)?{counted}{into}",
            rf"^{_WRITE}\s+{_THING}\s+{_OF}\s+{counted}{into}",
            rf"^{_WRITE}\s+{hyphened}{into}",
        )
    ]


def demanded_count(said: str, path: str) -> DemandedCount | None:
    """Return the count that a statement demands of the file that it names, if that is plain.

    A number without a bound is the least: "a table of ten rows" may have more.
    """
    found = next(filter(None, (form.match(said) for form in _forms(path))), None)
    if found is None:
        return None
    groups = found.groupdict()
    bound = next((name for name in _BOUNDS if groups.get(name)), "")
    unit = next(name for name in _UNITS if groups.get(name))
    after, number = said[found.end() :], _value(found["number"])
    around = f"{said[: found.start('count')]} {said[found.end('count') :]}".replace(path, "")
    plain = unit == "word" or path.lower().endswith(("csv", "tsv"))
    goes_on = bound == "least" and (plain or not after[:1].isspace()) and _GOES_ON.match(after)
    if not (_END.match(after) or goes_on) or _BESIDE.search(around) or LEFT_OPEN.search(around):
        return None
    upper = bound in ("most", "exact") and "whole" in groups
    least = 0 if bound == "most" else number
    if unit == "word" and not bound:
        least = round(WORD_SHARE * number)
    most = round(WORD_EXCESS * number) if unit == "word" else number
    text = " ".join(filter(None, [bound and groups[bound].casefold(), f"{number:,}"]))
    return DemandedCount(unit, text, found["count"], least, most if upper else None)


def demanded_files(said: str) -> int:
    """Return how many files "15 poems, each as its own file in" a folder asks for; else 0."""
    match = re.match(
        rf"{_WRITE}\s+(?:(?:exactly|at least|genau|mindestens)\s+)?{_number()}\s+(?=\w)", said, re.I
    )
    if match is None or LEFT_OPEN.search(said):
        return 0
    directly = re.match(
        r"(?:separate |markdown |text )?(?:files|dateien)\b", said[match.end() :], re.I
    )
    return _value(match["number"]) if directly or _OWN_FILES.search(said, match.end()) else 0


def says_range(said: str, count: int) -> bool:
    """Return whether "a_1.md to a_9.md" plainly means all from the one to the other."""
    numbers = re.findall(rf"(?<![\w/.-]){_number()}(?![\w/.-])", said, re.IGNORECASE)
    return count in map(_value, numbers) or re.search(r"\b(?:each|jede[nrs]?)\b", said) is not None
