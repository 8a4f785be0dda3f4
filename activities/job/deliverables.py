"""Deliverables that a job names when it completes: whether they say something of its own."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress

from activities.checkpoints import FileEntry, Files, FilesError, PathRefused, diff_files
from activities.checkpoints import parse_path as parts_of
from activities.job.brief_statements import Statement, brief_statements
from activities.job.empty_content import empty_content_reason
from activities.job.snapshot import Snapshot
from protocol.endings import COMPLETION_FILE
from protocol.scope_ledger import ScopeItem, is_empty_reason, named_item_ids

MAX_NAMED = 20
MAX_LOOKED_AT = 500
"""Most files of a folder that are looked at; one with more says something."""
MAX_INPUTS = 20_000
"""Most files of a repository that a deliverable is compared with."""
DOCUMENTS = "documents"
OUTPUT = "output"
MAX_FOLDED = 1_000_000
"""Bytes of a file that is compared with inputs by its words."""
_COPIES = re.compile(
    r"\b(?:cop(?:y|ies)(?!.(?:editor|writer)s?)|move[sd]?|unchanged|as (?:it|they) (?:is|are)"
    r"|kopier\w*|(?:this|these) (?:brief|instructions?))\b",
    re.I,
)
_HAS_OTHER_WORDS = re.compile(
    r"\b(?:translat(?:e|ing)|summari[sz](?:e|ing)|sum up|condense|rephrase|paraphrase|übersetzen?"
    r"|fasse|write an? (?:\w+ )?(?:translation|summary|essay|story|poem|review|analysis))\b",
    re.I,
)
"""Asks for a text that has other words than its source, and not another form of it."""


def list_missing_deliverables(snapshot: Snapshot, paths: list[str]) -> list[str]:
    if not paths:
        return []
    inputs = _Inputs(snapshot)
    return [
        f"{path[:200] or '(empty)'}: {why}"
        for path in paths
        if (why := _deliverable_problem(snapshot, inputs, path))
    ][:MAX_NAMED]


def list_unnamed_deliverables(
    snapshot: Snapshot, paths: Sequence[str], unresolved: Sequence[str]
) -> list[str]:
    """Return up to 20 files that a job which names no deliverable made or was asked for.

    What a project or a repository takes over, and a typed result, are handed over by themselves;
    beside a typed result only what was asked for is missed.
    """
    if paths or snapshot.link:
        return []
    typed = snapshot.config.result_schema is not None
    system_files = {COMPLETION_FILE, *([snapshot.config.result_path] if typed else [])}
    named = {
        entry.path: "the job made it"
        for entry in ([] if typed else _walk(snapshot.changes, OUTPUT))
        if snapshot.files.entry(entry.path) is not None
    }
    if not snapshot.repository:
        for each in _asked_for(snapshot):
            there = "is asked for" if snapshot.files.entry(each[0]) else "is asked for and missing"
            named.setdefault(each[0], f"{there}, line {each[1].line} of {each[1].path}")
    return [
        f"{path[:200]} ({why})"
        for path, why in named.items()
        if path not in system_files and not is_named_unresolved(path, path, unresolved)
    ][:MAX_NAMED]


def _asked_for(snapshot: Snapshot) -> Iterable[tuple[str, Statement]]:
    path = "instructions.md"
    for statement in brief_statements(snapshot.read_text(path), path):
        for named in statement.paths:
            with suppress(PathRefused):
                yield "/".join(parts_of(named)), statement


def _deliverable_problem(snapshot: Snapshot, inputs: _Inputs, path: str) -> str | None:
    files = snapshot.files
    try:
        entry = files.entry(path)
        if entry is None:
            return "does not exist"
        if not entry.path:
            return "is the whole workspace; name files or folders in it"
        if entry.kind == "folder":
            return _deliverable_folder_problem(files, inputs, entry)
        content = files.read(path)
        named = files.entry(files.resolve_links(path)) or entry
        return empty_content_reason(path, content) or inputs.copied(named)
    except (FilesError, PathRefused) as problem:
        return str(problem)


def _deliverable_folder_problem(files: Files, inputs: _Inputs, folder: FileEntry) -> str | None:
    if not files.children(folder.path):
        return "is an empty folder"
    copied = ""
    # Links are not followed, since they may lead anywhere.
    entries = [each for each in inputs.own_files(folder) if each.kind == "file"]
    if not entries and inputs.holds(folder):
        return "is unchanged since the job began; name what the job made"
    for number, entry in enumerate(entries):
        if number >= MAX_LOOKED_AT:
            return None
        if not empty_content_reason(entry.path, files.read_entry(entry)):
            why = inputs.copied(entry)
            if why is None:
                return None
            copied = copied or f"{entry.path} {why}"
    if copied:
        return f"holds nothing of the job's own: {copied}"
    return "holds nothing but empty files"


class _Inputs:
    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._link = snapshot.repository
        self._names: dict[str, str] | None = None

    def holds(self, folder: FileEntry) -> bool:
        return self._before(folder.path) is not None

    def own_files(self, folder: FileEntry) -> Iterable[FileEntry]:
        """Yield the files of a folder; of one in the repository, those that the job changed."""
        files = self._snapshot.files
        before = self._before(folder.path)
        if before is None:
            return files.walk(folder.path)
        changes = diff_files(before, files.subfolder(folder.path))
        changed = (f"{folder.path}/{each.path}" for each in changes if each.new)
        return (entry for path in changed if (entry := files.entry(path)))

    def copied(self, entry: FileEntry) -> str | None:
        """Return of which input a file is a copy, as the end of a sentence; None if of none."""
        if self._names is None:
            self._names = self._read_names()
        same = self._names.get(entry.id)
        name = same or self._source_in_other_form(entry)
        if name is None or self._is_asked_for(entry.path, _COPIES):
            return None
        if not same:
            return f"has the very words of {name}; name what the job made of it"
        if name == entry.path:
            return "was there before the job and is unchanged; name what the job made"
        return f"is an unchanged copy of {name}; name what the job made of it"

    def _before(self, path: str) -> Files | None:
        link = self._link
        if link is None or not f"{path}/".startswith(f"{link.folder}/"):
            return None
        start = Files(self._snapshot.files.store, link.tree)
        with suppress(FilesError, PathRefused):
            return start.subfolder(path[len(link.folder) + 1 :]) if path != link.folder else start
        return None

    def _read_names(self) -> dict[str, str]:
        """Return the paths of inputs by their content's id; what the job changed is none."""
        names: dict[str, str] = {}
        if self._link:
            start = Files(self._snapshot.files.store, self._link.tree)
            for _, entry in zip(range(MAX_INPUTS), start.walk(), strict=False):
                names[entry.id] = f"{self._link.folder}/{entry.path}"
        brief = self._snapshot.files.entry("instructions.md")
        names |= {brief.id: brief.path} if brief is not None else {}
        changed = {entry.path for entry in _walk(self._snapshot.changes, DOCUMENTS)}
        for entry in _walk(self._snapshot.files, DOCUMENTS):
            if entry.kind == "file" and entry.path not in changed:
                names[entry.id] = entry.path
        return names

    def _source_in_other_form(self, entry: FileEntry) -> str | None:
        """Return the document whose words a file has, though others are asked for."""
        if entry.size > MAX_FOLDED or not self._is_asked_for(entry.path, _HAS_OTHER_WORDS):
            return None
        files, words = self._snapshot.files, None
        for each in _walk(files, DOCUMENTS):
            if each.kind == "file" and entry.size <= 2 * each.size <= 4 * entry.size:
                words = words or _words_in(files.read_entry(entry))
                if words and words == _words_in(files.read_entry(each)):
                    return each.path
        return None

    def _is_asked_for(self, path: str, how: re.Pattern[str]) -> bool:
        return any(
            named == path and how.search(each.text) is not None
            for named, each in _asked_for(self._snapshot)
        )


def _words_in(content: bytes) -> list[str]:
    return re.findall(r"\w+", content.decode(errors="replace").casefold())


def _walk(files: Files, folder: str) -> Iterable[FileEntry]:
    entry = files.entry(folder)
    return files.walk(folder) if entry is not None and entry.kind == "folder" else []


MIN_WORDS = 2
"""Words that an entry of `unresolved` must have besides the name to count as a reason."""


def is_named_unresolved(name: str, text: str, entries: Sequence[str]) -> bool:
    """Return whether an entry names this and says more than its own text."""
    pattern = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)", re.IGNORECASE)
    return any(
        pattern.search(entry)
        and len(re.findall(r"\w{2,}", pattern.sub(" ", entry.replace(text, " ")))) >= MIN_WORDS
        for entry in entries
    )


def explained_items(items: Sequence[ScopeItem], entries: Sequence[str]) -> set[str]:
    """Return the ids that entries name first and say something of: naming all explains one."""
    texts = {item.id: item.text for item in items}
    explained = set[str]()
    for entry in entries:
        for name in named_item_ids(entry, texts)[:1]:
            reason = re.sub(rf"(?<!\w){name}(?!\w)", " ", entry).replace(texts[name], " ")
            if not is_empty_reason(reason):
                explained.add(name)
    return explained
