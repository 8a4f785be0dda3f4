"""Checks what a reviewer quotes: a verdict whose quote is nowhere proves nothing."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from activities.text.obligations import is_prohibition
from activities.text.statement_words import any_word
from protocol.scope_ledger import Statement
from protocol.short_text import one_line

MIN_CHARACTERS = 4
"""Letters and digits that a quote has at least, unless it is the whole content of a file."""
OWN_WORDS = 0.8
"""Share of a statement's words from which on a quote that repeats them is the statement itself."""
NO_QUOTE = "the reviewer quotes nothing"
NOWHERE = "what the reviewer quotes is nowhere in the work"
OWN = "the reviewer quotes the statement itself, which proves nothing"
NO_FINDING = "the reviewer says that this is not met, and not what is missing"
_ELLIPSIS = re.compile(r"\[?(?:…|\.{3,})\]?")
_LINE_MARK = re.compile(r"^\s*(?:\d+\t|[+-](?=\S|\s))", re.MULTILINE)
_SIGNS = str.maketrans(
    {
        **dict.fromkeys("\u201c\u201d\u201e\u00ab\u00bb\u2033", '"'),
        **dict.fromkeys("\u2018\u2019\u201a\u2039\u203a\u2032", "'"),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015", "-"),
        **dict.fromkeys("\u00ad\u200b\u200c\u200d\ufeff*`"),
    }
)
"""Typographic signs as plain ones; signs that are not seen, and marks of Markdown, go."""
_QUESTION = "what|which|who|whose|why|how|when|where|was|wer|wie|warum|wann|wo"
_ASKS = re.compile(
    rf"\?\W*$|^\W*(?:please |bitte )?(?:(?:{_QUESTION})\b|(?:tell|say|explain|describe|answer|reply"
    r"|find out|sage?|erkläre?|nenne?|beschreibe?|beantworte|antworte)\s+"
    rf"(?:me|us|to|the question|these|whether|mir|uns|die frage|ob|welche\w*|{_QUESTION})\b"
    r"|summari[sz]e\b|fasse?\b)",
    re.IGNORECASE,
)
_IN_FILE = any_word(
    r"files?|documents?|folders?|pages?|reports?|tables?|sections?|comments?|docstrings?|"
    r"readme|code|sav(?:e|ed)|writ(?:e|ten)|add|datei\w*|dokument\w*|seiten?|bericht\w*|"
    r"tabelle\w*|schreib\w*"
)


def fold_quote(text: str) -> str:
    """Return a text as quotes are compared: without differences of case, space and typography."""
    return " ".join(text.translate(_SIGNS).casefold().split())


def asks_for_answer(statement: Statement) -> bool:
    text = statement.text
    return not statement.paths and bool(_ASKS.search(text)) and not _IN_FILE.search(text)


@dataclass
class QuotedWork:
    shown: list[str] = field(default_factory=list)
    """Texts of the work that the reviewer was shown."""
    others: Iterable[str] = ()
    """Further texts of the work, read only when a quote is not among those shown."""
    brief: str = ""
    answer: str = ""
    """The summary of a job that wrote nothing; it shows only what asks for an answer."""
    _folded: list[str] = field(default_factory=list)
    _source: Iterator[str] | None = None

    def holds(self, quote: str) -> bool:
        return any(_holds(text, quote) for text in self._texts())

    def _texts(self) -> Iterator[str]:
        """Yield the folded texts, each of which is folded once and only when it is needed."""
        if self._source is None:
            self._source = (fold_quote(text) for part in (self.shown, self.others) for text in part)
        yield from self._folded
        for text in self._source:
            self._folded.append(text)
            yield text


def checked_verdict(
    statement: Statement, evidence: str, work: QuotedWork, judged: Statement
) -> Statement:
    """Return the statement with the verdict that remains once its quote is checked."""
    verdict, quote, finding = judged.verdict or "cannot tell", judged.quote, judged.finding
    if verdict != "cannot tell" and (why := _quote_problem(statement, evidence, work, judged)):
        # A quote that proves nothing is no quote for people either.
        said = f"it said {verdict}" + (f", and {one_line(quote, 80)!r}" if quote else "")
        verdict, quote, finding = "cannot tell", "", f"{why} ({said})"
    elif verdict == "unmet" and not finding.strip():
        finding = NO_FINDING
    return statement.model_copy(update={"verdict": verdict, "quote": quote, "finding": finding})


def _quote_problem(
    statement: Statement, evidence: str, work: QuotedWork, judged: Statement
) -> str | None:
    quote = judged.quote.translate(_SIGNS).strip().strip("\"'")
    if not quote:
        return NO_QUOTE
    brief = fold_quote(f"{work.brief}\n{statement.text}")
    # For what is not there, and for what is forbidden, the work has no words.
    forbids = is_prohibition(statement.text) and is_prohibition(quote)
    if (judged.verdict == "unmet" or forbids) and _holds(brief, quote):
        return None
    stated = fold_quote(statement.text)
    answers = asks_for_answer(statement) and _holds(fold_quote(work.answer), quote)
    if answers or work.holds(quote):
        return OWN if _repeats(stated, quote) else None
    if _holds(fold_quote(evidence), quote):
        # The path that a statement names is in its evidence as soon as the file is touched.
        return OWN if fold_quote(quote) in stated else None
    return OWN if _holds(brief, quote) else NOWHERE


def _holds(text: str, quote: str) -> bool:
    """Return whether a folded text has a quote, of which parts may be left out by an ellipsis."""
    forms = (quote, _LINE_MARK.sub("", quote))
    return any(
        _has_in_order(text, [fold_quote(form)])
        or _has_in_order(
            text, [part for each in _ELLIPSIS.split(form) if (part := fold_quote(each))]
        )
        for form in forms
    )


def _has_in_order(text: str, parts: list[str]) -> bool:
    if len(parts) == 1 and parts[0] and parts[0] == text:
        return True
    if not parts or any(len(re.findall(r"\w", part)) < MIN_CHARACTERS for part in parts):
        return False
    place = 0
    for part in parts:
        start = text.find(part, place)
        if start < 0:
            return False
        place = start + len(part)
    return True


def _repeats(stated: str, quote: str) -> bool:
    """Return whether a quote is most of the statement, word for word."""
    words = fold_quote(quote)
    return words in stated and len(words.split()) >= OWN_WORDS * len(stated.split())
