"""Pages of a document, and the text beside it that they are kept in."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

_NOT_READ = "(This page could not be read: "
_MARK = re.compile(r"\[page ([0-9]+)\]")
_ESCAPED = re.compile(r"\\*\[page [0-9]+\]")


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a document: its number, counted from 1 as in the file, and its plain text."""

    number: int
    text: str
    links: list[tuple[str, str]] = field(default_factory=list, compare=False)
    """Of a web page: where it leads, each address with its words, which the text does not say."""

    @property
    def unread(self) -> bool:
        """Whether the document has a text here that could not be had (`not_read`)."""
        return self.text.startswith(_NOT_READ) and "\n" not in self.text


def not_read(why: str) -> str:
    """What stands on a page that a parser failed on, so that nobody takes it for a blank one."""
    return f"{_NOT_READ}{why})"


def unread_told(pages: Iterable[Page]) -> str:
    """A sentence that names the pages which could not be read, after a space; empty if none."""
    numbers = [str(page.number) for page in pages if page.unread]
    if not numbers:
        return ""
    more = f" and {len(numbers) - 20} more" if numbers[20:] else ""
    return f" Could not be read: page{'s'[: len(numbers) - 1]} {', '.join(numbers[:20])}{more}."


class DocumentError(ValueError):
    """A document that cannot be used. The message is one line for the model or the person:
    which document, what is wrong with it and what to do."""


def render(pages: Iterable[Page]) -> str:
    """One text with a line `[page 3]` before each page. A line of a page that looks like such a
    mark gets a backslash before it. `parse` gives exactly the same pages back."""
    return "".join(f"[page {page.number}]\n{_escape(page.text)}\n" for page in pages)


def parse(text: str) -> list[Page]:
    """The pages of a text made by `render`. Raises `DocumentError` if it does not begin with a
    page mark."""
    if not text:
        return []
    pages: list[tuple[int, list[str]]] = []
    for line in text.removesuffix("\n").split("\n"):
        if mark := _MARK.fullmatch(line):
            pages.append((int(mark[1]), []))
        elif not pages:
            raise DocumentError("the text kept for the document has no page marks; extract it anew")
        else:
            pages[-1][1].append(line[1:] if _ESCAPED.fullmatch(line) else line)
    return [Page(number, "\n".join(lines)) for number, lines in pages]


def _escape(text: str) -> str:
    return "\n".join("\\" + line if _ESCAPED.fullmatch(line) else line for line in text.split("\n"))


def page_of(pages: Iterable[Page], number: int) -> Page:
    """The page with that number. Raises `DocumentError` naming the numbers there are, and if the
    page could not be read: what stands there instead is not the document's."""
    there = list(pages)
    for page in there:
        if page.number == number:
            if page.unread:
                raise DocumentError(
                    f"page {number} could not be read, so nothing of it can be cited"
                )
            return page
    numbers = f"{there[0].number} to {there[-1].number}" if there else "none"
    raise DocumentError(f"there is no page {number}; the document's pages: {numbers}")
