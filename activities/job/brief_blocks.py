"""The blocks of a brief: headings, paragraphs, list entries and table rows.

A brief is Markdown, plain text, or the text of a document. What a reader does not see as said
(code, comments, quotes, struck text, front matter) says nothing.
"""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

from markdown_it import MarkdownIt
from markdown_it.token import Token

from activities.job.brief_leads import is_template_title
from activities.job.named_results import named_results
from activities.text.instructing import sentence_force

MAX_FENCES = 20
"""Most shorter fences within a block of code, after which its end is no longer sought."""
_MARKERS = [
    (re.compile(rf"^(\s*){pattern}[ \t]+(?=\S)"), rf"\g<1>{marker} ")
    for pattern, marker in (
        (r"\d{1,3}(?:\.\d{1,3})+\.?", "1."),
        (r"(?:\((?:[ivxIVX]{1,5}|\d{1,3})\)|[ivx]{2,5}\))", "1)"),
        (r"(?:\(?[A-Za-z]\)|[a-z]\.(?!\s?\w\.))", "+"),
        ("[\u2190-\u2bff\U0001f300-\U0001faff]\ufe0f?", "*"),
        ("[\u2022\u2023\u25e6\u25aa\u25cf\u25cb\u00b7\uf0b7]", "*"),
        ("[\u2013\u2014]", "-"),
    )
]
"""Marks of list entries that Markdown does not know, each with a mark for the same list. Marks of
different kinds stay different, since a list often stands below another without being indented."""
_NUMBER = re.compile(r"^(?P<indent>\s*)(?P<number>\d{1,3})(?P<ending>[.)])(?=\s+\S)")
_SECTION = re.compile(r"^\s{0,3}(?P<number>\d{1,3}(?:\.\d{1,3})*)[.)]?\s+(?P<title>\S.*)$")
_ANY_MARKER = re.compile(r"^\s*(?:[-*+\u2022\u2013\u2014\u25cf\uf0b7]|\(?(?:\d{1,3}|\w)[.)])\s")
_FENCE = re.compile(r"^\s*(?:(?:[-*+]|\d+[.)])\s+)?(?P<fence>```+|~~~+)(?P<after>.*)$")
_DO_FOLLOWING = re.compile(
    r"\b(?:do|complete|perform|carry out|work through|erledige|mache?|tu)\b.{0,30}"
    r"\b(?:this|that|following|follows|below|tasks?|steps?|folgende\w*|dies)\b",
    re.IGNORECASE,
)
_OF_PATH = re.compile(r"(?<=/)[*_]+|[*_]+(?=/|\.[a-z0-9])")
"""Marks of emphasis that are a part of a path, as in `src/__init__.py` and `output/*.csv`."""
_HELD = str.maketrans("*_", "\ue000\ue001")
_GIVEN_BACK = str.maketrans("\ue000\ue001", "*_")
_QUOTE = re.compile(r"^\s*>")
_PAGE_MARK = re.compile(r"^\[page \d+[^\[\]]*\]$")
_TAGS = re.compile(
    r"</?(?:br|p|b|i|em|strong|sub|sup|u|span|div|li|ul|ol|details|summary|kbd|code|a|img|hr|mark|small)\b[^<>]*>",
    re.IGNORECASE,
)
_STRUCK_TAGS = re.compile(r"<(del|s|strike)\b[^<>]*>[^<>]*</\1\s*>", re.IGNORECASE)
_CHECKBOX = re.compile(r"^\[[^\w\]]?\]\s+|^\[[xX]\]\s+")
BOLD_ONLY = 7
"""Level of a heading that is only set in bold, or has no mark at all."""


@dataclass(frozen=True, slots=True)
class Block:
    """A heading, paragraph, list entry or table row; `text` has the line ends of the file."""

    kind: Literal["heading", "paragraph", "entry", "row"]
    text: str
    line: int
    level: int = 0
    lists: tuple[int, ...] = ()
    """Numbers of the lists that it is in, the outermost first."""
    cells: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()


def is_led_by(following: Block | None, block: Block) -> bool:
    if following is None or following.kind not in ("entry", "row"):
        return False
    if len(following.lists) > len(block.lists):
        return True
    # People set a list below an entry without indenting it.
    below = len(following.lists) == len(block.lists) and following.lists != block.lists
    return below and block.text.rstrip(" *_").endswith(":")


@cache
def _markdown() -> MarkdownIt:
    disabled = ["code", "fence", "html_block", "html_inline", "autolink", "entity", "reference"]
    return MarkdownIt("commonmark").enable(["table", "strikethrough"]).disable(disabled)


def read_blocks(text: str) -> Iterator[Block]:
    shown = "\n".join(_shown_lines(text))
    held = _OF_PATH.sub(lambda marks: marks[0].translate(_HELD), shown)
    tokens = _markdown().parse(held)
    blocks = list(_blocks_of(tokens))
    sizes = Counter(block.lists for block in blocks if block.kind == "entry")
    for place, block in enumerate(blocks):
        following = blocks[place + 1] if place + 1 < len(blocks) else None
        alone = block.kind == "paragraph" or (len(block.lists) == 1 and sizes[block.lists] == 1)
        yield from _with_plain_heading(block, following) if alone else [block]


def _shown_lines(text: str) -> list[str]:
    folded = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    lines = _without_fences(_without_front_matter(folded.replace("\f", " ").split("\n")))
    shown = _without_indented_code(_without_comments("\n".join(lines)).split("\n"))
    counted: set[tuple[int, str]] = set()
    headings: set[str] = set()
    result = []
    for place, line in enumerate(shown):
        if number := _heading_number(shown, place, headings):
            headings.add(number)
            # Not the entry of a list; without the backslash Markdown takes it for one.
            result.append(re.sub(r"^(\s*\d+)([.)])(?=\s)", r"\1\\\2", line))
            continue
        if entry := _NUMBER.match(line):
            # Markdown would let "2." after a line without a mark be a part of that line.
            counted.add((int(entry["number"]), entry["ending"]))
        again = entry and (int(entry["number"]) - 1, entry["ending"]) in counted
        hidden = _QUOTE.match(line) or _PAGE_MARK.match(line)
        known = _with_known_marker(_NUMBER.sub(r"\g<indent>1\g<ending>", line) if again else line)
        result.append("" if hidden else known)
    return result


def _heading_number(lines: list[str], place: int, headings: set[str]) -> str:
    """Return the number of a section whose heading a line is, or nothing.

    A heading is between blank lines. Text follows it, or a heading whose number goes on from its
    own; where it has a number of one part, the one before it was a heading.
    """
    section = _SECTION.match(lines[place])
    if section is None or any(line.strip() for line in lines[max(0, place - 1) : place]):
        return ""
    number = section["number"]
    below = lines[place + 1 : place + 4]
    following = next((line for line in below if line.strip()), "")
    if not below or below[0].strip() or not following or not _looks_like_heading(section["title"]):
        return ""
    deeper = following.strip().startswith(f"{number}.") and _SECTION.match(following)
    goes_on = "." in number or str(int(number) - 1) in headings
    return number if deeper or (goes_on and not _ANY_MARKER.match(following)) else ""


def _without_indented_code(lines: list[str]) -> list[str]:
    """Blank indented lines that are neither in a list nor look like sentences."""
    result: list[str] = []
    in_list = code = False
    for number, line in enumerate(lines):
        indented = line.startswith(("    ", "\t"))
        if line.strip() and not indented:
            in_list = bool(_ANY_MARKER.match(line)) or (in_list and line.startswith(" "))
            code = False
        elif (
            indented and line.strip() and not in_list and not (number and lines[number - 1].strip())
        ):
            code = not (line.lstrip()[0].isupper() or _ANY_MARKER.match(line))
        result.append("" if code else line)
    return result


def _with_known_marker(line: str) -> str:
    for pattern, marker in _MARKERS:
        if pattern.match(line):
            return pattern.sub(marker, line)
    return line


def _without_front_matter(lines: list[str]) -> list[str]:
    if lines[0].strip() != "---":
        return lines
    ends = [n for n, line in enumerate(lines[1:200], 1) if line.strip() in ("---", "...")]
    inside = lines[1 : ends[0]] if ends else []
    if not inside or not all(
        re.match(r"\s*(?:#|-\s|[\w.-]+\s*:)|\s*$|\s+\S", line) for line in inside
    ):
        return lines
    return [""] * (ends[0] + 1) + lines[ends[0] + 1 :]


def _without_fences(lines: list[str]) -> list[str]:
    """Blank the blocks of code; a fence that is never closed hides nothing."""
    result = list(lines)
    closing: dict[str, list[int]] = {"`": [], "~": []}
    for number, line in enumerate(lines):
        bare = line.strip()
        if bare[:3] in ("```", "~~~") and not bare.strip(bare[0]):
            closing[bare[0]].append(number)
    number = 0
    while number < len(lines):
        opened = _FENCE.match(lines[number])
        if opened and "`" not in opened["after"]:
            fence = opened["fence"]
            ends = closing[fence[0]]
            later = ends[bisect_right(ends, number) :][:MAX_FENCES]
            stop = next((n for n in later if len(lines[n].strip()) >= len(fence)), number)
            result[number : stop + 1] = _code_as_shown(lines, number, stop)
            number = stop
        number += 1
    return result


def _code_as_shown(lines: list[str], start: int, stop: int) -> list[str]:
    """Return what a brief says in a block of code: its lines if a text says to do them."""
    said = next(
        (line.strip(" *_") for line in reversed(lines[max(0, start - 2) : start]) if line), ""
    )
    if not (said.endswith(":") and _DO_FOLLOWING.search(said)):
        return [""] * (stop + 1 - start)
    inner = [_ANY_MARKER.sub("", line).strip() for line in lines[start + 1 : stop]]
    entries = [f"- {line}" if line and not _QUOTE.match(line) else "" for line in inner]
    return ["", *entries, ""][: stop + 1 - start]


def _without_comments(text: str) -> str:
    """Blank the comments; one that is never closed hides nothing."""
    parts: list[str] = []
    place = 0
    while (start := text.find("<!--", place)) >= 0 and (end := text.find("-->", start + 4)) >= 0:
        parts += [text[place:start], "\n" * text.count("\n", start, end)]
        place = end + 3
    return "".join([*parts, text[place:]])


def _blocks_of(tokens: Sequence[Token]) -> Iterator[Block]:
    lists: list[int] = []
    count = level = row = 0
    fresh = False
    cells: list[str] | None = None
    columns: tuple[str, ...] = ()
    for token in tokens:
        line = token.map[0] + 1 if token.map else 0
        if token.type in ("bullet_list_open", "ordered_list_open", "table_open"):
            count += 1
            lists.append(count)
            cells, columns = [] if token.type == "table_open" else cells, ()
        elif token.type in ("bullet_list_close", "ordered_list_close", "table_close"):
            lists.pop()
            cells = None if token.type == "table_close" else cells
        elif token.type == "list_item_open":
            fresh = True
        elif token.type in ("heading_open", "heading_close"):
            level = int(token.tag[1:]) if token.type == "heading_open" else 0
        elif token.type == "tr_open":
            cells, row = [], line
        elif token.type == "thead_close":
            columns = tuple(cells or ())
        elif token.type == "tr_close" and cells and columns:
            text = " | ".join(cells)
            yield Block("row", text, row, 0, tuple(lists), tuple(cells), columns)
        elif token.type == "inline" and cells is not None:
            cells.append(" ".join(_inline_text(token).split()))
        elif token.type == "inline":
            text = _inline_text(token)
            if level:
                yield Block("heading", text, line, level)
            elif not lists:
                yield from _titled_paragraphs(token, text, line)
            else:
                kind: Literal["entry", "paragraph"] = "entry" if fresh else "paragraph"
                yield Block(kind, _CHECKBOX.sub("", text), line, lists=tuple(lists))
            fresh = False


def _titled_paragraphs(token: Token, text: str, line: int) -> Iterator[Block]:
    """Yield a paragraph, and lines of it that are titles of what is below them as headings."""
    lines, bold = text.split("\n"), _bold_lines(token)
    start = 0
    for number, title in enumerate(lines):
        below = "".join(lines[number + 1 : number + 2]).strip()
        # A bold line after the words "Please send us" is a part of their sentence.
        ended = start > 0 or lines[number - 1].rstrip().endswith((".", "!", "?"))
        opens = number == start or (number in bold and ended)
        if not opens or not _is_title(title, below, bold=number in bold):
            continue
        if start < number:
            yield Block("paragraph", "\n".join(lines[start:number]), line + start)
        yield Block("heading", title, line + number, BOLD_ONLY)
        start = number + 1
    if start < len(lines):
        yield Block("paragraph", "\n".join(lines[start:]), line + start)


def _is_title(line: str, below: str, *, bold: bool) -> bool:
    if below[:1].islower():
        return False
    if is_template_title(line):
        return bold if ":" in line else bold or bool(below)
    # "Format" above "PDF" asks together with it alone.
    asks = sentence_force(below) == "asks"
    return bold and asks and _looks_like_heading(line.rstrip(" :"))


def _bold_lines(token: Token) -> set[int]:
    """Return the numbers of the lines of a text that are set in bold as a whole."""
    lines: list[list[str]] = [[]]
    for child in token.children or []:
        if child.type in ("softbreak", "hardbreak"):
            lines.append([])
        elif child.type != "text" or child.content.strip():
            lines[-1].append(child.type)
    return {
        number
        for number, kinds in enumerate(lines)
        if kinds.count("strong_open") == 1
        and kinds[0] == "strong_open"
        and kinds[-1] == "strong_close"
    }


def _inline_text(token: Token) -> str:
    """Return the words of a text without marks; struck ones are left out."""
    parts: list[str] = []
    struck = 0
    for child in token.children or []:
        if child.type in ("s_open", "s_close"):
            struck += 1 if child.type == "s_open" else -1
        elif child.type in ("softbreak", "hardbreak"):
            parts.append("\n")
        elif child.type in ("text", "code_inline", "text_special") and not struck:
            parts.append(child.content)
    said = _TAGS.sub(" ", _STRUCK_TAGS.sub(" ", "".join(parts)))
    return said.translate(_GIVEN_BACK)


def _with_plain_heading(block: Block, following: Block | None) -> Iterator[Block]:
    """Yield the block; a heading without a mark as one, apart from the text below it."""
    first, _, rest = block.text.partition("\n")
    if not _looks_like_heading(first):
        yield block
    elif rest.strip():
        if block.kind == "paragraph" and rest.lstrip()[0].isupper() and _is_capital_title(first):
            yield Block("heading", first, block.line, BOLD_ONLY)
            yield replace(block, text=rest, line=block.line + 1)
        else:
            yield block
    elif following is None or following.kind == "heading":
        yield block
    elif not block.lists or (len(following.lists) < 2 and following.lists != block.lists):
        yield Block("heading", first, block.line, BOLD_ONLY)
    else:
        yield block


def _looks_like_heading(line: str) -> bool:
    words = line.split()
    return (
        0 < len(words) <= 8
        and line.rstrip()[-1] not in ".!?:;,"
        and (line.lstrip()[0].isupper() or line.lstrip()[0].isdigit())
        and not named_results(line)
        and sentence_force(line) == "none"
    )


def _is_capital_title(line: str) -> bool:
    letters = [letter for letter in line if letter.isalpha()]
    numbered = re.match(r"\s*\d{1,2}(?:\.\d{1,2})*\.?\s", line) is not None
    return numbered or (len(letters) > 2 and all(letter.isupper() for letter in letters))
