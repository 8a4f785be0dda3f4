"""The candidates of all documents, as JSON for programs and Markdown for people."""

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from activities.checkpoints import Files
from activities.requirements.requirement_files import read_workspace_list
from activities.requirements.text.candidate_sentences import Candidate
from activities.requirements.text.numbering import NumberedEntry
from activities.text.safe_text import as_readable_json
from protocol.short_text import one_line

JSON_PATH = "candidates/candidates.json"
MARKDOWN_PATH = "candidates/candidates.md"


class ListedCandidate(Candidate):
    """A candidate, with any fields an agent has added."""

    model_config = ConfigDict(extra="allow")


class ListedEntry(BaseModel):
    """An entry that the document numbers."""

    id: str
    page: int
    section: str = ""
    passages: list[str]
    rest: str = ""
    """What of it stands on the next page."""


class DocumentCandidates(BaseModel):
    """The candidates of one document."""

    model_config = ConfigDict(extra="allow")

    document: str
    candidates: list[ListedCandidate]
    numbers: list[ListedEntry] = Field(default_factory=list)


_FILE = TypeAdapter(list[DocumentCandidates])


def read_candidates(files: Files) -> list[DocumentCandidates]:
    """Return the documents and their candidates, in the order in which documents were searched.

    Raises:
        InvalidWorkspaceFile: The file does not have our format; the message names the place.
    """
    return read_workspace_list(files, JSON_PATH, _FILE) or []


def put_candidates(
    files: Files,
    document: str,
    candidates: list[Candidate],
    entries: list[NumberedEntry],
    threshold: float,
) -> Files:
    """Write both files, with these as the document's candidates in place of earlier ones.

    The Markdown file lists the entries that the document numbers, and candidates below the
    threshold, under headings of their own.

    Raises:
        InvalidWorkspaceFile: As `read_candidates`.
    """
    entry = DocumentCandidates(
        document=document,
        candidates=[ListedCandidate(**each.model_dump()) for each in candidates],
        numbers=[ListedEntry.model_validate(each, from_attributes=True) for each in entries],
    )
    every = {each.document: each for each in read_candidates(files)} | {document: entry}
    content = [each.model_dump() for each in every.values()]
    files = files.write(JSON_PATH, as_readable_json(content).encode())
    return files.write(MARKDOWN_PATH, _candidates_page(list(every.values()), threshold).encode())


def describe_candidate(candidate: Candidate, most: int | None = None) -> str:
    """Describe a candidate on one line, its text cut to `most` characters."""
    section = f", {one_line(candidate.section, 60)}" if candidate.section else ""
    rest = f" [goes on on p.{candidate.page + 1}: {candidate.rest}]" if candidate.rest else ""
    lead = ""
    if candidate.form == "item" and candidate.lead_in:
        lead = f" [after p.{candidate.lead_page}: {one_line(candidate.lead_in, most or 600)}]"
    text = " ".join(f"{candidate.text}{rest}".split()) if not most else candidate.text
    text = f"{one_line(text, most) if most else text}{lead}"
    return (
        f"{candidate.id} · p.{candidate.page}{section} · {candidate.force} · "
        f"{candidate.confidence:.2f} · "
        f"{text}"
    )


def describe_entry(entry: NumberedEntry | ListedEntry, most: int | None = None) -> str:
    """Describe an entry that the document numbers on one line, cut to `most` characters."""
    text = " ¶ ".join(" ".join(passage.split()) for passage in entry.passages)
    text += f" [goes on on p.{entry.page + 1}: {entry.rest}]" if entry.rest else ""
    return f"number {entry.id} · p.{entry.page} · {one_line(text, most) if most else text}"


def _candidates_page(every: list[DocumentCandidates], threshold: float) -> str:
    lines = ["# Candidates"]
    for each in every:
        strong = [candidate for candidate in each.candidates if candidate.confidence >= threshold]
        weak = [candidate for candidate in each.candidates if candidate.confidence < threshold]
        lines += [
            "",
            f"## {each.document}",
            "",
            *(f"- {describe_candidate(candidate)}" for candidate in strong),
        ]
        lines += [] if strong else ["None."]
        if each.numbers:
            lines += ["", f"### Numbers of {each.document}", ""]
            lines += [f"- {describe_entry(entry)}" for entry in each.numbers]
        if weak:
            lines += ["", f"### Below confidence {threshold:g}", ""]
            lines += [f"- {describe_candidate(candidate)}" for candidate in weak]
    return "\n".join(lines) + "\n"
