"""What stands before a list: words that its entries continue, and what it makes of them.

A list may also stand within a sentence: "It shall: a) parse; b) print."
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Literal

from activities.text.instructing import describes_result, sentence_force
from activities.text.statement_words import any_word, heading_words, statement_words, words_of
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
    r"(?:for|in|per) (?:each|every|all|any|both|the (?:top|first|last|same))\b"
    r"|(?:für|zu|in) (?:jede[nrms]?|alle[nr]?|beide[nr]?)\b|(?:je|pro) \w",
    re.IGNORECASE,
)
"""What says of which things its list is wanted."""
_TITLE = re.compile(r"\w+(?: \w+)?:\s")
"""The title of a scenario, such as `Scenario: no rows`."""
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
    force = "asks" if _EACH.match(said) else sentence_force(said)
    if force == "example" or re.search(
        r"\b(?:for example|such as|e\.g\.?|zum Beispiel|z\. ?B\.?)\W*$", said
    ):
        return Lead(mode="example")
    if force == "permits":
        return Lead(mode="background")
    bare = said.lower().strip(" *_")
    if force == "asks" or describes_result(said) or bare in _BARE_LEADS:
        return Lead(_joined(outer.text, sentence), "binds")
    if outer.mode == "binds":
        return Lead(_joined(outer.text, sentence), "binds")
    return Lead(mode=outer.mode)


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
    background = known.of_all("background_headings") | known.of_all("observations")
    return "background" if words in background else "open"


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
    its "Given" and "When". Nothing if the text has none.
    """
    known = statement_words()
    before: list[str] = []
    demands: list[tuple[str, int]] = []
    demanding, offset = False, 0
    for raw in text.splitlines(keepends=True):
        line = raw.strip()
        first = words_of(line)[0] if line[:1].isupper() else ""
        if first in known.of_all("given"):
            before, demanding = [*([] if demanding else before), line], False
        elif _TITLE.match(line):
            before, demanding = [], False
        elif before and line:
            demanding = demanding or first in known.of_all("then")
            if demanding:
                demands.append((f"{' '.join(before)} {line}", offset))
            else:
                before.append(line)
        offset += len(raw)
    return demands


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
