"""The tool `search_tools`, which finds tools among many."""

import re
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from typing import Annotated, Literal

import re2
from pydantic import Field

from activities.toolkit.registry import Tool, tool
from activities.toolkit.tool_context import ToolContext
from activities.toolkit.tool_errors import ToolError
from activities.toolkit.tool_offer import MAX_OFFERED, offer_tools
from config.regexes import compile_regex, regex_error
from config.schema.agent import AgentConfig
from protocol.job_state import JobState

BEST = 5
MORE = 20
PAGE_CHARACTERS = 3000
QUERY_WORDS = 50
PATTERN_BYTES = 1 << 16
"""Memory limit of a compiled pattern; small, so that even bad patterns are fast."""
_IDLE = re.compile(
    "a|all|an|and|any|are|as|at|be|by|can|do|for|from|how|i|if|in|into|is|it|me|my|need|of|on|or|"
    "some|that|the|their|them|there|this|to|tool|tools|use|using|want|what|which|with"
)
"""Words in queries that match nearly every tool."""
_WORD = re.compile(r"[^\W_]+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


@tool("discovery", effect="writes")
def search_tools(
    context: ToolContext,
    query: Annotated[
        str,
        Field(min_length=1, max_length=500, description="What the tool should do, or its name."),
    ],
    mode: Literal["text", "regex"] = "text",
) -> str:
    """Find tools that are not offered yet and make the best 5 callable from the next turn on.

    `text` ranks by the words of the query, in any form, over names and documentation; names of
    tools get exactly these. `regex` takes RE2 syntax, without regard to case. What was found
    stays callable until the phase ends.
    """
    kind = context.state.phase.kind
    pool = offer_tools(context.config, kind, unused=context.state.unused_tools).deferred
    if not pool:
        return "Every tool of this phase is offered already; there is nothing to search for."
    matching = (
        _search_tools_by_pattern(pool, query)
        if mode == "regex"
        else _search_tools_by_words(pool, query)
    )
    if not matching:
        return (
            f"None of the {len(pool)} tools to be found in this phase matches {query[:100]!r}. Try "
            "other or fewer words for what the tool should do, a name from the list in the system "
            'prompt, or a part of names with mode="regex", such as "graph|node".'
        )
    best, more = matching[:BEST], matching[BEST:]
    offered = offer_tools(
        context.config, kind, context.state.found_tools, context.state.unused_tools
    ).offered
    new = [entry.name for entry in best if entry not in offered]
    if len(offered) + len(new) > MAX_OFFERED:
        raise ToolError(
            f"{len(offered)} tools are offered, and endpoints take at most {MAX_OFFERED}. Work "
            "with these; the next phase begins with the core alone."
        )
    context.state.found_tools = [*context.state.found_tools, *new]
    parts = [f"Callable from your next turn on: {', '.join(entry.name for entry in best)}."]
    if more:
        rest = f" and {len(more) - MORE} others" if len(more) > MORE else ""
        named = ", ".join(entry.name for entry in more[:MORE])
        parts.append(f"More match; search for a name to call one: {named}{rest}.")
    return "\n\n".join([*parts, *map(_tool_search_page, best)])


def tools_for_list(config: AgentConfig, state: JobState) -> list[str]:
    """Return the deferred tools that a phase's list names, or the best by words of its work."""
    phase = state.phase
    pool = offer_tools(config, phase.kind, unused=state.unused_tools).deferred
    text = " ".join([phase.description, *(todo.content for todo in phase.todos)])
    named = [entry for entry in pool if re.search(rf"\b{re.escape(entry.name)}\b", text)]
    if pool and phase.kind == "tactical":
        found = _search_tools_by_words(pool, text, endings=("",))
        named += [entry for entry in found if entry not in named][: max(0, BEST - len(named))]
    return [entry.name for entry in named]


def _tool_search_page(entry: Tool) -> str:
    page = entry.page.strip()
    if len(page) <= PAGE_CHARACTERS:
        return page
    return f'{page[:PAGE_CHARACTERS]}\n[TRUNCATED read_file("tools/{entry.name}.md") shows all]'


def _search_tools_by_pattern(pool: list[Tool], pattern: str) -> list[Tool]:
    """Return tools that match the pattern: by name first, then by summary, then by the rest."""
    try:
        compiled = compile_regex(pattern, any_case=True, memory=PATTERN_BYTES)
    except re2.error as error:
        raise ToolError(f"query is not a valid RE2 pattern: {regex_error(error)}") from None
    ranked = [
        entry for n in range(3) for entry in pool if compiled.search(_tool_search_texts(entry)[n])
    ]
    return list(dict.fromkeys(ranked))


def _search_tools_by_words(
    pool: list[Tool], query: str, endings: Sequence[str] = ("", "*")
) -> list[Tool]:
    """Return matching tools, best first by BM25; if the query lists tool names, those tools."""
    by_name = {entry.name: entry for entry in pool}
    names = list(dict.fromkeys(query.replace(",", " ").split()))
    if all(name in by_name for name in names):
        return [by_name[name] for name in names]
    words = [word for word in _WORD.findall(query.lower()) if not _IDLE.fullmatch(word)]
    words = list(dict.fromkeys(words))[:QUERY_WORDS]
    with closing(sqlite3.connect(":memory:")) as base:
        base.execute(
            "CREATE VIRTUAL TABLE tools USING "
            "fts5(name, line, rest, tokenize='porter unicode61 remove_diacritics 2')"
        )
        base.executemany("INSERT INTO tools VALUES (?, ?, ?)", map(_tool_index_row, pool))
        # Whole words by their stems first, then prefixes, for abbreviations.
        ranked = [row for end in endings for row in _matching_tool_rows(base, words, end)]
    return [pool[row - 1] for row in dict.fromkeys(ranked)]


def _matching_tool_rows(base: sqlite3.Connection, words: list[str], ending: str) -> list[int]:
    """Return matching row numbers, best first. Quoted words cannot act as query operators."""
    fts_query = " OR ".join(f'"{word}"{ending}' for word in words if len(word) > 2 or not ending)
    if not fts_query:
        return []
    cursor = base.execute(
        "SELECT rowid FROM tools WHERE tools MATCH ? ORDER BY bm25(tools, 4, 2, 1), rowid",
        [fts_query],
    )
    return [row for (row,) in cursor]


def _tool_index_row(entry: Tool) -> tuple[str, str, str]:
    name, line, rest = _tool_search_texts(entry)
    return f"{name} {_HUMP.sub(' ', name)}", line, rest


def _tool_search_texts(entry: Tool) -> tuple[str, str, str]:
    """Return the indexed texts: name, summary, and documentation with the arguments'."""
    # Without values and bounds, which would drown out the tool's purpose.
    arguments_text = "\n".join(
        f"{argument.name}: {argument.description}" for argument in entry.arguments.listed
    )
    return entry.name, entry.summary, f"{entry.documentation}\n{arguments_text}"
