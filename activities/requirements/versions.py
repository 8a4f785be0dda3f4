"""A new version of a document: what of an earlier job's requirements still stands in it.

What stands there unchanged keeps its id, status and decision in the store, and its sentences are
covered. What is changed or gone becomes suspect, and only that and what is new is worked on.
"""

from collections.abc import Mapping, Sequence
from typing import Literal

from pydantic import Field, TypeAdapter
from sqlalchemy import ColumnElement, Connection, or_, select

from activities.checkpoints import Files, Root
from activities.documents.pages import Page
from activities.documents.quotes import find_quoted_passage
from activities.job.snapshot import Snapshot
from activities.requirements.citations import citation_fields
from activities.requirements.graph import open_graph
from activities.requirements.graph.graph_writes import REQUIREMENT
from activities.requirements.graph.interface import (
    GraphQuery,
    GraphQueryError,
    GraphUnavailableError,
)
from activities.requirements.graph.neighbours import requirement_neighbours
from activities.requirements.requirement import Citation
from activities.requirements.requirement_files import read_workspace_list
from activities.requirements.requirement_store import (
    R,
    StoredRequirement,
    find_requirement_row,
    search_requirement_store,
    update_requirement_row,
)
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


Change = Literal["changed", "gone"]


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
    change: Change
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
    return read_workspace_list(files, PATH, _FILE)


def compare_versions(
    earlier: Sequence[StoredRequirement], documents: Mapping[str, Sequence[Page]], replaces: str
) -> NewVersion:
    """Compare the passages of an earlier job's requirements with the documents of a new one."""
    result = NewVersion(replaces=replaces)
    for requirement in (entry.requirement for entry in earlier):
        fields = {"ref": requirement.ref, "text": requirement.text}
        moved_citations: list[Citation] = []
        lost: ChangedRequirement | None = None
        for citation in requirement.citations:
            path = _same_document(citation.document, list(documents))
            pages = documents[path] if path else []
            if moved := _find_passage(path, pages, citation):
                moved_citations.append(moved)
                continue
            now = _most_like(citation.quote, pages)
            change: Change = "changed" if now else "gone"
            lost = ChangedRequirement(**fields, change=change, was=citation.quote[:SHOWN], now=now)
        if lost:
            result.changed.append(lost)
        else:
            status = {"force": requirement.force, "status": requirement.status}
            result.kept.append(KeptRequirement(**fields, **status, citations=moved_citations))
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
    unchanged, changed = len(version.kept), len(version.changed)
    return [
        f"Of {count_noun(unchanged + changed, 'requirement')} of {replaces} {unchanged:,} stand "
        f"unchanged; suspect are {', '.join(each.ref for each in version.changed[:10]) or 'none'}.",
        *_mark_graph(root, snapshot, version),
    ]


def _requirements_of(connection: Connection, job: str) -> list[StoredRequirement]:
    """Return the requirements that a job made and those that it kept of earlier ones."""
    refs = [
        f"{row.job}/{row.id}"
        for row in connection.execute(select(R.job, R.id).where(_is_kept_by(job)))
    ]
    rows = search_requirement_store(connection, job=job)
    # A suspect one is compared again: another job may have begun with this version and ended.
    return rows + (search_requirement_store(connection, refs=refs) if refs else [])


def _is_kept_by(job: str) -> ColumnElement[bool]:
    return R.kept_by.contains(f" {job} ", autoescape=True)


def _mark_rows(
    connection: Connection, job: str, version: NewVersion, digests: Mapping[str, str]
) -> None:
    """Say in the store what the new version keeps and what became suspect."""
    for requirement in version.kept:
        owner, _, id = requirement.ref.rpartition("/")
        digest = digests.get(requirement.citations[0].document) if requirement.citations else None
        row = find_requirement_row(connection, requirement.ref)
        jobs = dict.fromkeys([*((row and row.kept_by) or "").split(), job])
        values = {"digest": digest, "kept_by": f" {' '.join(jobs)} ", "suspect": None}
        update_requirement_row(connection, owner, id, values)
    for changed in version.changed:
        owner, _, id = changed.ref.rpartition("/")
        now = f"; there stands now: {changed.now}" if changed.now else ""
        why = storable_column_value(f"{changed.change} in the version of {job}{now}")
        update_requirement_row(connection, owner, id, {"suspect": why})


def _mark_graph(root: Root, snapshot: Snapshot, version: NewVersion) -> list[str]:
    """Mark what is suspect in the graph; return what hangs on it, as remarks."""
    schema = snapshot.config.graph_schema
    if REQUIREMENT not in schema.nodes:
        return []
    node = f"MATCH (n:`{REQUIREMENT}`) WHERE n.`{schema.nodes[REQUIREMENT].key}` = $key"
    try:
        related = requirement_neighbours(root, schema, [each.ref for each in version.changed])
        marks = [
            GraphQuery(f"{node} SET n.`suspect` = $why", {"key": each.ref, "why": each.change})
            for each in version.changed
            if each.ref in related
        ]
        if marks:
            with open_graph(root, schema) as graph:
                graph.write(*marks)
    except (GraphUnavailableError, GraphQueryError) as error:
        return [f"What hangs on the suspect ones in the graph is not known: {error}"]
    return [
        f"{ref} is suspect, and in the graph it has "
        + (
            ", ".join(
                f"{each['relation']} {each.get('to') or 'from ' + str(each.get('from'))}"
                for each in relations
            )
            or "no relation"
        )
        for ref, relations in related.items()
    ]


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


def version_difference(
    connection: Connection, earlier: str, later: str
) -> tuple[list[str], dict[str, str], dict[str, str]]:
    """Compare the requirements of a job with those of the one that it replaced.

    Returns the names of those that stand unchanged; of the earlier ones that changed or are gone,
    each with the reason; and of those that the later job wrote itself, each with its text.
    """
    of_both = select(REQUIREMENTS).where(
        R.withdrawn.is_(False), or_(R.job == earlier, _is_kept_by(earlier), _is_kept_by(later))
    )
    rows = connection.execute(of_both.order_by(R.job, R.id)).all()
    new = [each.requirement for each in search_requirement_store(connection, job=later)]
    return (
        [f"{row.job}/{row.id}" for row in rows if later in (row.kept_by or "").split()],
        {f"{row.job}/{row.id}": row.suspect for row in rows if row.suspect},
        {each.ref: each.text for each in new},
    )


def version_as_data(files: Files) -> list[dict[str, object]]:
    """Return the kept requirements as rows of `output/requirements.json`."""
    version = read_new_version(files)
    return [
        {"id": each.ref, **each.model_dump(mode="json", exclude={"ref"}, exclude_none=True)}
        for each in (version.kept if version else [])
    ]
