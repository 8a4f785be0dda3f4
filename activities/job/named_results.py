"""The files that a sentence names as results, and not as what is there to be read."""

import re

from activities.text.statement_words import any_word, statement_words

MAX_NAMED = 20
_PATH = re.compile(
    r"(?<![\w@:/.<>{}*-])(?:\./)?(?P<path>(?:[\w-][\w.-]*/)*[\w-][\w.-]*\.(?P<ending>[A-Za-z][A-Za-z0-9]{0,5}|7z)"
    r"|(?:[\w-]+/)*(?:Makefile|Dockerfile|Containerfile)|output(?:/[\w.-]+)+/?)(?![\w@/<>{}*]|\.\w)"
)
_NOT_PATH = re.compile(r"[A-Z][a-z]+\.js$")
_WORDS = re.compile(r"[\w'-]+|\u2192|->|=>|[;]|\n")
_INPUTS = ("documents/", "inputs/", "input/")
_NEGATION = any_word(r"not|don't|never|without|nicht|niemals|ohne|kein|keine")
_AFTER = re.compile(r"\W{0,3}\s*(\w+)")


def named_results(text: str, *, described: bool = False) -> list[str]:
    """Return the paths of the files that a sentence names as results, in order.

    Args:
        described: The sentence asks for nothing, so it must say by itself that it names a result.
    """
    results: list[str] = []
    for match in _PATH.finditer(text):
        path = match["path"].rstrip(".")
        ending = (match["ending"] or "").lower()
        if (ending and ending not in statement_words().endings) or _NOT_PATH.match(path):
            continue
        if path not in results and _is_result(
            text, match, "".join(results[-1:]), described=described
        ):
            results.append(path)
    return results[:MAX_NAMED]


def _is_result(text: str, match: re.Match[str], earlier: str, *, described: bool) -> bool:
    path = match["path"]
    before = text[: match.start()]
    clause = re.split(r"[;:]\s|\.\s", before)[-1]
    words = [word.lower() for word in _WORDS.findall(before)]
    last = words[-1] if words else ""
    if (
        path.startswith(_INPUTS)
        or last in statement_words().before_sources
        or _NEGATION.search(clause)
    ):
        return False
    if described:
        known = statement_words()
        joined = last in {"and", "und"} and before.rstrip().rsplit(" ", 2)[-2:-1] == [earlier]
        named = last in known.before_results or last in known.names_result
        if (
            path.startswith("output/")
            and last in {"in", "at", "nach", "unter"} | known.before_results
        ):
            return True
        return joined or (named and bool(known.names_result & set(words)))
    if path.startswith("output/"):
        return last not in statement_words().reading
    after = _AFTER.match(text, match.end())
    if not words or (after and after[1].lower() in statement_words().result_verbs):
        return True
    return last in statement_words().before_results or _writes(words)


def _writes(words: list[str]) -> bool:
    known = statement_words()
    for word in reversed(words):
        if word in known.writing:
            return True
        if word in known.reading:
            return False
    return bool(known.names_result & set(words))
