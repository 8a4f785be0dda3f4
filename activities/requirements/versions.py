"""A new version of a document: what of an earlier job's requirements still stands in it.

What stands there unchanged keeps its id, status and decision in the store, and its sentences are
covered. What is changed or gone becomes suspect, and only that and what is new is worked on.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import Field, TypeAdapter, ValidationError
from sqlalchemy import ColumnElement, Connection, or_, select

from activities.checkpoints import Files, Root
from activities.documents import Page, find_quoted_passage
from activities.job.snapshot import Snapshot
from activities.requirements.citations import citation_fields
from activities.requirements.graph.graph_writes import REQUIREMENT
from activities.requirements.graph.interface import (
    GraphQuery,
    GraphQueryError,
    GraphUnavailableError,
)
from activities.requirements.graph.neighbours import requirement_neighbours
from activities.requirements.graph.selection import open_graph
from activities.requirements.requirement import Citation, Requirement
from activities.requirements.requirement_files import InvalidWorkspaceFile
from activities.requirements.requirement_rows import R, find_requirement_row, update_requirement_row
from activities.requirements.requirement_store import StoredRequirement, search_requirement_store
from activities.requirements.text.statements import statements_of
from activities.stores.relational_store import RelationalStore
from activities.stores.schema import REQUIREMENTS, storable_column_value
from activities.stores.store_errors import StoreUnavailableError
from activities.text.safe_text import as_readable_json
from activities.toolkit.tool_errors import ToolError
from activities.tools.workspace_documents import (
    document_digest,
    input_document_paths,
    read_workspace_document,
)
from protocol.data_model import Data
from protocol.short_text import count_noun, one_line

PATH = "requirements/kept.json"
CHANGES = "requirements/changes.md"
SAME_SENTENCE = 0.6
"""Share of a passage's words from which one that is like it is its changed form."""
SHOWN = 300
TASK = """
## A new version

These documents are a new version of what the job {replaces} worked on. {kept} of it stand there
unchanged: they are kept, and cover their sentences. Work only on what is left: the candidates are
what changed or is new. {changes} names the requirements that changed, with both wordings, and those
that are gone. A changed one is added anew, as the document says it now.
"""


class KeptRequirement(Data):
    """A requirement of an earlier job whose passages stand unchanged in the new version."""

    ref: str
    text: str
    force: str
    status: str
    citations: list[Citation]
    """In the new version."""


class ChangedRequirement(Data):
    """A requirement of an earlier job that no longer stands as it did."""

    ref: str
    text: str
    change: Literal["changed", "gone"]
    was: str
    """The passage in the earlier version."""
    now: str = ""
    """What stands there instead, if something does."""


class NewVersion(Data):
    """What a new version leaves of an earlier job's requirements."""

    replaces: str
    kept: list[KeptRequirement] = Field(default_factory=list)
    changed: list[ChangedRequirement] = Field(default_factory=list)


_FILE = TypeAdapter(NewVersion)


def read_new_version(files: Files) -> NewVersion | None:
    """Return what a job keeps of an earlier one; None if it replaces none.

    Raises:
        InvalidWorkspaceFile: The file is not in our format.
    """
    if files.entry(PATH) is None:
        return None
    try:
        return _FILE.validate_json(files.read(PATH))
    except ValidationError as error:
        raise InvalidWorkspaceFile(f"{PATH}: {error.errors()[0]['msg']}") from None


def compare_versions(
    earlier: Sequence[StoredRequirement], documents: Mapping[str, Sequence[Page]], replaces: str
) -> NewVersion:
    """Compare the passages of an earlier job's requirements with the documents of a new one."""
    result = NewVersion(replaces=replaces)
    for entry in earlier:
        requirement = entry.requirement
        found: list[Citation] = []
        lost: ChangedRequirement | None = None
        for citation in requirement.citations:
            path = _same_document(citation.document, list(documents))
            pages = documents[path] if path else []
            if moved := _find_passage(path, pages, citation):
                found.append(moved)
                continue
            now = _most_like(citation.quote, pages)
            lost = ChangedRequirement(
                ref=requirement.ref,
                text=requirement.text,
                change="changed" if now else "gone",
                was=citation.quote[:SHOWN],
                now=now,
            )
        if lost:
            result.changed.append(lost)
        else:
            result.kept.append(
                KeptRequirement(
                    ref=requirement.ref,
                    text=requirement.text,
                    force=requirement.force,
                    status=requirement.status,
                    citations=found,
                )
            )
    return result


def _same_document(path: str, paths: Sequence[str]) -> str:
    """Return the new version of a document: that of the same name, else the only one there is."""
    name = path.rpartition("/")[2]
    same = [each for each in paths if each.rpartition("/")[2] == name]
    return (same or (list(paths) if len(paths) == 1 else [""]))[0]


def _find_passage(path: str, pages: Sequence[Page], citation: Citation) -> Citation | None:
    """Return the citation at its new place, the page it was on first."""
    ordered = sorted(pages, key=lambda page: abs(page.number - citation.page))
    for page in ordered:
        if passage := find_quoted_passage(page.text, citation.quote):
            fields = citation_fields(path, list(pages), page, passage)
            return Citation.model_validate({"id": citation.id, **fields})
    return None


def _most_like(quote: str, pages: Sequence[Page]) -> str:
    """Return the sentence that has most words of the quote; empty if it has too few of them."""
    words = set(quote.lower().split())

    def shared(text: str) -> float:
        others = set(text.lower().split())
        return len(words & others) / max(1, len(words | others))

    texts = [each.full_text for each in statements_of(pages).in_order] if pages else []
    best = max(texts, key=shared, default="")
    return best if len(words & set(best.lower().split())) >= SAME_SENTENCE * len(words) else ""


def begin_new_version(root: Root, snapshot: Snapshot, job: str) -> list[str]:
    """Keep what still stands of the requirements of the job that this one replaces.

    The workspace gets the list, and the store and the graph say what is suspect. Returns notices
    for people.
    """
    replaces = snapshot.config.settings.replaces
    if not replaces:
        return []
    try:
        earlier = RelationalStore(root).read(lambda c: _requirements_of(c, replaces))
    except StoreUnavailableError as error:
        return [f"Nothing is kept of {replaces}: {error}"]
    if not earlier:
        return [f"Nothing is kept of {replaces}: the store has no requirement of it."]
    documents: dict[str, Sequence[Page]] = {}
    digests: dict[str, str] = {}
    for path in input_document_paths(snapshot.files):
        digests[path] = document_digest(snapshot.files, path)
        try:
            documents[path] = read_workspace_document(snapshot.files, path).pages
        except ToolError:
            continue
    version = compare_versions(earlier, documents, replaces)
    files = snapshot.files.write(
        PATH, as_readable_json(version.model_dump(exclude_none=True)).encode()
    )
    files = files.write(
        "instructions.md",
        files.read("instructions.md")
        + TASK.format(
            replaces=replaces, kept=count_noun(len(version.kept), "requirement"), changes=CHANGES
        ).encode(),
    )
    snapshot.files = files.write(CHANGES, version_page(version).encode())
    RelationalStore(root).run(lambda c: _mark_rows(c, job, version, digests))
    kept, changed = len(version.kept), len(version.changed)
    return [
        f"Of {count_noun(kept + changed, 'requirement')} of {replaces} {kept:,} stand unchanged; "
        f"suspect are {', '.join(each.ref for each in version.changed[:10]) or 'none'}.",
        *_mark_graph(root, snapshot, version),
    ]


def _requirements_of(connection: Connection, job: str) -> list[StoredRequirement]:
    """Return the requirements that a job made and those that it kept of earlier ones."""
    kept = [
        f"{row.job}/{row.id}"
        for row in connection.execute(select(R.job, R.id).where(_is_kept_by(job)))
    ]
    found = search_requirement_store(connection, job=job)
    # A suspect one is compared again: another job may have begun with this version and ended.
    return found + (search_requirement_store(connection, refs=kept) if kept else [])


def _is_kept_by(job: str) -> ColumnElement[bool]:
    return R.kept_by.contains(f" {job} ", autoescape=True)


def _mark_rows(
    connection: Connection, job: str, version: NewVersion, digests: Mapping[str, str]
) -> None:
    """Say in the store what the new version keeps and what became suspect."""
    for kept in version.kept:
        owner, _, id = kept.ref.rpartition("/")
        digest = digests.get(kept.citations[0].document) if kept.citations else None
        row = find_requirement_row(connection, kept.ref)
        jobs = dict.fromkeys([*((row and row.kept_by) or "").split(), job])
        values = {"digest": digest, "kept_by": f" {' '.join(jobs)} ", "suspect": None}
        update_requirement_row(connection, owner, id, values)
    for changed in version.changed:
        owner, _, id = changed.ref.rpartition("/")
        why = storable_column_value(suspicion(changed, job))
        update_requirement_row(connection, owner, id, {"suspect": why})


def suspicion(changed: ChangedRequirement, job: str) -> str:
    """Return why a requirement is suspect."""
    now = f"; there stands now: {changed.now}" if changed.now else ""
    return f"{changed.change} in the version of {job}{now}"


def _mark_graph(root: Root, snapshot: Snapshot, version: NewVersion) -> list[str]:
    """Mark what is suspect in the graph; return what hangs on it, as remarks."""
    schema = snapshot.config.graph_schema
    refs = [each.ref for each in version.changed]
    if not refs or REQUIREMENT not in schema.nodes:
        return []
    key = schema.nodes[REQUIREMENT].key
    try:
        related = requirement_neighbours(root, schema, refs)
        if related:
            with open_graph(root, schema) as graph:
                graph.write(
                    *(
                        GraphQuery(
                            f"MATCH (n:`{REQUIREMENT}`) WHERE n.`{key}` = $key "
                            "SET n.`suspect` = $why",
                            {"key": each.ref, "why": each.change},
                        )
                        for each in version.changed
                        if each.ref in related
                    )
                )
    except (GraphUnavailableError, GraphQueryError) as error:
        return [f"What hangs on the suspect ones in the graph is not known: {error}"]
    return [
        f"{ref} is suspect, and in the graph it has "
        + (", ".join(_relation_words(each) for each in relations) or "no relation")
        for ref, relations in related.items()
    ]


def _relation_words(relation: Mapping[str, object]) -> str:
    other = relation.get("to") or f"from {relation.get('from')}"
    return f"{relation['relation']} {other}"


def version_page(version: NewVersion) -> str:
    """Return the changes as a Markdown page."""
    lines = [f"# Changes since {version.replaces}", ""]
    lines.append(f"{count_noun(len(version.kept), 'requirement')} unchanged.")
    for kind in ("changed", "gone"):
        chosen = [each for each in version.changed if each.change == kind]
        lines += ["", f"## {kind.capitalize()}", ""]
        for each in chosen:
            lines.append(f"- {each.ref}: {one_line(each.text, SHOWN)}")
            lines.append(f"  - was: {one_line(each.was, SHOWN)}")
            lines += [f"  - is: {one_line(each.now, SHOWN)}"] if each.now else []
        lines += [] if chosen else ["None."]
    lines += [
        "",
        "What is new is in the list of candidates, and so is what a changed one says now.",
    ]
    return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class VersionDifference:
    """How the requirements of two jobs differ."""

    unchanged: list[str]
    suspect: list[tuple[str, str]]
    """Those of the earlier job that changed or are gone: name and why."""
    new: list[Requirement]
    """Those that the later job wrote itself."""


def version_difference(connection: Connection, earlier: str, later: str) -> VersionDifference:
    """Return how a later job's requirements differ from those of the one that it replaced."""
    of_both = select(REQUIREMENTS).where(
        R.withdrawn.is_(False), or_(R.job == earlier, _is_kept_by(earlier), _is_kept_by(later))
    )
    rows = connection.execute(of_both.order_by(R.job, R.id)).all()
    return VersionDifference(
        unchanged=[f"{row.job}/{row.id}" for row in rows if later in (row.kept_by or "").split()],
        suspect=[(f"{row.job}/{row.id}", row.suspect) for row in rows if row.suspect],
        new=[each.requirement for each in search_requirement_store(connection, job=later)],
    )


def kept_as_data(files: Files) -> list[dict[str, object]]:
    """Return the kept requirements as rows of `output/requirements.json`."""
    version = read_new_version(files)
    if version is None:
        return []
    return [
        {"id": each.ref, **json.loads(each.model_dump_json(exclude={"ref"}, exclude_none=True))}
        for each in version.kept
    ]
