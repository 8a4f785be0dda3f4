"""What a document calls its items: the number of an entry, or of a list item below its section."""

import re
from dataclasses import dataclass, field

SECTION_NUMBER = re.compile(
    r"\s*(?:#+\s*)?(§+\s*\d+\s?[a-z]?(?=\s|$)|(?:Art(?:icle|ikel)?\.?|Section|Chapter|Kapitel|"
    r"Abschnitt)\s+\d+\w?|(?:\d{1,3}|[A-Z])(?:\.\d{1,3})+|\d{1,2}(?=\.?\s))"
)
ENTRY = re.compile(
    # What a catalogue calls its entries: V6.2.1, AU-2(1), REQ_12, req~x~1, 6.2.1, [FR-3].
    r"\s*[\[(`*]{0,3}("
    r"[a-z]{2,12}~[\w.-]{1,80}~\d{1,4}"
    r"|[^\W\d_]{1,12}(?:[-_.~/][^\W\d_]{1,30}){0,8}[-_.~/]?\d{1,6}[a-z]{0,2}"
    # Each further part begins with a sign of its own, so that nothing can be divided in two ways.
    r"(?:[-_.~/(]\(?[^\W_]{1,20}\)?){0,8}"
    r"|\d{1,4}(?:\.\d{1,4}){1,6}(?:[-_.]?[a-z]\b)?"
    r")[\])`*]{0,3}[:.]?(?=\s|$)"
)
_LABELLED = re.compile(
    r"\s*((?:[A-Z\u00c4\u00d6\u00dc][\w-]* ){1,3}\d{1,3}(?:\.\d{1,3}){1,4})(?=\s|:|$)"
)
_MARK = re.compile(r"\s*(\(?(?:\d{1,3}[a-z]?|[A-Za-z]|[ivxlc]{1,6})[.)]|[^\w\s(§])\s")
_ROMAN = re.compile(r"[ivxlc]+")


@dataclass
class ItemNumbers:
    """Where in the nested lists of a document its blocks are, in order."""

    _section: str = ""
    _row: str = ""
    """The number of the present row."""
    _levels: list[tuple[str, str]] = field(default_factory=list)
    """Form and mark of the item on each level; the form of its sisters is the same."""

    def number_block(
        self, first_line: str, section: str, *, item: bool, row: str | None
    ) -> tuple[str, int]:
        """Return what the document calls a block, and how many lists it is in.

        Args:
            first_line: With its mark.
            section: Number or title of its section.
            item: Whether it is an item of a list, a numbered clause or a table cell.
            row: The first cell of its row, if it is a cell; empty where the row above goes on.
        """
        if section != self._section:
            self._section, self._levels = section, []
        if row is not None:
            if row:
                named = ENTRY.fullmatch(row)
                self._row = named[1] if named else ""
            return self._row, 1
        if (entry := ENTRY.match(first_line)) and (item or _is_entry(entry[1])):
            self._levels = [("", entry[1])]
            return entry[1], 1
        mark = _MARK.match(first_line)
        if not item or mark is None:
            # A paragraph ends the lists, but not the paragraph of a law that it is in.
            del self._levels[1 if self._levels and self._levels[0][0] == "(1)" else 0 :]
            return self._compose(), len(self._levels)
        form = self._form(mark[1])
        forms = [known for known, _ in self._levels]
        if form in forms:
            del self._levels[forms.index(form) :]
        self._levels.append((form, mark[1]))
        return self._compose(), len(self._levels)

    def _form(self, mark: str) -> str:
        inner = mark.strip("().")
        kind = "1" if inner[:1].isdigit() else "a" if inner.islower() else "A"
        if not inner.isalnum():
            return mark
        letter = mark.replace(inner, "a", 1)
        before = next((known for form, known in reversed(self._levels) if form == letter), "")
        if (
            kind == "a"
            and _ROMAN.fullmatch(inner)
            and before.strip("().")[:1] != chr(ord(inner[0]) - 1)
        ):
            kind = "i"
        return mark.replace(inner, kind, 1)

    def _compose(self) -> str:
        """Return the number of the present item, with that of its section."""
        marks = [mark for form, mark in self._levels if form and mark.strip("().").isalnum()]
        if not marks:
            return self._levels[0][1] if self._levels and not self._levels[0][0] else ""
        section = self._levels[0][1] if not self._levels[0][0] else section_number(self._section)
        tail = "".join(mark if mark.startswith("(") else f"{mark.rstrip('.)')}." for mark in marks)
        return f"{section} {re.sub(r'[)](?=[^(])', ') ', tail).rstrip('.')}".strip()


def section_number(title: str) -> str:
    """Return the number at the beginning of a section's title; empty if it has none."""
    match = SECTION_NUMBER.match(title) or ENTRY.match(title) or _LABELLED.match(title)
    return " ".join(match[1].split()) if match else ""


def _is_entry(name: str) -> bool:
    """Whether a name is that of an entry, whatever it stands before."""
    return "~" in name or (any(map(str.isalpha, name)) and not name.isalpha())
