"""Helpers that fold, close, cut and list short texts."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence

TITLE_CHARACTERS = 80


def one_line(text: str, limit: int) -> str:
    """The text with white space folded, cut at a word to at most `limit` characters."""
    return shorten_to_start(" ".join(text.split()), limit)


def text_title_line(text: str) -> str:
    """Return the first line with words, at most `TITLE_CHARACTERS` long; comments do not count."""
    shown = _without_html_comments(text)
    lines = [line.strip("# ").strip() for line in (shown if shown.strip() else text).splitlines()]
    first = next((line.rstrip(" :") for line in lines if line), "")
    return first if len(first) <= TITLE_CHARACTERS else f"{first[: TITLE_CHARACTERS - 1]}…"


def _without_html_comments(text: str) -> str:
    before, *rest = text.split("<!--")
    shown, unclosed = [before], list[str]()
    for part in rest:
        _, end, after = part.partition("-->")
        if end:
            # A second mark of a beginning is part of the comment.
            shown.append(after)
            unclosed.clear()
        else:
            unclosed.append(f"<!--{part}")
    return "".join([*shown, *unclosed])


def as_sentence(text: str) -> str:
    text = text.rstrip()
    return text if text.endswith((".", "!", "?", "…", ":", ";")) else f"{text}."


def opening_line(text: str) -> str:
    """The first line of a text; without the sentence that only announces the lines after it."""
    first, _, rest = text.strip().partition("\n")
    said, _, announced = first.rpartition(". ")
    return f"{said}." if rest and said and announced.endswith(":") else first


def first_few(names: Sequence[str], most: int) -> str:
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def shorten_to_start(text: str, most: int) -> str:
    """The beginning of a text, cut at a word and marked if truncated."""
    if len(text) <= most:
        return text
    cut = text[: most - 1]
    space = max(cut.rfind(" "), cut.rfind("\n"))
    return f"{(cut[:space] if space > most // 2 else cut).rstrip()}…"


def indent_list_entry(text: str) -> str:
    return text.strip().replace("\n", "\n  ")


def shorten_to_end(text: str, most: int) -> str:
    """The end of a text, cut at a line if possible and marked if truncated."""
    if len(text) <= most:
        return text
    cut = text[1 - most :]
    line = cut.find("\n")
    return f"…{cut[line:] if 0 <= line < most // 2 else cut}"


def shorten_to_both_ends(text: str, most: int) -> str:
    """The beginning and the end of a text, with a mark where the middle is omitted."""
    if len(text) <= most:
        return text
    half = (most - 2) // 2
    return f"{shorten_to_start(text, half)}\n{shorten_to_end(text, half)}"


def count_noun(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def shell_quoted(text: str) -> str:
    """Return an argument of a command as people paste it: quoted unless it needs no quotes."""
    if text.translate(dict.fromkeys(map(ord, "-_.:"))).isalnum():
        return text
    inner = text.replace("'", "'\\''")
    return f"'{inner}'"


def shorten_list(entries: list[str], most: int = 60) -> list[str]:
    more = len(entries) - most
    return [*entries[:most], f"and {more:,} more"] if more > 0 else entries


def tally_words(words: Iterable[str]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in sorted(Counter(words).items()))


def table_cell(text: str) -> str:
    """A text for a cell of a Markdown table. A non-breaking space stays."""
    return re.sub(r"[^\S\N{NO-BREAK SPACE}]+", " ", text).strip(" ").replace("|", "\\|")


def fork_command(setting: str, job: str = "JOB") -> str:
    """Return `starter.py fork JOB --phase N --set 'KEY=VALUE'`, in backquotes."""
    # A job's id and a host that a model named are quoted, as people paste the command.
    return f"`starter.py fork {shell_quoted(job)} --phase N --set {shell_quoted(setting)}`"
