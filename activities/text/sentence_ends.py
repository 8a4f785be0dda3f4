"""Where the sentences of a text end."""

import re
from collections.abc import Iterator

CLOSERS = "\"'\u201d\u2019\u00bb)]*_"
_END = re.compile(
    r"[.!?\u2026][\"'\u201d\u2019\u00bb)\]*_]*"
    # A footnote mark is not part of the sentence; after a digit it may be a decimal.
    r"(?P<mark>(?<=[^\d\s][.!?\u2026\"'\u201d\u2019\u00bb)\]])\d{1,3}(?:[,\u2013-]\d{1,3}){0,20}|(?:\[(?:\d{1,3}|[ivxl]{1,6})\])+|[\u00b9\u00b2\u00b3\u2070-\u2079]+)?"
    r"(?=\s|$)"
)
_TOKEN = re.compile(r"[^\s(\[\"'\u201e\u201c]+$")
STARTER = re.compile(r"\s*[\"'\u201e\u201c\u201a\u2018\u00bb(\[{*_]*([^\W_])")
_MONTH = re.compile(
    r"\s*(?:Jan|Feb|Mär|Mar|Apr|Mai|May|Jun|Jul|Aug|Sep|Okt|Oct|Nov|Dez|Dec|Tag|Kalendertag|"
    r"Werktag|Jahrhundert)"
)


def split_at_sentence_ends(
    text: str, start: int, abbreviations: frozenset[str]
) -> Iterator[tuple[int, int]]:
    """Yield where each sentence ends and the next begins, a footnote mark apart."""
    for end in _END.finditer(text, start):
        if _is_sentence_end(text, end, abbreviations):
            yield (end.start("mark") if end["mark"] else end.end()), end.end()
    yield len(text), len(text)


def _is_sentence_end(text: str, stop: re.Match[str], abbreviations: frozenset[str]) -> bool:
    starter = STARTER.match(text, stop.end())
    if starter is not None and starter[1].islower() and not stop["mark"]:
        return False
    if (
        not text[stop.end() :].strip()
        or not stop[0].startswith(".")
        or len(stop[0].removesuffix(stop["mark"] or "")) > 1
    ):
        return True
    before = _TOKEN.search(text, max(0, stop.start() - 40), stop.start())
    token = before[0].lower() if before else ""
    if token.isdigit():
        return len(token) > 2 or not _MONTH.match(text, stop.end())
    return not (token in abbreviations or re.fullmatch(r"(?:\w\.)*\w", token))
