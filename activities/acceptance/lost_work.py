"""Whether the work that completed an item is still there when the job ends.

A file that was renamed, moved or merged into others is found by its content: what it said has to be
in some file of the job's work.
"""

from __future__ import annotations

import re
from functools import cached_property

from activities.acceptance.work_files import work_files
from activities.checkpoints import CheckpointMissing, FileEntry, Files, FilesError, PathRefused
from activities.job.empty_content import empty_content_reason
from activities.job.snapshot import Snapshot, snapshot_workspace
from activities.job.statement_checks import statement_problems
from activities.text.statement_words import any_word
from protocol.evidence import MOST_SEEN, NAME_CHARACTERS, Evidence, is_condition
from protocol.scope_ledger import ScopeItem
from protocol.short_text import first_few

KEPT_LINES = 0.5
KEPT_WORDS = 0.8
"""Share of a lost file's lines, or words, in the work from which on its content was moved."""
MAX_READ = 2_000_000
"""Bytes of a file whose content is compared."""
MAX_SEARCHED = 20_000_000
"""Bytes of the work in which the content of lost files is looked for."""
_WORD = re.compile(r"\w+")
_ASKS_TO_LOSE = any_word(
    r"delet\w*|remov\w*|renam\w*|mov(?:e[ds]?|ing)|drop\w*|clean\w*|tid(?:y|ied)|purge\w*|"
    r"merg\w*|combin\w*|replac\w*|convert\w*|split\w*|eras\w*|discard\w*|revert\w*|"
    r"undo\w*|restor\w*|reset\w*|empt(?:y|ied)|temporar\w*|lösch\w*|entfern\w*|"
    r"verschieb\w*|umbenenn\w*|aufräum\w*|räum\w*|ersetz\w*|wiederherstell\w*|"
    r"zusammenführ\w*|leere\w*|temporär\w*"
)
"""Words of an item whose work may be that a file is no longer there, or as it was before."""


class KeptWork:
    """The work of a job at its end, in which the evidence of its items is looked for."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._workspaces: dict[str, Files | None] = {}

    def problems(self, item: ScopeItem) -> list[str]:
        """Return what code finds amiss in an item, a clause each: in what its statements name, and
        in what was seen for it.
        """
        lost = self._lost_evidence(item)
        return [*statement_problems(self._snapshot.files, item), *([lost] if lost else [])]

    def _lost_evidence(self, item: ScopeItem) -> str:
        """Return that nothing is left of the files that completed an item; else an empty text."""
        seen = item.evidence
        if item.status != "completed" or item.is_step or seen is None or not seen.files:
            return ""
        # A command may have done what no file shows; the review judges that.
        if not all(map(is_condition, seen.checks)):
            return ""
        said = " ".join([item.text, *(statement.text for statement in item.statements)])
        if _ASKS_TO_LOSE.search(said) or not all(self._is_lost(path, seen) for path in seen.files):
            return ""
        return (
            f"nothing is left of the work seen for it: {first_few(seen.files, 3)} "
            f"{'was' if len(seen.files) == 1 else 'were'} deleted, emptied or put back"
        )

    def _is_lost(self, path: str, seen: Evidence) -> bool:
        if len(path) >= NAME_CHARACTERS:
            return False  # Its name is cut.
        entry, start = _entry(self._snapshot.files, path), self._start_entry(path)
        if entry is None and start is not None:
            return False  # The job took away what was there before.
        then = self._workspace(seen.commit)
        if then is None:
            return False
        before = _entry(then, path)
        if entry is not None and (start is None or start.id != entry.id):
            is_same = before is not None and before.id == entry.id
            return not is_same and bool(empty_content_reason(path, self._content(entry)))
        if before is None:
            # Of very many files made for a time, those which stay are not named.
            return len(seen.files) < MOST_SEEN
        if start is not None and start.id == before.id:
            return True
        return not self._is_elsewhere(then.read_entry(before) if before.size <= MAX_READ else b"\0")

    def _is_elsewhere(self, lost: bytes) -> bool:
        """Return whether the content of a lost file is in the work under other names.

        It may be if it is no text, or too large to be compared.
        """
        lines, words = _lines_and_words(lost.decode(errors="replace"))
        kept_lines, kept_words = self._kept
        return (
            b"\0" in lost
            or len(lines & kept_lines) >= KEPT_LINES * len(lines)
            or len(words & kept_words) >= KEPT_WORDS * len(words)
        )

    @cached_property
    def _kept(self) -> tuple[set[str], set[str]]:
        """Return the lines and words of what the job made, bounded."""
        texts, total = [], 0
        for entry in work_files(self._snapshot):
            start = self._start_entry(entry.path)
            if entry.size > MAX_READ or (start and start.id == entry.id):
                continue
            total += entry.size
            if total > MAX_SEARCHED:
                break
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
        """Return the files of a checkpoint; None if it is not in the store."""
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


def _lines_and_words(text: str) -> tuple[set[str], set[str]]:
    """Return the lines, without marks, and the words of more than two letters."""
    folded = text.casefold()
    lines = {" ".join(_WORD.findall(line)) for line in folded.splitlines()} - {""}
    return lines, {word for word in _WORD.findall(folded) if len(word) > 2}
