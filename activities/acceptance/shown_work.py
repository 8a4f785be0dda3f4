"""What a reviewer is shown of a job: statements, evidence, brief, and the work in bounds.

It never has the agent's own summary, notes or confidence.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from activities.acceptance.reviewer_quotes import QuotedWork
from activities.checkpoints import FileEntry, FilesError, PathRefused
from activities.checkpoints.volatile_paths import volatile_matcher
from activities.job.snapshot import Snapshot
from activities.phases.phase_diff import phase_diff
from activities.text.safe_text import replace_surrogates
from activities.text.tokens import clip_to_tokens, count_tokens
from activities.toolkit.path_ownership import is_work_path, work_files
from activities.toolkit.tool_errors import ToolError
from activities.tools.workspace_documents import read_workspace_document
from protocol.contract import numbered_statements
from protocol.evidence import Evidence
from protocol.scope_ledger import ScopeItem
from protocol.short_text import first_few, one_line

WORK_TOKENS = 12_000
STATEMENT_TOKENS = 9_000
PART_TOKENS = 2_000
LEAST_TOKENS = 150
"""Fewest tokens that a shown file gets; without room for them it is only named."""
MAX_SHOWN_BYTES = 2_000_000
MAX_SEARCHED_BYTES = 20_000_000
"""Most bytes of files that are not shown in which quotes are looked for."""
MAX_DOCUMENTS = 3
DOCUMENTS = (".docx", ".pdf")
TEXT_LENGTHS = (400, 200, 100, 60)
"""Characters of a statement, as many of them as fit."""
CUT = "the rest of this file is not shown"
ANSWER = """\
The job changed no file. Its answer, which shows only what asks for an answer in words:

{answer}"""


@dataclass
class ShownWork:
    text: str
    quoted: QuotedWork
    is_diff: bool = False
    paths: list[str] = field(default_factory=list)


def statement_lines(scope: Sequence[ScopeItem]) -> str:
    for length in TEXT_LENGTHS:
        text = "\n".join(_statement_lines(scope, length))
        if count_tokens(text) <= STATEMENT_TOKENS:
            return text
    return clip_to_tokens(text, STATEMENT_TOKENS, "the other statements count as not judged")


def evidence_line(evidence: Evidence | None) -> str:
    """Return what the system saw; what the agent claims of itself is left out."""
    if evidence is None:
        return "nothing of its own yet"
    unclaimed = evidence.model_copy(update={"claim": ""})
    if evidence.kind == "look":
        return f"{unclaimed.line}a look, which changed nothing".strip()
    return unclaimed.line


def shown_work(
    snapshot: Snapshot,
    deliverables: Sequence[str],
    answer: str,
    start: Snapshot | None,
) -> ShownWork:
    """Return a repository's diff, the files themselves of any other job, or its answer."""
    entries = {entry.path: entry for entry in work_files(snapshot)}
    brief = "\n".join(_brief_texts(snapshot))
    others = (
        text for entry in _within_bytes(entries.values()) if (text := _file_text(snapshot, entry))
    )
    before = {entry.path: entry.id for entry in work_files(start)} if start else {}
    if before == {path: entry.id for path, entry in entries.items()}:
        said = ANSWER.format(answer=_fenced(clip_to_tokens(answer, PART_TOKENS, CUT)))
        return ShownWork(said, QuotedWork([], others, brief, answer))
    if (snapshot.repository or snapshot.link) and start:
        is_volatile = volatile_matcher(snapshot.config.shell.volatile)
        diff = phase_diff(
            start.files,
            snapshot.files,
            is_left_out=lambda path: not is_work_path(path) or is_volatile(path),
            most=WORK_TOKENS,
        )
        # A quote of a removed line is one of the diff; its marks are no part of a quote.
        unmarked = re.sub(r"^[+ -]", "", diff, flags=re.MULTILINE)
        return ShownWork(_fenced(diff), QuotedWork([diff, unmarked], others, brief), is_diff=True)
    first = list(_first_paths(snapshot, deliverables, entries))
    changed = [path for path, entry in entries.items() if before.get(path) != entry.id]
    order = list(dict.fromkeys([*first, *changed]))
    text, shown = _shown_files(snapshot, [entries[path] for path in order])
    return ShownWork(text, QuotedWork(shown, others, brief), paths=order)


def _statement_lines(scope: Sequence[ScopeItem], length: int) -> Iterator[str]:
    last: ScopeItem | None = None
    for id_, item, statement in numbered_statements(scope):
        if item is not last:
            if last is not None:
                yield f"  seen for {last.id}: {evidence_line(last.evidence)}"
            if len(item.statements) > 1:
                yield f"{item.id}: {one_line(item.text, length)}"
            last = item
        place = f"[{statement.place}] " if statement.place else ""
        yield f"{id_} {place}{one_line(statement.text, length)}"
        if item.status == "dropped":
            yield f"  left out by the agent: {one_line(item.reason, 200)}"
        if statement.finding:
            yield f"  you found before: {statement.verdict}. {one_line(statement.finding, 200)}"
    if last is not None:
        yield f"  seen for {last.id}: {evidence_line(last.evidence)}"


def _brief_texts(snapshot: Snapshot) -> Iterator[str]:
    yield snapshot.read_text("instructions.md")
    places = {
        statement.place.rpartition(":")[0]
        for _, _, statement in numbered_statements(snapshot.state.scope)
    }
    for path in sorted(places - {"", "instructions.md"}):
        try:
            pages = read_workspace_document(snapshot.files, path).pages
        except (FilesError, PathRefused, ToolError):
            continue
        yield from (page.text for page in pages)


def _first_paths(
    snapshot: Snapshot, deliverables: Sequence[str], entries: dict[str, FileEntry]
) -> Iterator[str]:
    scope = [item for item in snapshot.state.scope if not item.is_step]
    named = [path for item in scope for statement in item.statements for path in statement.paths]
    evidence_files = [
        path for item in scope if item.evidence for path in reversed(item.evidence.files)
    ]
    for name in (*deliverables, *named, *evidence_files):
        path = name.removeprefix("./").removeprefix("/workspace/").rstrip("/")
        if path in entries:
            yield path
        else:
            yield from (each for each in entries if each.startswith(f"{path}/"))


def _shown_files(snapshot: Snapshot, entries: Sequence[FileEntry]) -> tuple[str, list[str]]:
    parts, texts, omitted = [], list[str](), list[str]()
    remaining, documents = WORK_TOKENS, 0
    for number, entry in enumerate(entries):
        share = max(LEAST_TOKENS, remaining // (len(entries) - number))
        is_document = entry.path.lower().endswith(DOCUMENTS)
        if remaining < LEAST_TOKENS:
            omitted.append(entry.path)
            continue
        if is_document and documents < MAX_DOCUMENTS:
            documents += 1
            text = _document_text(snapshot, entry)
        else:
            text = _file_text(snapshot, entry)
        if text is None:
            parts.append(f"## {entry.path}\n\nnot text, {entry.size:,} bytes: not shown")
            remaining -= 20
            continue
        texts.append(text)
        shown = clip_to_tokens(text, share, CUT)
        parts.append(f"## {entry.path}\n\n{_fenced(shown)}")
        remaining -= count_tokens(shown) + 20
    if omitted:
        parts.append(f"Not shown for want of room: {first_few(omitted, 40)}")
    return "\n\n".join(parts) or "The job has no file of its own.", texts


def _document_text(snapshot: Snapshot, entry: FileEntry) -> str | None:
    try:
        reading = read_workspace_document(snapshot.files, entry.path)
    except (FilesError, PathRefused, ToolError):
        return None
    return replace_surrogates("\n\n".join(page.text for page in reading.pages))


def _file_text(snapshot: Snapshot, entry: FileEntry) -> str | None:
    if entry.size > MAX_SHOWN_BYTES:
        return None
    data = snapshot.files.read_entry(entry)
    if b"\0" in data[:8000]:
        return None
    return data.decode("utf-8-sig", errors="replace")


def _within_bytes(entries: Iterable[FileEntry]) -> Iterator[FileEntry]:
    """Yield the first files that have at most `MAX_SEARCHED_BYTES` together."""
    total = 0
    for entry in islice(entries, 5_000):
        total += entry.size
        if total > MAX_SEARCHED_BYTES:
            return
        yield entry


def _fenced(text: str) -> str:
    longest = max((len(marks) for marks in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}\n{text.rstrip()}\n{fence}"
