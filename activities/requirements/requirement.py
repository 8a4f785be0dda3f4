"""A requirement: one model for `final.json`, the store and the tools."""

from __future__ import annotations

import hashlib
from typing import Any, Literal

from pydantic import Field

from activities.requirements.text.candidate_sentences import Force
from activities.text.safe_text import as_readable_json
from protocol.data_model import Data

RequirementKind = Literal["functional", "data", "process", "legal", "quality", "constraint"]
RequirementStatus = Literal["draft", "accepted", "rejected", "duplicate"]
RequirementVerdict = Literal["accepted", "rejected", "duplicate"]

MAX_TEXT = 4000
MAX_SECTION = 200
MAX_CITATIONS = 20


class Citation(Data):
    """A quoted passage and its place."""

    id: str = Field(min_length=1, max_length=100)
    document: str = Field(min_length=1, max_length=1000)
    page: int = Field(ge=1, le=10_000_000)
    label: str | None = Field(None, max_length=100)
    """The printed page number, if it differs from `page`."""
    section: str | None = Field(None, max_length=MAX_SECTION)
    """Number of the passage's section, or its title if it has no number."""
    quote: str = Field(min_length=1, max_length=MAX_TEXT)
    """The page's own words, on one line."""
    url: str | None = Field(None, max_length=2000)
    """Address of a web page; `document` is then the fetched copy."""
    accessed: str | None = Field(None, max_length=40)
    """Date on which the web page was fetched."""

    @property
    def place(self) -> str:
        """Where a reader finds the passage, such as `page 18 (8), 2.2.1`."""
        label = f" ({self.label})" if self.label else ""
        section = f", {self.section}" if self.section else ""
        return f"page {self.page}{label}{section}"


class Requirement(Data):
    """One testable statement and its sources."""

    id: str = Field(pattern=r"^REQ-\d{3,9}$")
    """Assigned by the system; unique in its job."""
    text: str = Field(min_length=1, max_length=MAX_TEXT)
    force: Force = "must"
    type: RequirementKind
    source: str = Field(max_length=1000)
    """The document of the first citation."""
    citations: list[Citation] = Field(min_length=1, max_length=MAX_CITATIONS)
    reasoning: str = Field(max_length=MAX_TEXT)
    confidence: float = Field(ge=0, le=1)
    status: RequirementStatus = "draft"
    duplicate_of: str | None = Field(None, max_length=2000)
    """`ref` of the original."""
    candidate: str | None = Field(None, max_length=1000)
    """Id of the candidate it came from."""
    job: str = ""
    """Not in `final.json`, so that a workspace's content does not depend on the job's id."""

    @property
    def ref(self) -> str:
        """The id that is unique among all jobs, such as `job-1/REQ-001`."""
        return f"{self.job}/{self.id}"

    @property
    def final_json(self) -> str:
        """The text of its `final.json`."""
        return as_readable_json(self.content)

    @property
    def content(self) -> dict[str, Any]:
        """The content of `final.json` as data."""
        content = self.model_dump(exclude={"job"})
        content["citations"] = [each.model_dump(exclude_none=True) for each in self.citations]
        return content


def requirement_fingerprint(requirement: Requirement) -> str:
    """Return a hash of text, first quote and document name, ignoring case and white space."""
    first = requirement.citations[0]
    name = first.url or first.document.rpartition("/")[2]
    words = [" ".join(text.split()).casefold() for text in (requirement.text, first.quote, name)]
    return hashlib.sha256("\0".join(words).encode(errors="replace")).hexdigest()
