"""A requirement: one model for `final.json`, the store and the tools."""

import hashlib
from typing import Any, Literal

from pydantic import Field

from activities.requirements.text.candidate_sentences import Force
from activities.text.safe_text import as_readable_json
from protocol.data_model import Data

RequirementKind = Literal["functional", "data", "process", "legal", "quality", "constraint"]
RequirementStatus = Literal["draft", "accepted", "rejected", "duplicate"]
RequirementVerdict = Literal["accepted", "rejected", "duplicate"]
Verification = Literal["test", "inspection", "analysis", "demonstration"]
Priority = Literal["high", "medium", "low"]

MAX_TEXT = 4000
MAX_SECTION = 200
MAX_CITATIONS = 20


def place_word(document: str) -> str:
    """Return what the numbers of its text count: `page`, or `part` where the file has no pages."""
    return "page" if document.lower().endswith((".pdf", ".docx", ".txt", ".md")) else "part"


class Citation(Data):
    """A quoted passage and its place."""

    id: str = Field(min_length=1, max_length=100)
    document: str = Field(min_length=1, max_length=1000)
    page: int = Field(ge=1, le=10_000_000)
    label: str | None = Field(None, max_length=100)
    """The printed page number, if it differs from `page`."""
    section: str | None = Field(None, max_length=MAX_SECTION)
    """Number of the passage's section, or its title if it has no number."""
    source_id: str | None = Field(None, max_length=MAX_SECTION)
    """What the document calls the item of the passage: `6.2.1`, `AU-02 a`, `§ 257 (2)`."""
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
        return f"{place_word(self.document)} {self.page}{label}{section}"


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
    digest: str | None = Field(None, max_length=64)
    """SHA-256 of its source as it was read."""
    rationale: str | None = Field(None, max_length=MAX_TEXT)
    """Why it is demanded, as the source gives it."""
    verification: Verification | None = None
    """How its fulfilment can be shown."""
    priority: Priority | None = None
    job: str = ""
    """Not in `final.json`, so that a workspace's content does not depend on the job's id."""

    @property
    def ref(self) -> str:
        """The id that is unique among all jobs, such as `job-1/REQ-001`."""
        return f"{self.job}/{self.id}"

    @property
    def source_id(self) -> str:
        """What its document calls it; empty if the document gives it no number."""
        return next((each.source_id for each in self.citations if each.source_id), "")

    @property
    def final_json(self) -> str:
        return as_readable_json(self.content)

    @property
    def content(self) -> dict[str, Any]:
        content = self.model_dump(exclude={"job"})
        for name in ("digest", "rationale", "verification", "priority"):
            if content[name] is None:
                del content[name]
        content["citations"] = [each.model_dump(exclude_none=True) for each in self.citations]
        return content


def normalized_words(text: str) -> str:
    """Return a text without its layout and capitals, to compare it with another."""
    return " ".join(text.split()).casefold()


def requirement_fingerprint(requirement: Requirement) -> str:
    """Return a hash of text, quotes and document names, ignoring case and white space."""
    passages = [
        text
        for each in requirement.citations
        for text in (each.quote, each.url or each.document.rpartition("/")[2])
    ]
    words = [normalized_words(text) for text in (requirement.text, *passages)]
    return hashlib.sha256("\0".join(words).encode(errors="replace")).hexdigest()
