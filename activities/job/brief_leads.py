"""What stands before a list: words that its entries continue, and what it makes of them.

A list may also stand within a sentence: "It shall: a) parse; b) print."
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Literal

from activities.text.instructing import describes_result, sentence_force
from activities.text.statement_words import (
    StatementWords,
    any_word,
    heading_words,
    is_finite,
    statement_words,
    words_of,
)
from protocol.short_text import shorten_to_start

MAX_LEAD = 160
Mode = Literal["binds", "open", "background", "example"]
"""What a list or section makes of its entries: each is asked for, its own words decide, only words
of obligation count, or nothing counts."""
_BARE_LEADS = frozenset(
    ["do", "do not", "don't", "never", "always", "please", "bitte", "nie", "niemals"]
)
_FOLLOWING = any_word(r"following|as follows|these|folgende[nrsm]?|wie folgt")
_MARK = re.compile(r"(?:(?<=\s)|^)\(?(?P<mark>[a-z]|[ivx]{2,5}|\d{1,2})\)\s+(?=\S)")
_EACH = re.compile(
    r"(?:for|per) (?:each|every|both|the (?:top|first|last)) [\w -]{1,40}"
    r"|(?:für|zu) (?:jede[nrms]?|beide[nr]?) [\w -]{1,40}",
    re.IGNORECASE,
)
"""What says of which things its list is wanted, unless it is a sentence."""
_NEEDED = re.compile(
    r"[^,.;:]{1,80}\b(?:wird|werden) (?:benötigt|gebraucht|erwartet|gefordert|verlangt|gewünscht)",
    re.IGNORECASE,
)
_SCENARIO = re.compile(
    r"(?:scenario|szenario|feature|examples?|beispiele?)\b[^:]{0,40}:", re.IGNORECASE
)
_ROMAN = ("i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x", "xi", "xii")


@dataclass(frozen=True, slots=True)
class Lead:
    text: str = ""
    mode: Mode = "open"


def lead_of(sentence: str, outer: Lead) -> Lead:
    said = sentence.strip().rstrip(": ")
    mode = heading_mode(heading_words(said))
    if mode != "open":
        return Lead(outer.text, mode)
    wants = _names_each(said) or _NEEDED.fullmatch(said)
    force = "asks" if wants else sentence_force(said)
    if force == "example" or re.search(
        r"\b(?:for example|such as|e\.g\.?|zum Beispiel|z\. ?B\.?)\W*$", said
    ):
        return Lead(mode="example")
    if force == "permits":
        return Lead(mode="background")
    bare = said.lower().strip(" *_")
    known = statement_words()
    is_bare = bare in _BARE_LEADS | (known.of_all("verbs") - known.of_all("also_nouns"))
    if force == "asks" or describes_result(said) or is_bare:
        return Lead(_joined(outer.text, sentence), "binds")
    if outer.mode == "binds":
        return Lead(_joined(outer.text, sentence), "binds")
    return Lead(mode=outer.mode)


def _names_each(said: str) -> bool:
    if _EACH.fullmatch(said) is None:
        return False
    words, grammar = words_of(said), statement_words().grammar
    return not (grammar.german_finite & set(words) or any(map(is_finite, words[2:])))


def is_brief_lead(sentence: str) -> bool:
    ending = sentence.rstrip(" *_")[-1:]
    return ending not in ".!?" or _FOLLOWING.search(sentence) is not None


def _joined(outer: str, sentence: str) -> str:
    return f"{outer} {sentence}".strip()


def short_lead(lead: Lead) -> str:
    text = " ".join(lead.text.split())
    return f"{shorten_to_start(text, MAX_LEAD)} " if text else ""


@cache
def heading_mode(words: str) -> Mode:
    known = statement_words()
    demands = known.of_all("result_headings") | known.of_all("expectations") | known.scope
    bare = re.sub(r" (?:for|für) .*", "", words)
    if words in demands or (bare in demands and bare not in known.of_all("results")):
        return "binds"
    first = words.split(" ", maxsplit=1)[0] if words else ""
    if words in known.of_all("example_headings") or first in {
        "example",
        "examples",
        "beispiel",
        "beispiele",
    }:
        return "example"
    background = words in known.of_all("background_headings") or _is_observation(words)
    return "background" if background else "open"


def is_template_title(line: str) -> bool:
    """Return whether the template of an issue has such a title, as "Expected behavior"."""
    words = heading_words(line)
    return _is_observation(words) or words in statement_words().of_all("expectations")


def _is_observation(words: str) -> bool:
    bare = re.sub(r" the (?:bug|issue|problem|error|behaviou?r)$", "", words)
    return not {words, bare}.isdisjoint(statement_words().of_all("observations"))


def inline_marks(text: str) -> list[re.Match[str]]:
    found = list(_MARK.finditer(text))
    for names in (
        [chr(ord("a") + n) for n in range(26)],
        [str(n) for n in range(1, 60)],
        list(_ROMAN),
    ):
        marks: list[re.Match[str]] = []
        for match in found:
            if len(marks) < len(names) and match["mark"] == names[len(marks)]:
                marks.append(match)
        if len(marks) > 1:
            return marks
    return []


def scenario_demands(text: str) -> list[tuple[str, int]]:
    """Return what scenarios demand, with offsets: each line from a "Then" on, after the lines of
    its "Given" and "When".

    Nothing if a line is none of a scenario, or none says what is given: prose may have lines that
    begin with "When" and "Then".
    """
    known = statement_words()
    before: list[str] = []
    demands: list[tuple[str, int]] = []
    step, offset, is_scenario = "", 0, False
    for raw in text.splitlines(keepends=True):
        line = raw.strip()
        kind = _scenario_step(line, step, known)
        if line and not kind:
            return []
        if kind in ("title", "given", "when") and step in ("", "title", "then"):
            before = []
        is_scenario = is_scenario or kind == "given"
        if kind == "then":
            lead = shorten_to_start(" ".join(before), MAX_LEAD)
            demands.append((f"{lead} {line}", offset))
        elif kind in ("given", "when"):
            before.append(line)
        step, offset = kind or step, offset + len(raw)
    return demands if is_scenario else []


def _scenario_step(line: str, before: str, known: StatementWords) -> str:
    """Return whether a line is a "title", "given", "when" or "then"; empty if it is none."""
    first = (words_of(line) or [""])[0] if line[:1].isupper() else ""
    for kind in ("given", "when", "then"):
        if first in known.of_all(kind):
            return kind
    if _SCENARIO.match(line):
        return "title"
    goes_on = before in ("given", "when", "then") and first in known.of_all("and_then")
    return before if goes_on else ""


def split_inline_list(sentence: str, offset: int, lead: Lead) -> Iterator[tuple[str, int, Lead]]:
    marks = inline_marks(sentence)
    if not marks:
        yield sentence, offset, lead
        return
    said = sentence[: marks[0].start()].strip()
    inner = lead_of(said, lead) if said else lead
    if inner.mode == "open" and said and not said.endswith(":"):
        yield sentence, offset, lead
        return
    ends = [*(mark.start() for mark in marks[1:]), len(sentence)]
    for mark, end in zip(marks, ends, strict=True):
        entry = re.sub(
            r"[;,]?\s*(?:\b(?:and|or|und|oder))?[\s;,]*$", "", sentence[mark.end() : end]
        )
        yield entry, offset + mark.start(), inner
