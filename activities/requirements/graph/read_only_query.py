"""Whether a query only reads.

The engine's read-only mode is not enough: it still reads and writes host files (LOAD FROM, COPY TO)
and accepts settings. So any word that begins such a clause is refused outside quotes, and quoting
is restricted so that it can be read in one way only.
"""

import re

MAX_QUERY_CHARACTERS = 8000
MAX_BRACKET_DEPTH = 50
_FIRST = ("MATCH", "OPTIONAL", "UNWIND", "WITH", "RETURN")
_REFUSED = frozenset(
    {
        *("ALTER", "ANALYZE", "ATTACH", "BEGIN", "CALL", "CHECKPOINT", "COMMENT", "COMMIT"),
        *("COPY", "CREATE", "DELETE", "DETACH", "DROP", "EXPLAIN", "EXPORT", "FORCE", "FOREACH"),
        *("IMPORT", "INSERT", "INSTALL", "LOAD", "MACRO", "MERGE", "PROFILE", "REMOVE"),
        *("ROLLBACK", "SET", "UNINSTALL", "UPDATE", "USE"),
    }
)
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"|`[^`]*`")


def query_refusal_reason(query: str, parameters: dict[str, object]) -> str:
    """Return why the query is refused; empty if it may run."""
    if len(query) > MAX_QUERY_CHARACTERS:
        return f"The query has {len(query):,} characters; the most is {MAX_QUERY_CHARACTERS:,}."
    if "\\" in query:
        return "The query has a backslash. Pass text that needs one in parameters, as $name."
    bare = _QUOTED.sub(" '' ", query)
    if re.search(r"['\"`]", bare.replace("''", "")):
        return "The query has a quote that is not closed. Pass text with quotes in parameters."
    if "//" in bare or "/*" in bare:
        return "The query has a comment. Leave comments out."
    if ";" in bare.rstrip().removesuffix(";"):
        return "Send one statement at a time."
    if _query_bracket_depth(bare) > MAX_BRACKET_DEPTH:
        return (
            f"The query nests brackets deeper than {MAX_BRACKET_DEPTH}. Write it in "
            "steps, with WITH."
        )
    words = re.findall(r"[^\W\d]\w*", bare)
    if not words or words[0].upper() not in _FIRST:
        return f"Only reading is allowed here: begin with {', '.join(_FIRST)}."
    for word in words:
        if word.upper() in _REFUSED:
            return (
                f"{word.upper()} is not allowed: this tool only reads. To write, call "
                "create_requirement_node or create_fulfillment_relationship; for the schema, "
                "get_database_schema. A name of that spelling goes between backticks."
            )
    missing = sorted(set(re.findall(r"\$(\w+)", bare)) - set(parameters))
    if missing:
        return f"The query uses ${missing[0]}, which parameters does not give."
    return ""


def is_read_query_ordered(query: str) -> bool:
    return bool(re.search(r"\bORDER\s+BY\b", _QUOTED.sub(" ", query), re.IGNORECASE))


def _query_bracket_depth(text: str) -> int:
    deepest = depth = 0
    for sign in text:
        if sign in "([{":
            depth += 1
            deepest = max(deepest, depth)
        elif sign in ")]}":
            depth -= 1
    return deepest
