"""Searches the workspace's files by words, by pattern or by meaning."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

import re2
from pydantic import Field

from activities.checkpoints import FileEntry
from activities.checkpoints.checkpoint_errors import FileMissing
from activities.search.hybrid_search import search_passages, search_words
from activities.text.safe_text import split_lines
from activities.toolkit.registry import tool
from activities.toolkit.tool_context import ToolContext
from activities.toolkit.tool_errors import ToolError
from activities.tools.file_tools import MAX_LINE, Path
from config.regexes import compile_regex, regex_error

MAX_HITS = 100
MANY = 10
"""More matching lines than this are counted in the result: models miscount."""
MAX_PASSAGES = 10
PAGES = "tools"
EXCERPT_BEFORE = 120


@tool("files", effect="reads", local=False, seconds=600)
def search_files(
    context: ToolContext,
    query: Annotated[str, Field(min_length=1, max_length=1000)],
    path: Path = "",
    mode: Literal["text", "regex", "semantic"] = "text",
) -> str:
    """Find text in the files of the workspace: by words, by a pattern, or by meaning.

    `text` compares without regard to case; `regex` takes RE2 syntax. Both answer with path, line
    number and line, of a long line the part around its first match and its column. `semantic`
    takes a question or a description in other words than the file's, and answers with the 10
    passages that fit best, the best first, each with path and first line, or says that nothing
    fits; of tools/ only when `path` leads there.
    """
    if mode == "semantic":
        return _search_files_by_meaning(context, query, path)
    if mode == "text" and "\n" in query:
        raise ToolError("query has several lines, and lines are searched one by one. Give one.")
    pattern = _compile_file_query(query, mode)
    hits: list[str] = []
    total = 0
    for entry in _files_under(context, path):
        for number, line in enumerate(_lines_to_search(context, entry), 1):
            if match := pattern.search(line):
                total += 1
                if total <= MAX_HITS:
                    shown = _line_excerpt(line, match.start())
                    # A column at which read_file can start in a line too long to show.
                    column = f" (column {match.start() + 1:,})" if shown.startswith("…") else ""
                    hits.append(f"{entry.path}:{number}{column}: {shown}")
    if MANY < total <= MAX_HITS:
        hits.append(f"[{total} lines match]")
    if total > MAX_HITS:
        hits.append(f"[TRUNCATED {total - MAX_HITS} more; narrow the query or give a path]")
    return "\n".join(hits) or _no_match(path, query)


def _compile_file_query(query: str, mode: str) -> re2._Regexp[str]:
    try:
        if mode == "text":
            return compile_regex(re2.escape(query), any_case=True)
        return compile_regex(query)
    except re2.error as error:
        raise ToolError(f"query is not a valid RE2 pattern: {regex_error(error)}") from None


def _files_under(context: ToolContext, path: str) -> Iterator[FileEntry]:
    named = context.files.entry(path)
    for entry in [named] if named and named.kind == "file" else context.files.walk(path):
        if entry.kind == "file":
            yield entry


def _lines_to_search(context: ToolContext, entry: FileEntry) -> list[str]:
    try:
        return split_lines(context.files.read_entry(entry).decode())
    except UnicodeDecodeError:
        return []


def _search_files_by_meaning(context: ToolContext, query: str, path: str) -> str:
    entry = context.files.entry(context.files.resolve_links(path))
    if entry is None:
        raise FileMissing(path)
    files = context.files
    # In a small workspace the tool pages would outrank everything else.
    if entry.path.partition("/")[0] != PAGES and files.entry(PAGES):
        files = files.delete(PAGES)
    results = search_passages(
        context.root.repository(context.job) / "search",
        files,
        query,
        path=entry.path,
        limit=MAX_PASSAGES,
        embeddings=context.config.embeddings,
    )
    shown = [
        f"{hit.path}:{hit.line}: {_file_passage_excerpt(hit.text, query)}" for hit in results.hits
    ]
    note = f"[{results.note}]" if results.note else ""
    return "\n".join(part for part in (*(shown or [_no_match(path, query)]), note) if part)


def _file_passage_excerpt(text: str, query: str) -> str:
    """Return a passage on one line; if long, the part around the first word of the query."""
    line = " ".join(text.split())
    folded = line.lower()
    places = [folded.find(word) for word in search_words(query) if len(word) > 2]
    return _line_excerpt(line, min((place for place in places if place >= 0), default=0))


def _line_excerpt(line: str, column: int) -> str:
    before = len(line) - len(line.lstrip())
    line, column = line.strip(), max(0, column - before)
    start = max(0, min(column - EXCERPT_BEFORE, len(line) - MAX_LINE))
    end = start + MAX_LINE
    return f"{'…' if start else ''}{line[start:end]}{'…' if end < len(line) else ''}"


def _no_match(path: str, query: str) -> str:
    return f"Nothing in {path or 'the workspace'} matches {query!r}."
