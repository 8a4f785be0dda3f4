"""What every part of document handling shares: a page of text, and why there is none."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a document: its number, counted from 1 as in the file, and its plain text."""

    number: int
    text: str


class DocumentError(ValueError):
    """A document that cannot be used. The message is one line for the model or the person:
    which document, what is wrong with it and what to do."""
