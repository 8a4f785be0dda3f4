"""Reviews by rules: a statement is met if a shown line speaks of it, else nobody can tell."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from rehearsal.request_view import request_message_text
from rehearsal.wire import Reply, Request

REVIEWER_TOOL = "judge_statements"
MAX_QUOTE = 200
LEAST_WORD = 4
"""Letters of a word that counts as content."""
LEAST_SHARED = 2
"""Words that a line shares with the statement that it speaks of; of a short one a third of them."""
_STATEMENT = re.compile(r"^([SBA]\d+(?:\.\d+)?) (?:\[[^\]\n]*\] )?(\S.*)$", re.MULTILINE)
_FILE = re.compile(r"^## ([^\n]+)\n\n(`{3,})\n(.*?)\n\2$", re.MULTILINE | re.DOTALL)
_FENCED = re.compile(r"^(`{3,})\n(.*?)\n\1$", re.MULTILINE | re.DOTALL)
_CHANGED = re.compile(r"^\+\+\+ b/(.+)$", re.MULTILINE)


def review_statements(request: Request) -> Reply:
    """Judge each statement of the request, with a line of a shown file as the quote."""
    text = "\n".join(request_message_text(message) for message in request["messages"][1:])
    listed, _, rest = text.partition("# Statements\n")[2].partition("\n# ")
    files = _shown_files(rest.partition("The work")[2])
    verdicts = [_verdict(id_, words, files) for id_, words in _STATEMENT.findall(listed)]
    return Reply(calls=[(REVIEWER_TOOL, {"verdicts": verdicts})])


def _shown_files(work: str) -> dict[str, list[str]]:
    """Return the lines of each shown file, or those that a diff adds to it."""
    files = {path: body.splitlines() for path, _, body in _FILE.findall(work)}
    if files or not (diff := _FENCED.search(work)):
        return files
    parts = _CHANGED.split(diff[2])
    for path, body in zip(parts[1::2], parts[2::2], strict=True):
        files[path] = [line[1:] for line in body.splitlines() if line.startswith("+")]
    return files


def _verdict(id_: str, statement: str, files: dict[str, list[str]]) -> dict[str, str]:
    named = [lines for path, lines in files.items() if path in statement]
    for line in _quotable_lines(statement, named):
        return {"id": id_, "verdict": "met", "quote": line}
    words = _content_words(statement)
    least = min(LEAST_SHARED, (len(words) + 2) // 3)
    for line in _quotable_lines(statement, files.values()):
        if least and len(words & _content_words(line)) >= least:
            return {"id": id_, "verdict": "met", "quote": line}
    return {"id": id_, "verdict": "cannot tell"}


def _quotable_lines(statement: str, files: Iterable[list[str]]) -> Iterator[str]:
    """Yield the lines with words that are not those of the statement itself."""
    for lines in files:
        for line in lines:
            said = line.strip()
            if len(re.findall(r"\w", said)) >= LEAST_WORD and said not in statement:
                yield said[:MAX_QUOTE]


def _content_words(text: str) -> set[str]:
    """Return the words that say something, a plural as its singular."""
    words = (word.casefold() for word in re.findall(r"\w+", text) if len(word) >= LEAST_WORD)
    return {word.removesuffix("s") for word in words}
