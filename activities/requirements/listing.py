"""The candidates of all documents, in one file for programs and one for people."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from activities.checkpoints import Files
from activities.requirements.folder import Unusable
from activities.requirements.text.candidates import Candidate
from activities.text.plain import as_json
from protocol.text import one_line

JSON = "candidates/candidates.json"
MARKDOWN = "candidates/candidates.md"


class Listed(Candidate):
    """A candidate as an agent may have annotated it."""

    model_config = ConfigDict(extra="allow")


class Identified(BaseModel):
    """The candidates of one document."""

    model_config = ConfigDict(extra="allow")

    document: str
    candidates: list[Listed]


_FILE = TypeAdapter(list[Identified])


def read(files: Files) -> list[Identified]:
    """The documents identified so far, the first one first.

    Raises:
        Unusable: the file is not as `put` writes it; says where and why.
    """
    if files.entry(JSON) is None:
        return []
    try:
        return _FILE.validate_json(files.read(JSON))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the file"
        raise Unusable(f"{JSON}: {where}: {first['msg']}") from None


def put(files: Files, document: str, found: list[Candidate], threshold: float) -> Files:
    """Both files with these as the document's candidates, in the place of those it had.

    In the one for people those below the threshold follow under a heading of their own.

    Raises:
        Unusable: as `read`.
    """
    said = [each.model_dump() for each in found]
    made = Identified.model_validate({"document": document, "candidates": said})
    every = {each.document: each for each in read(files)} | {document: made}
    content = [each.model_dump() for each in every.values()]
    files = files.write(JSON, as_json(content).encode())
    return files.write(MARKDOWN, _page(list(every.values()), threshold).encode())


def describe_candidate(candidate: Candidate, most: int | None = None) -> str:
    """A line on the candidate, with its text or the first characters of it."""
    section = f", {one_line(candidate.section, 60)}" if candidate.section else ""
    rest = f" [goes on on p.{candidate.page + 1}: {candidate.rest}]" if candidate.rest else ""
    text = " ".join(f"{candidate.text}{rest}".split())
    return (
        f"{candidate.id} · p.{candidate.page}{section} · {candidate.force} · "
        f"{candidate.confidence:.2f} · "
        f"{one_line(text, most) if most else text}"
    )


def _page(every: list[Identified], threshold: float) -> str:
    lines = ["# Candidates"]
    for each in every:
        strong = [one for one in each.candidates if one.confidence >= threshold]
        weak = [one for one in each.candidates if one.confidence < threshold]
        lines += [
            "",
            f"## {each.document}",
            "",
            *(f"- {describe_candidate(one)}" for one in strong),
        ]
        lines += [] if strong else ["None."]
        if weak:
            lines += ["", f"### Below confidence {threshold:g}", ""]
            lines += [f"- {describe_candidate(one)}" for one in weak]
    return "\n".join(lines) + "\n"
