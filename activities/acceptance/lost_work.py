"""Whether the work that completed an item is still there when the job ends.

A file that was renamed, moved or merged into others is found by its content: what it said has to be
in some file of the job's work, or its translation. Of several files that completed an item those
count that speak of it.
"""

import re
from contextlib import suppress
from difflib import SequenceMatcher
from functools import cached_property
from pathlib import PurePosixPath

from activities.checkpoints import CheckpointMissing, FileEntry, Files, FilesError, PathRefused
from activities.job.empty_content import empty_content_reason
from activities.job.snapshot import Snapshot, snapshot_workspace
from activities.job.statement_checks import statement_problems
from activities.phases.phase_tags import phase_tag_commits
from activities.projects.verifier_runs import files_named
from activities.text.statement_words import any_word, is_verb, statement_words, words_of
from activities.toolkit.path_ownership import work_files
from activities.toolkit.tool_errors import ToolError
from activities.tools.workspace_documents import read_workspace_document
from protocol.evidence import MOST_SEEN, NAME_CHARACTERS, Evidence, is_condition
from protocol.scope_ledger import ScopeItem
from protocol.short_text import first_few

KEPT_LINES = 0.5
KEPT_WORDS = 0.8
"""Share of a lost file's lines, or words, in the work from which on its content was moved."""
GUTTED_WORDS = 0.1
"""Share of a file's words up to which another text in its place is no later draft of it."""
FEWEST_WORDS = 20
"""Fewest different words of a text that can be gutted; a shorter one may become shorter still."""
MAX_READ = 2_000_000
"""Bytes of a file whose content is compared."""
MAX_SEARCHED = 20_000_000
"""Bytes of the work in which the content of lost files is looked for."""
SPEAKS = 0.5
"""Share of the best file's words of an item from which on another file speaks of it as well."""
MOST_DOCUMENTS = 5
"""Most documents, such as a PDF, whose text is read to find the content of lost files."""
_DOCUMENT = re.compile(r"\.(?:pdf|docx|html?)$", re.IGNORECASE)
_WORD = re.compile(r"\w+")
_MARK = re.compile(r"^\s*([#*+|>`-]*)\S")
_LOSES = any_word(
    r"deletes?d?|removed?|renamed?|moved?|drop(?:ped)?|clean(?:ed)?|tid(?:y|ied)|purged?|discard(?:ed)?|"
    r"erased?|revert(?:ed)?|undone?|restored?|reset|empt(?:y|ied)|(?:lösch|entfern|räum)(?:en?|t)|"
    r"(?:ge|auf(?:ge)?)(?:lösch|räum)t|aufräumen|verschiebe|benenne|leere"
)
"""The verb of a statement whose work may be that a file is no longer there, or as it was before."""


class KeptWork:
    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._workspaces: dict[str, Files | None] = {}

    def problems(self, item: ScopeItem) -> list[str]:
        """Return what code finds amiss in what an item names or was seen for it, a clause each."""
        lost = self._lost_evidence(item)
        return [*statement_problems(self._snapshot.files, item), *([lost] if lost else [])]

    def _lost_evidence(self, item: ScopeItem) -> str:
        """Return that nothing is left of the files that completed an item; else an empty text."""
        evidence = item.evidence
        if item.status != "completed" or item.is_step or evidence is None or not evidence.files:
            return ""
        said = " ".join([item.text, *(statement.text for statement in item.statements)])
        lost = {path for path in evidence.files if self._is_lost(path, evidence, said)}
        if not lost or _asks_to_lose(said):
            return ""
        checks = [each for each in evidence.checks if not is_condition(each)]
        ran = {path for each in checks for path in files_named(each.rpartition(": exit code")[0])}
        paths = [path for path in evidence.files if path not in ran]
        scores = {path: len(self._said_in(path, said, evidence)) for path in paths}
        best = max(scores.values(), default=0)
        # A command may have done what no file shows; the review judges that.
        counted = paths if best or not checks else []
        counted = [path for path in counted if scores[path] >= SPEAKS * best]
        if not counted or not lost.issuperset(counted):
            return ""
        return (
            f"nothing is left of the work seen for it: {first_few(counted, 3)} "
            f"{'was' if len(counted) == 1 else 'were'} deleted, emptied or put back"
        )

    def _said_in(self, path: str, said: str, evidence: Evidence) -> set[str]:
        """Return an item's words that a file had when it completed it, or when the phase began."""
        began = phase_tag_commits(self._snapshot.checkpoints).get(evidence.phase, "")
        for then in map(self._workspace, (evidence.commit, began)):
            if then and (entry := _entry(then, path)) and entry.size <= MAX_READ:
                path += f" {then.read_entry(entry).decode(errors='replace')}"
                break
        grammar = statement_words().grammar
        return (_words(said) & _words(path)) - grammar.determiners - grammar.subordinators

    def _is_lost(self, path: str, evidence: Evidence, said: str) -> bool:
        if len(path) >= NAME_CHARACTERS:
            return False  # Its name is cut.
        entry, start = _entry(self._snapshot.files, path), self._start_entry(path)
        if entry is None and start is not None:
            return False  # The job took away what was there before.
        then = self._workspace(evidence.commit)
        if then is None:
            return False
        before = _entry(then, path)
        if entry is not None and (start is None or start.id != entry.id):
            if before is not None and before.id == entry.id:
                return False
            now = self._content(entry)
            return bool(empty_content_reason(path, now)) or (
                before is not None
                and max(before.size, entry.size) <= MAX_READ
                and _is_gutted(lost := then.read_entry(before), now)
                and not self._is_elsewhere(lost)
            )
        if before is None:
            # It was deleted as the work, or made for a time; of very many files not all are named.
            is_work = entry is None and self._said_in(path, said, evidence)
            return len(evidence.files) < MOST_SEEN and not is_work
        if start is not None and start.id == before.id:
            return True
        lost = then.read_entry(before) if before.size <= MAX_READ else b"\0"
        return not (self._is_elsewhere(lost) or self._has_version(path, lost, then, evidence))

    def _has_version(self, path: str, lost: bytes, then: Files, evidence: Evidence) -> bool:
        """Return whether the work has a translation of a lost text, or another form of it."""
        evidences = [each.evidence for each in self._snapshot.state.scope if not each.is_step]
        others = {name for each in evidences if each and each != evidence for name in each.files}
        for entry in work_files(self._snapshot):
            known = _entry(then, entry.path)
            if entry.size > MAX_READ or entry.path == path or (known and known.id == entry.id):
                continue
            data, is_form = self._content(entry), _stem(entry.path) == _stem(path)
            if b"\0" in data[:8000]:
                # A form that cannot be read, such as a scan.
                is_version = is_form and len(data) >= len(lost) // 2
            else:
                is_version = (is_form or entry.path not in others) and _has_same_shape(lost, data)
            if is_version:
                return True
        return False

    def _is_elsewhere(self, lost: bytes) -> bool:
        """Return whether a lost file's content may be in the work under other names."""
        lines, words = _lines_and_words(lost.decode(errors="replace"))
        kept_lines, kept_words = self._remaining
        return (
            b"\0" in lost
            or len(lines & kept_lines) >= KEPT_LINES * len(lines)
            or len(words & kept_words) >= KEPT_WORDS * len(words)
        )

    @cached_property
    def _remaining(self) -> tuple[set[str], set[str]]:
        texts, total, documents = [], 0, 0
        for entry in work_files(self._snapshot):
            start = self._start_entry(entry.path)
            if entry.size > MAX_READ or (start and start.id == entry.id):
                continue
            total += entry.size
            if total > MAX_SEARCHED:
                break
            if _DOCUMENT.search(entry.path) and documents < MOST_DOCUMENTS:
                documents += 1
                with suppress(FilesError, PathRefused, ToolError):
                    pages = read_workspace_document(self._snapshot.files, entry.path).pages
                    texts += [page.text for page in pages]
            texts.append(self._content(entry).decode(errors="replace"))
        return _lines_and_words("\n".join(texts))

    def _content(self, entry: FileEntry) -> bytes:
        return self._snapshot.files.read_entry(entry)

    def _start_entry(self, path: str) -> FileEntry | None:
        """Return a file of the repository as it was when the job began."""
        link = self._snapshot.repository
        if link is None or not path.startswith(f"{link.folder}/"):
            return None
        start = Files(self._snapshot.files.store, link.tree)
        return _entry(start, path[len(link.folder) + 1 :])

    def _workspace(self, commit: str) -> Files | None:
        if commit not in self._workspaces:
            try:
                self._workspaces[commit] = snapshot_workspace(self._snapshot.checkpoints, commit)
            except (CheckpointMissing, ValueError):
                self._workspaces[commit] = None
        return self._workspaces[commit]


def _entry(files: Files, path: str) -> FileEntry | None:
    try:
        entry = files.entry(path)
    except (FilesError, PathRefused):
        return None
    return entry if entry is not None and entry.kind == "file" else None


def _is_gutted(then: bytes, now: bytes) -> bool:
    """Return whether a word or two stand in the place of a text."""
    _, words_then = _lines_and_words(then.decode(errors="replace"))
    _, words_now = _lines_and_words(now.decode(errors="replace"))
    return len(words_then) >= FEWEST_WORDS and len(words_now) <= GUTTED_WORDS * len(words_then)


def _asks_to_lose(said: str) -> bool:
    """Return whether the first verb of a statement is one after which files may be gone."""
    words = (w for w in words_of(said) if (is_verb(w) and w != "be") or _LOSES.fullmatch(w))
    return _LOSES.fullmatch(next(words, "")) is not None


def _stem(path: str) -> str:
    return PurePosixPath(path).name.partition(".")[0].casefold()


def _has_same_shape(text: bytes, other: bytes) -> bool:
    """Return whether a text has the length, headings, lists and tables of another."""
    ratio = SequenceMatcher(None, _line_marks(text), _line_marks(other)).ratio()
    return len(text) <= 2 * len(other) <= 4 * len(text) and ratio >= KEPT_WORDS


def _line_marks(text: bytes) -> list[str]:
    return [str(_MARK.findall(line)) for line in text.decode(errors="replace").splitlines()]


def _words(text: str) -> set[str]:
    return _lines_and_words(text.replace("_", " "))[1]


def _lines_and_words(text: str) -> tuple[set[str], set[str]]:
    folded = text.casefold()
    lines = {" ".join(_WORD.findall(line)) for line in folded.splitlines()} - {""}
    return lines, {word for word in _WORD.findall(folded) if len(word) > 2}
