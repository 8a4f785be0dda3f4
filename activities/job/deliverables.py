"""Deliverables that a job names when it completes: whether they say something of its own."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress

from activities.checkpoints import FileEntry, Files, FilesError, PathRefused
from activities.checkpoints import parse_path as parts_of
from activities.job.brief_statements import Statement, brief_statements
from activities.job.empty_content import empty_content_reason
from activities.job.snapshot import Snapshot
from activities.job.statement_checks import demanded_paths, find_named
from activities.text.statement_words import any_word
from protocol.endings import COMPLETION_FILE
from protocol.scope_ledger import ScopeItem, is_empty_reason, named_item_ids

MAX_NAMED = 20
MAX_LOOKED_AT = 500
"""Most files of a folder that are looked at; one with more says something."""
DOCUMENTS = "documents"
OUTPUT = "output"
OF_THE_JOB = ("instructions.md", "plan.md", "todos.yaml", "workspace.md")
MAX_COMPARED = 1_000_000
"""Bytes of a file that is compared with inputs by its words; a larger one is let pass."""
FEWEST_WORDS = 10
"""A text with fewer may be all names, which stay as they are in any language."""
MOST_ADDED = 3
"""Words, such as a title, beside which a text is still its input."""
MOST_ADDED_BYTES = 100
_HAS_OTHER_WORDS = re.compile(
    r"(?<!\bnot )(?<!\bnever )\b(?:translat(?:e|ing)|summari[sz](?:e|ing)|sum up|condense"
    r"|rephrase|paraphrase|übersetzen?|fasse|(?:write|create|draft) an? (?:\w+ )?"
    r"(?:translation|summary|essay|story|poem|review|analysis)"
    r"|(?:schreibe|erstelle|verfasse)n? eine (?:\w+ )?(?:zusammenfassung|übersetzung))\b"
    r"(?!\s+(?:\w+\s+)?(?:only|any|nur|etwaige\w*)\b)",
    re.IGNORECASE,
)
"""Asks for a text that has other words than its source, and not another form of it."""
_MAY_BE_SAME = any_word(
    r"cop(?:y|ies)|as (?:it|they) (?:is|are)|unless|if|where|otherwise|at the (?:top|start)"
    r"|wie (?:sie|es|er) (?:ist|sind)|kopier\w*|falls|wenn|sonst|wo|am anfang"
)


def list_missing_deliverables(snapshot: Snapshot, paths: list[str]) -> list[str]:
    if not paths:
        return []
    brief = snapshot.read_text("instructions.md")
    problems = {path: _deliverable_problem(snapshot, path, brief) for path in paths}
    problems |= _copies(snapshot, [path for path in paths if not problems[path]], brief)
    return [f"{path[:200] or '(empty)'}: {why}" for path, why in problems.items() if why][
        :MAX_NAMED
    ]


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
    """Yield the files that the instructions demand; of those of which one is enough, the first."""
    path = "instructions.md"
    for statement in brief_statements(snapshot.read_text(path), path):
        for group in demanded_paths(statement.text, statement.paths):
            found = [each.path for name in group if (each := find_named(snapshot.files, name))]
            there = [each for each in found if not each.startswith(f"{DOCUMENTS}/")]
            yield from ((each, statement) for each in there or [_plain_path(group[0])])


def _deliverable_problem(snapshot: Snapshot, path: str, brief: str) -> str | None:
    files = snapshot.files
    try:
        entry = files.entry(path)
        if entry is None:
            return "does not exist"
        if not entry.path:
            return "is the whole workspace; name files or folders in it"
        if entry.path in OF_THE_JOB and entry.path.partition(".")[0] not in brief.lower():
            return "is a file of the job itself; name what the job made"
        if entry.kind != "folder":
            return empty_content_reason(path, files.read(path), brief)
        if not files.children(entry.path):
            return empty_content_reason("", b"", brief) and "is an empty folder"
        # Links are not followed, since they may lead anywhere.
        within = (each for each in files.walk(entry.path) if each.kind == "file")
        for number, each in enumerate(within):
            says = not empty_content_reason(each.path, files.read_entry(each), brief)
            if says or number >= MAX_LOOKED_AT:
                return None
        return "holds nothing but empty files"
    except (FilesError, PathRefused) as problem:
        return str(problem)


def _copies(snapshot: Snapshot, paths: Sequence[str], brief: str) -> dict[str, str]:
    """Return which deliverables have an input's words though other words are asked for.

    A sentence speaks of the files that it names, and of all if it names none. One of them that has
    words of its own may be what is meant.
    """
    copies: dict[str, str] = {}
    inputs = _inputs(snapshot)
    for each in brief_statements(brief, "instructions.md"):
        if not _HAS_OTHER_WORDS.search(each.text) or _MAY_BE_SAME.search(each.text):
            continue
        named = map(_plain_path, each.paths)
        meant = [path for path in named if _entry(snapshot.files, path)] if each.paths else paths
        sources = [_source_of(snapshot.files, path, inputs) for path in meant]
        if all(sources):
            copies |= dict(zip(meant, sources, strict=True))
    return {
        path: f"has the very words of {copies[path]}; name what the job made" for path in copies
    }


def _plain_path(path: str) -> str:
    with suppress(PathRefused):
        return "/".join(parts_of(path))
    return path


def _entry(files: Files, path: str) -> FileEntry | None:
    with suppress(FilesError, PathRefused):
        return files.entry(files.resolve_links(path))
    return None


def _inputs(snapshot: Snapshot) -> list[FileEntry]:
    """Return the instructions and the documents that the job did not write."""
    changed = {entry.path for entry in _walk(snapshot.changes, DOCUMENTS)}
    given = [each for each in _walk(snapshot.files, DOCUMENTS) if each.path not in changed]
    brief = _entry(snapshot.files, "instructions.md")
    files = [each for each in (brief, *given) if each is not None and each.kind == "file"]
    return [each for each in files if each.size <= MAX_COMPARED]


def _source_of(files: Files, path: str, inputs: Sequence[FileEntry]) -> str:
    """Return the input whose words a file has; of a folder, if each of its files is such a one."""
    entry, source = _entry(files, path), ""
    if entry is not None and entry.kind == "folder":
        within = [each.path for each in files.walk(entry.path) if each.kind == "file"]
        for name in within[:MAX_LOOKED_AT]:
            if not (source := _source_of(files, name, inputs)):
                break
    elif entry is not None and entry.size <= MAX_COMPARED:
        words = _words(files, entry)
        for each in inputs if words.count(" ") >= FEWEST_WORDS - 1 else []:
            if each.size <= 2 * entry.size <= 4 * each.size + MOST_ADDED_BYTES:
                given = _words(files, each)
                added = words.count(" ") - given.count(" ")
                if given and given in words and added <= MOST_ADDED:
                    return each.path
    return source


def _words(files: Files, entry: FileEntry) -> str:
    text = files.read_entry(entry).decode(errors="replace")
    return " ".join(re.findall(r"[^\W_]+", text.casefold()))


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
