"""The result of reading a document: its pages, and notes on the reading."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field

from activities.documents.pages import Page


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
    def from_json(cls, text: str) -> Quality:
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
