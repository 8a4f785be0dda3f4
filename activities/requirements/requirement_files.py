"""The requirements of a workspace in `requirements/req_NNN/`.

Agents may edit these files, so everything read here is validated.
"""

import json
import re
from collections.abc import Iterator
from typing import NamedTuple, TypeVar

from pydantic import TypeAdapter, ValidationError

from activities.checkpoints import Files
from activities.checkpoints.journal import Cache
from activities.requirements.requirement import Requirement
from activities.toolkit.tool_errors import ToolError
from protocol.job_state import JobState

FOLDER = "requirements"
CITATIONS = "citations"
MAX_BYTES = 1_000_000
T = TypeVar("T")
_NAME = re.compile(r"^requirements/req_([0-9]{3,9})$")
_blobs: Cache[str, str] = Cache(50_000, lambda _: 1)
"""Blob id of `final.json` by the id of its folder's tree; empty if there is none. All are listed
with every new requirement."""


class ReadableRequirement(NamedTuple):
    """What of a `final.json` is compared, even if the file cannot be used otherwise."""

    status: str
    text: str
    candidate: str
    """Id of the candidate that it is from; empty if it names none."""
    citations: tuple[tuple[str, str], ...]
    """Document and quote of each, in order."""


_readable: Cache[str, ReadableRequirement] = Cache(50_000, lambda _: 1)


class InvalidWorkspaceFile(ToolError):
    """A file that an agent can edit is unusable; the message says which and why."""


def read_workspace_list(files: Files, path: str, form: TypeAdapter[T]) -> T | None:
    """Return a list that the tools keep; None if there is none yet.

    Raises:
        InvalidWorkspaceFile: It does not have our format; the message names the place.
    """
    if files.entry(path) is None:
        return None
    try:
        return form.validate_json(files.read(path))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the file"
        raise InvalidWorkspaceFile(
            f"{path}: {where}: {first['msg']}. Mend it, or move it away."
        ) from None


def list_requirement_files(files: Files) -> dict[str, tuple[str, str]]:
    """Map each requirement's id to the path and blob id of its `final.json`."""
    top = files.entry(FOLDER)
    if top is None or top.kind != "folder":
        return {}
    final_files = {}
    for entry in files.children(FOLDER):
        match = _NAME.match(entry.path)
        if not match or entry.kind != "folder":
            continue
        path = f"{entry.path}/final.json"
        blob = _blobs.get(entry.id)
        if blob is None:
            final = files.entry(path)
            blob = _blobs.put(entry.id, final.id if final and final.kind == "file" else "")
        if blob:
            final_files[f"REQ-{match[1]}"] = (path, blob)
    return final_files


def final_requirement_path(id: str) -> str:
    """Return the path for an id: `requirements/req_001/final.json` for REQ-001."""
    return f"{FOLDER}/req_{id.removeprefix('REQ-')}/final.json"


def read_requirement_file(files: Files, path: str, requirement_id: str, job: str) -> Requirement:
    """Read one requirement and fill in the job.

    Raises:
        InvalidWorkspaceFile: It is malformed, or cites what no citation tool recorded.
    """
    entry = files.entry(path)
    if entry is None or entry.size > MAX_BYTES:
        raise InvalidWorkspaceFile(f"{path} is missing or larger than {MAX_BYTES:,} bytes")
    try:
        requirement = Requirement.model_validate_json(files.read(path))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the file"
        raise InvalidWorkspaceFile(f"{path}: {where}: {first['msg']}") from None
    if requirement.id != requirement_id:
        raise InvalidWorkspaceFile(f"{path}: id: must be {requirement_id}, as its folder says")
    for citation in requirement.citations:
        citation_path = f"{CITATIONS}/{citation.id}.json"
        citation_entry = None if "/" in citation.id else files.entry(citation_path)
        if citation_entry is None or citation_entry.kind != "file":
            raise InvalidWorkspaceFile(f"{path}: there is no citation {citation.id}")
        fields = citation.model_dump(exclude_none=True)
        if json.loads(files.read(citation_path)) != fields:
            raise InvalidWorkspaceFile(
                f"{path}: citation {citation.id} differs from {citation_path}"
            )
    requirement.job = job
    return requirement


def readable_requirements(files: Files) -> Iterator[tuple[str, ReadableRequirement]]:
    """Yield each requirement in the workspace that is readable, by id."""
    for name, (path, blob) in list_requirement_files(files).items():
        known = _readable.get(blob)
        if known is None:
            try:
                known = _readable.put(blob, _read_final(files.read(path)))
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
                continue
        yield name, known


def _read_final(final: bytes) -> ReadableRequirement:
    content = json.loads(final)
    cited = content.get("citations") or []
    return ReadableRequirement(
        str(content["status"]),
        str(content["text"]),
        str(content.get("candidate") or ""),
        tuple((str(each["document"]), str(each["quote"])) for each in cited),
    )


def note_requirement_numbers(state: JobState, files: Files) -> None:
    """Raise the state's highest number to that of the workspace's requirement folders.

    Reports and traces name requirements by their ids, so a deleted one leaves its id unused.
    """
    top = files.entry(FOLDER)
    if top is None or top.kind != "folder":
        return
    for entry in files.children(FOLDER):
        if match := _NAME.match(entry.path):
            state.last_requirement = max(state.last_requirement, int(match[1]))
