"""What every part of document handling shares: a page of text, and why there is none."""

from collections.abc import Iterable
from dataclasses import dataclass, field

_NOT_READ = "(This page could not be read: "


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
