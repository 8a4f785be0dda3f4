"""The list below the heading of a scope, in whatever form people write one."""

from collections.abc import Sequence
from dataclasses import dataclass

from activities.job.brief_blocks import BOLD_ONLY, Block, is_led_by, read_blocks
from activities.job.brief_leads import Lead, heading_mode, inline_marks, split_inline_list
from activities.text.statement_words import heading_words, statement_words


@dataclass(frozen=True, slots=True)
class ScopeList:
    """The entries below the headings of a scope; `found` also if nothing could be read there."""

    entries: tuple[str, ...]
    found: bool


def scope_list(text: str) -> ScopeList:
    """Return the list below each heading of a scope; nested entries follow their parents."""
    blocks = list(read_blocks(text))
    entries: list[str] = []
    is_there = False
    for place, block in enumerate(blocks):
        title, _, said = block.text.strip().partition(":")
        following = blocks[place + 1] if place + 1 < len(blocks) else None
        named = heading_words(title) in statement_words().scope and (
            block.kind == "heading" or ":" in block.text or is_led_by(following, block)
        )
        if not named or block.kind == "row":
            continue
        is_there = True
        if block.kind != "heading" and said.strip(" *_\n"):
            entries += _said_in_line(said)
        entries += _entries_below(blocks, place)
    return ScopeList(tuple(entries), is_there)


def _said_in_line(said: str) -> list[str]:
    marks = inline_marks(said)
    if marks:
        return [text for text, _, _ in split_inline_list(said.strip(), 0, Lead(mode="binds"))]
    parts = (part for part in said.split(";") if part.strip(" *_.\n"))
    return [" ".join(part.split()).rstrip(".") for part in parts]


def _entries_below(blocks: Sequence[Block], place: int) -> list[str]:
    begin = blocks[place]
    level = begin.level if begin.kind == "heading" else BOLD_ONLY
    entries: list[tuple[Block, str]] = []
    left_out = 0
    for number in range(place + 1, len(blocks)):
        block = blocks[number]
        if block.kind == "heading":
            if block.level <= level:
                break
            closes = left_out and block.level <= left_out
            left_out = 0 if closes else left_out
            if heading_mode(heading_words(block.text)) in ("example", "background"):
                left_out = left_out or block.level
        elif begin.kind != "heading" and not block.lists[len(begin.lists) :]:
            break
        elif block.kind in ("entry", "row") and not left_out and block.text.strip():
            entries.append((block, " ".join(block.text.split())))
    return _leaves(entries)


def _leaves(entries: list[tuple[Block, str]]) -> list[str]:
    result: list[str] = []
    above: list[tuple[int, str]] = []
    for number, (block, text) in enumerate(entries):
        depth = len(block.lists)
        while above and above[-1][0] >= depth:
            above.pop()
        deeper = number + 1 < len(entries) and len(entries[number + 1][0].lists) > depth
        if deeper:
            above.append((depth, text.rstrip(":")))
        else:
            result.append(": ".join([*(name for _, name in above), text]))
    return result
