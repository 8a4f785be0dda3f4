"""Classify a reply that calls no tool, by its text alone.

Only the model's own words count: quoted text, code and block quotes are removed first.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

import re2

from config.schema.reply_phrases import PhraseClass, Wording, compile_phrase
from protocol.requests import ReplyVerdict

LONGEST_REFUSAL = 700
"""Most characters of a refusal in words."""
OPENING_SENTENCES = 2
_FENCE = re.compile(r"\s{0,3}(?:[-*+>] |\d+[.)] )?\s*(`{3,}|~{3,})")
_MARKS = (("`", "`"), ("“", "”"), ("„", "“”"), ("«", "»"), ("»", "«"))
_QUOTATIONS = re2.compile(
    # None matches across an empty line.
    "|".join(f"{begin}(?:[^{end}\\n]|\\n[^{end}\\n])*[{end}]" for begin, end in _MARKS)
)
_STRAIGHT = re2.compile(r"(^|[^\pL\pN\"])\"(?:[^\"\n]|\n[^\"\n])*\"")
"""Opens a quotation only if no letter or digit precedes, so that 5" and it's open nothing."""
_SINGLE = re2.compile(r"(^|[^\pL\pN'])'(?:[^'\n]|'\pL)*'($|[^\pL\pN])")
_PLAIN = str.maketrans(
    {"\N{RIGHT SINGLE QUOTATION MARK}": "'", "\N{LEFT SINGLE QUOTATION MARK}": "'"}
    | {"\N{SINGLE LOW-9 QUOTATION MARK}": "'", "*": ""}
)
_SENTENCE = re.compile(r"[^.!?…\n]*[.!?…]*")
_LIST_MARK = re.compile(r"^\s*(?:[-*+•#]+|\d+[.)])\s+")


@dataclass(frozen=True)
class _ReplyPhraseMatcher:
    phrases: list[re2._Regexp]
    exceptions: list[re2._Regexp]

    @classmethod
    def from_class(cls, phrase_class: PhraseClass) -> _ReplyPhraseMatcher:
        return cls(
            [compile_phrase(phrase) for phrase in phrase_class.phrases],
            [compile_phrase(phrase) for phrase in phrase_class.exceptions],
        )

    def matches_sentence(self, sentence: str) -> bool:
        return _matches_any_reply_phrase(self.phrases, sentence) and not _matches_any_reply_phrase(
            self.exceptions, sentence
        )


@dataclass(frozen=True)
class _CompiledWording:
    refusing: list[_ReplyPhraseMatcher]
    asking: list[_ReplyPhraseMatcher]
    claiming: list[_ReplyPhraseMatcher]
    answers: list[re2._Regexp]


def classify_reply(text: str, wording: Wording) -> ReplyVerdict:
    compiled = _compile_reply_classifier(wording)
    sentences = split_reply_sentences(unquoted_reply_text(text))
    # A long reply is an answer, whatever it leaves out, and a refusal begins with its no.
    if len(text) <= LONGEST_REFUSAL and any(
        kind.matches_sentence(sentence)
        for sentence in sentences[:OPENING_SENTENCES]
        for kind in compiled.refusing
    ):
        return "refuses"
    for number, sentence in enumerate(sentences):
        if any(kind.matches_sentence(sentence) for kind in compiled.asking):
            following = sentences[number + 1] if number + 1 < len(sentences) else ""
            if not (
                sentence.endswith("?") and _matches_any_reply_phrase(compiled.answers, following)
            ):
                return "asks"
    claimed = any(
        kind.matches_sentence(sentence) for sentence in sentences for kind in compiled.claiming
    )
    return "claims" if claimed else "reports"


def unquoted_reply_text(text: str) -> str:
    kept_lines: list[str] = []
    fence = ""
    for line in text.splitlines():
        mark = _FENCE.match(line)
        if fence:
            if mark and mark[1].startswith(fence):
                fence = ""
        elif mark:
            fence = mark[1]
        elif not line.lstrip().startswith(">"):
            kept_lines.append(line)
    words = "\n".join(kept_lines).translate(_PLAIN)
    words = _QUOTATIONS.sub("~", words)
    words = _STRAIGHT.sub(r"\1~", words)
    return str(_SINGLE.sub(r"\1~\2", words))


def split_reply_sentences(text: str) -> list[str]:
    """Split into sentences with their end marks, without list marks, white space collapsed."""
    lines = "\n".join(_LIST_MARK.sub("", line) for line in _unwrap_reply_lines(text))
    matches = (" ".join(match.group().split()) for match in _SENTENCE.finditer(lines))
    return [sentence for sentence in matches if sentence.strip(".!?…~_ ")]


def _unwrap_reply_lines(text: str) -> list[str]:
    lines: list[str] = []
    for line in text.split("\n"):
        wrapped = lines and lines[-1].strip() and line.strip() and not _LIST_MARK.match(line)
        if wrapped and line.lstrip()[:1].islower():
            lines[-1] += f" {line.strip()}"
        else:
            lines.append(line)
    return lines


def _matches_any_reply_phrase(patterns: list[re2._Regexp], text: str) -> bool:
    return any(pattern.search(text) for pattern in patterns)


@lru_cache(maxsize=16)
def _compile_reply_classifier(wording: Wording) -> _CompiledWording:
    return _CompiledWording(
        [_ReplyPhraseMatcher.from_class(phrase_class) for phrase_class in wording.refusing],
        [_ReplyPhraseMatcher.from_class(phrase_class) for phrase_class in wording.asking],
        [_ReplyPhraseMatcher.from_class(phrase_class) for phrase_class in wording.claiming],
        [compile_phrase(phrase, at_start=True) for phrase in wording.answers],
    )
