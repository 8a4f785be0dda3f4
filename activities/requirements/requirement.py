"""A requirement: one model for `final.json`, for the store and for what tools show."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from activities.requirements.text.candidates import Force
from activities.text.plain import as_json
from protocol.state import Data

RequirementKind = Literal["functional", "data", "process", "legal", "quality", "constraint"]
RequirementStatus = Literal["draft", "accepted", "rejected", "duplicate"]
RequirementVerdict = Literal["accepted", "rejected", "duplicate"]

MAX_TEXT = 4000
MAX_SECTION = 200
MAX_CITATIONS = 20


class Citation(Data):
    """Words that were found where it says."""

    id: str = Field(min_length=1, max_length=100)
    document: str = Field(min_length=1, max_length=1000)
    page: int = Field(ge=1, le=10_000_000)
    label: str | None = Field(None, max_length=100)
    """What is printed on the page as its number, where that differs."""
    section: str | None = Field(None, max_length=MAX_SECTION)
    """Number, else title, of the section that the passage stands in."""
    quote: str = Field(min_length=1, max_length=MAX_TEXT)
    """The page's own words, on one line."""
    url: str | None = Field(None, max_length=2000)
    """Of a web page; `document` is then the copy that was fetched."""
    accessed: str | None = Field(None, max_length=40)
    """Date on which the web page was read."""

    @property
    def place(self) -> str:
        """`page 18 (8), 2.2.1`: where a reader finds the passage."""
        label = f" ({self.label})" if self.label else ""
        section = f", {self.section}" if self.section else ""
        return f"page {self.page}{label}{section}"


class Requirement(Data):
    """One testable statement, and where it comes from."""

    id: str = Field(pattern=r"^REQ-\d{3,9}$")
    """Given by the system; one in its job."""
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
    """The `ref` of another."""
    candidate: str | None = Field(None, max_length=1000)
    """Id of the candidate it is from."""
    job: str = ""
    """Not in `final.json`: a workspace is of one job, and its content does not depend on the
    job's id."""

    @property
    def ref(self) -> str:
        """`job-1/REQ-001`: names it among those of all jobs."""
        return f"{self.job}/{self.id}"

    @property
    def final_json(self) -> str:
        """The content of its `final.json`."""
        return as_json(self.content)

    @property
    def content(self) -> dict[str, Any]:
        """What `final.json` says, as data."""
        content = self.model_dump(exclude={"job"})
        content["citations"] = [each.model_dump(exclude_none=True) for each in self.citations]
        return content
