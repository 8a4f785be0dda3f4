"""Pages of a document, the text file that holds them, and notes on the reading."""

import json
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field

from protocol.errors import Invalid

_NOT_READ = "(This page could not be read: "
_PARTS = r"((?:; (?:label|section) [^;\[\]\n]*)*)"
_MARK = re.compile(rf"\[page ([0-9]+){_PARTS}\]")
_ESCAPED = re.compile(rf"\\*\[page [0-9]+{_PARTS}\]")
_RANGE = re.compile(r"^(\d{1,6})(?:\s*-\s*(\d{1,6}))?$")
_NOT_IN_MARKS = str.maketrans({";": ",", "[": "(", "]": ")"})
PICTURE_ADVICE = (
    "run text recognition (OCR) over it first, or give it to an agent whose model can look at it "
    "(`model.vision: true`)"
)
MAX_SECTIONS = 12
"""Most sections named in a page mark."""
_MORE = "…"
"""Replaces the sections that are not named."""
MAX_TITLE_CHARACTERS = 100
"""Longest label or section title in a mark, in characters."""


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a document: its number, counted from 1 as in the file, and its plain text."""

    number: int
    text: str
    links: list[tuple[str, str]] = field(default_factory=list, compare=False)
    """Links of a web page: addresses that the text does not show, each with its words."""
    label: str = ""
    """The printed page number, if it differs: `iv`."""
    sections: list[str] = field(default_factory=list)
    """Numbered headings, in order: the section that continues on the page, if any, and those that
    begin on it.
    """

    @property
    def unread(self) -> bool:
        """Whether the page's text could not be read (`unread_page_placeholder`)."""
        return self.text.startswith(_NOT_READ) and "\n" not in self.text


def unread_page_placeholder(why: str) -> str:
    """Return the placeholder for an unreadable page, so that nobody takes it for blank."""
    return f"{_NOT_READ}{why})"


def name_unread_pages(pages: Iterable[Page]) -> str:
    """Return a sentence that names the unreadable pages, after a space; empty if there are none."""
    numbers = [str(page.number) for page in pages if page.unread]
    if not numbers:
        return ""
    more = f" and {len(numbers) - 20} more" if numbers[20:] else ""
    return f" Could not be read: page{'s'[: len(numbers) - 1]} {', '.join(numbers[:20])}{more}."


class DocumentError(Invalid):
    """A document that cannot be used.

    The message is one line for the model or a person: which document, what is wrong, what to do.
    """


class PicturesAlone(DocumentError):
    """A picture, or a PDF without any text: only a model that looks at it can read it."""

    def __init__(self, message: str, page_count: int = 1) -> None:
        super().__init__(message)
        self.page_count = page_count

    def placeholder_pages(self) -> list[Page]:
        """Return the pages for a model that can look at them."""
        text = unread_page_placeholder("a picture; view_image shows it")
        return [Page(number, text) for number in range(1, self.page_count + 1)]


def document_error_line(error: object) -> str:
    """Return an error's words on one line of bounded length."""
    words = " ".join(str(error).split()) or type(error).__name__
    return words if len(words) <= 160 else words[:157] + "..."


@dataclass(frozen=True)
class PageRanges:
    """Pages by their numbers, such as "3" or "2-5,8"."""

    ranges: tuple[tuple[int, int], ...]

    @classmethod
    def parse(cls, pages: str) -> "PageRanges":
        """Read the numbers and ranges. Raises ValueError."""
        matches = [_RANGE.match(part.strip()) for part in pages.split(",")]
        if not all(matches):
            raise ValueError(f'pages must be like "3" or "2-5,8", found {pages!r}.')
        return cls(tuple((int(m[1]), int(m[2] or m[1])) for m in matches if m))

    def __contains__(self, page: int) -> bool:
        return any(first <= page <= last for first, last in self.ranges)


def render_pages(pages: Iterable[Page]) -> str:
    """Return one text with a line `[page 3]` or `[page 3; label iii; section 1 Scope]` before each
    page.

    A line of a page that looks like such a mark gets a backslash before it. `parse_pages` is the
    exact inverse.
    """
    return "".join(f"{_page_mark(page)}\n{_escape_page_marks(page.text)}\n" for page in pages)


def _page_mark(page: Page) -> str:
    parts = [f"label {page.label}"] if page.label else []
    parts += [f"section {title}" for title in page.sections[:MAX_SECTIONS]]
    if page.sections[MAX_SECTIONS:]:
        parts.append(f"section {_MORE}")
    return f"[{'; '.join([f'page {page.number}', *parts])}]"


def page_mark_text(title: str) -> str:
    """Return a label or title fit for a page mark: one line, bounded, no `;[]`."""
    words = " ".join(title.translate(_NOT_IN_MARKS).split())
    return words if len(words) <= MAX_TITLE_CHARACTERS else words[: MAX_TITLE_CHARACTERS - 1] + "…"


def parse_pages(text: str) -> list[Page]:
    """Return the pages of a text made by `render_pages`.

    Raises `DocumentError` if it does not begin with a page mark.
    """
    if not text:
        return []
    pages: list[tuple[int, str, list[str]]] = []
    for line in text.removesuffix("\n").split("\n"):
        if mark := _MARK.fullmatch(line):
            pages.append((int(mark[1]), mark[2], []))
        elif not pages:
            raise DocumentError("the text kept for the document has no page marks; extract it anew")
        else:
            pages[-1][2].append(line[1:] if _ESCAPED.fullmatch(line) else line)
    return [_parse_text_page(number, parts, "\n".join(lines)) for number, parts, lines in pages]


def _parse_text_page(number: int, parts: str, text: str) -> Page:
    named = [part.partition(" ")[::2] for part in parts.split("; ")[1:]]
    label = next((value for name, value in named if name == "label"), "")
    return Page(number, text, label=label, sections=[v for name, v in named if name == "section"])


def _escape_page_marks(text: str) -> str:
    return "\n".join("\\" + line if _ESCAPED.fullmatch(line) else line for line in text.split("\n"))


def find_page(pages: Iterable[Page], number: int) -> Page:
    """Return the page with that number.

    Raises `DocumentError` naming the existing numbers, or if the page could not be read, since its
    placeholder is no text of the document.
    """
    page_list = list(pages)
    for page in page_list:
        if page.number == number:
            if page.unread:
                raise DocumentError(
                    f"page {number} could not be read, so nothing of it can be cited"
                )
            return page
    numbers = f"{page_list[0].number} to {page_list[-1].number}" if page_list else "none"
    raise DocumentError(f"there is no page {number}; the document's pages: {numbers}")


def find_page_section_starts(page: Page) -> list[tuple[int, str]]:
    """Return where each section of the page begins, in ascending order: offset and title.

    An empty title begins where the section is unknown.
    """
    starts: list[tuple[int, str]] = []
    end = 0
    for title in page.sections:
        if title == _MORE:
            # It is not known which of the unnamed sections begins where.
            return [*starts, (end, "")]
        words = r"\s+".join(re.escape(word) for word in title.removesuffix("…").split())
        heading = re.compile(rf"^[#* \t]*({words})", re.MULTILINE).search(page.text, end)
        if heading:
            # With its mark, so that the heading itself is in the section that it begins.
            starts.append((heading.start(), title))
            end = heading.end()
        elif not starts:
            # Usually true of the first one: its section began on an earlier page.
            starts.append((0, title))
    return starts


def section_before(starts: list[tuple[int, str]], offset: int) -> str:
    """Return the section that the last start up to the offset begins; empty if there is none."""
    return next((title for start, title in reversed(starts) if start <= offset), "")


PIXELS_TO_TOKEN = 750


@dataclass(frozen=True)
class Picture:
    data: bytes
    mime: str
    width: int
    height: int
    about: str
    """What it was made from: `PNG, 2560 x 1600`."""

    @property
    def tokens(self) -> int:
        """Return roughly how many tokens it costs; providers count differently."""
        return self.width * self.height // PIXELS_TO_TOKEN + 1


def page_span_text(pages: list[Page]) -> str:
    if not pages:
        return "none"
    first, last = pages[0].number, pages[-1].number
    return f"{first}" if first == last else f"{first}-{last}"


@dataclass(frozen=True, slots=True)
class Quality:
    """Notes on how a document was read; false if it was read well."""

    warnings: list[str] = field(default_factory=list)
    """Sentences for people and the model, one subject each."""
    pages: list[int] = field(default_factory=list)
    """Pages that look broken or could not be read."""
    is_unreliable: bool = False
    """Whether so much is broken that no statement about the document can be complete."""

    def __bool__(self) -> bool:
        return bool(self.warnings)

    def __str__(self) -> str:
        return " ".join(self.warnings)

    def as_json(self) -> str:
        return json.dumps(asdict(self), ensure_ascii=False, indent=2) + "\n"

    @classmethod
    def from_json(cls, text: str) -> "Quality":
        """The inverse of `as_json`. Raises ValueError for any other record."""
        try:
            return cls(**json.loads(text))
        except TypeError as error:
            raise ValueError(str(error)) from None


@dataclass(frozen=True, slots=True)
class ReadingResult:
    """The pages of a document, and facts from the reader that the text does not show."""

    pages: list[Page]
    guessed_encoding: str = ""
    """The guessed encoding of a text that declares none."""
    omitted_passages: dict[str, int] = field(default_factory=dict)
    """Number of passages left out, by the kind of mark that voids them."""
    quality: Quality = field(default_factory=Quality)
