"""What a reply amounts to that calls no tool: a pure reading of its text.

Only what the model says in its own voice counts: quoted text, code and block quotes are taken out
before anything is sought.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

import re2

from config.schema.reply_phrases import PhraseClass, Wording, expression
from protocol.requests import ReplyVerdict

_FENCE = re.compile(r"\s{0,3}(?:[-*+>] |\d+[.)] )?\s*(`{3,}|~{3,})")
_MARKS = (("`", "`"), ("“", "”"), ("„", "“”"), ("«", "»"), ("»", "«"))
_QUOTATIONS = re2.compile(
    # None reaches over an empty line.
    "|".join(f"{begin}(?:[^{end}\\n]|\\n[^{end}\\n])*[{end}]" for begin, end in _MARKS)
)
_STRAIGHT = re2.compile(r"(^|[^\pL\pN\"])\"(?:[^\"\n]|\n[^\"\n])*\"")
"""Opens after something that is no letter or figure, so that 5" and it's open nothing."""
_SINGLE = re2.compile(r"(^|[^\pL\pN'])'(?:[^'\n]|'\pL)*'($|[^\pL\pN])")
_PLAIN = str.maketrans(
    {"\N{RIGHT SINGLE QUOTATION MARK}": "'", "\N{LEFT SINGLE QUOTATION MARK}": "'"}
    | {"\N{SINGLE LOW-9 QUOTATION MARK}": "'", "*": ""}
)
_SENTENCE = re.compile(r"[^.!?…\n]*[.!?…]*")
_LIST_MARK = re.compile(r"^\s*(?:[-*+•#]+|\d+[.)])\s+")


@dataclass(frozen=True)
class _Kind:
    phrases: list[re2._Regexp]
    exceptions: list[re2._Regexp]

    @classmethod
    def from_class(cls, given: PhraseClass) -> _Kind:
        return cls(
            [expression(one) for one in given.phrases],
            [expression(one) for one in given.exceptions],
        )

    def holds(self, sentence: str) -> bool:
        return _any(self.phrases, sentence) and not _any(self.exceptions, sentence)


@dataclass(frozen=True)
class _Compiled:
    asking: list[_Kind]
    claiming: list[_Kind]
    answers: list[re2._Regexp]


def classify(text: str, wording: Wording) -> ReplyVerdict:
    """What a reply that calls no tool amounts to, by the job's phrases."""
    compiled = _compile(wording)
    said = sentences(own_words(text))
    for number, sentence in enumerate(said):
        if any(kind.holds(sentence) for kind in compiled.asking):
            following = said[number + 1] if number + 1 < len(said) else ""
            if not (sentence.endswith("?") and _any(compiled.answers, following)):
                return "asks"
    claimed = any(kind.holds(sentence) for sentence in said for kind in compiled.claiming)
    return "claims" if claimed else "reports"


def own_words(text: str) -> str:
    """The text without code blocks, block quotes and quotations."""
    kept: list[str] = []
    fence = ""
    for line in text.splitlines():
        mark = _FENCE.match(line)
        if fence:
            if mark and mark[1].startswith(fence):
                fence = ""
        elif mark:
            fence = mark[1]
        elif not line.lstrip().startswith(">"):
            kept.append(line)
    words = "\n".join(kept).translate(_PLAIN)
    words = _QUOTATIONS.sub("~", words)
    words = _STRAIGHT.sub(r"\1~", words)
    return str(_SINGLE.sub(r"\1~\2", words))


def sentences(text: str) -> list[str]:
    """Sentences with their end marks, list marks removed, white space made single."""
    lines = "\n".join(_LIST_MARK.sub("", line) for line in _joined(text))
    found = (" ".join(match.group().split()) for match in _SENTENCE.finditer(lines))
    return [sentence for sentence in found if sentence.strip(".!?…~_ ")]


def _joined(text: str) -> list[str]:
    """Lines, those joined that a sentence was wrapped over."""
    lines: list[str] = []
    for line in text.split("\n"):
        wrapped = lines and lines[-1].strip() and line.strip() and not _LIST_MARK.match(line)
        if wrapped and line.lstrip()[:1].islower():
            lines[-1] += f" {line.strip()}"
        else:
            lines.append(line)
    return lines


def _any(patterns: list[re2._Regexp], text: str) -> bool:
    return any(pattern.search(text) for pattern in patterns)


@lru_cache(maxsize=16)
def _compile(wording: Wording) -> _Compiled:
    return _Compiled(
        [_Kind.from_class(one) for one in wording.asking],
        [_Kind.from_class(one) for one in wording.claiming],
        [expression(one, at_start=True) for one in wording.answers],
    )
