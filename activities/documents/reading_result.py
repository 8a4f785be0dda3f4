"""What came of reading a document: its pages, and what is to be said of them."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field

from activities.documents.pages import Page


@dataclass(frozen=True, slots=True)
class Quality:
    """What is to be said of how a document was read; false if it was read well."""

    warnings: list[str] = field(default_factory=list)
    """Sentences for people and the model, each about one thing."""
    pages: list[int] = field(default_factory=list)
    """Pages that look broken or could not be read."""
    is_unreliable: bool = False
    """Whether so much is broken that nothing complete can be said of the document."""

    def __bool__(self) -> bool:
        return bool(self.warnings)

    def __str__(self) -> str:
        return " ".join(self.warnings)

    def as_json(self) -> str:
        return json.dumps(asdict(self), ensure_ascii=False, indent=2) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Quality:
        """Of `as_json`; raises ValueError for what is no such record."""
        try:
            return cls(**json.loads(text))
        except TypeError as error:
            raise ValueError(str(error)) from None


@dataclass(frozen=True, slots=True)
class ReadingResult:
    """The pages of a document, with what the reader knows and the text does not show."""

    pages: list[Page]
    guessed_encoding: str = ""
    """The encoding that a text was taken for that declares none."""
    omitted_passages: dict[str, int] = field(default_factory=dict)
    """How many passages are not in the text because the document shows them as void, by kind."""
    quality: Quality = field(default_factory=Quality)
