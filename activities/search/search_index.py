"""The search index of a job: passages of one tree, and embeddings of all passages seen.

A passage is the unit that is ranked and shown.

It is derived data in the job's repository: a broken index is replaced, not repaired. Before a
search it is made to mirror the searched tree, so that results and ranks do not depend on earlier
trees.
"""

import hashlib
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np

from activities.checkpoints import Files
from activities.search.embedding import Matrix
from activities.text.safe_text import split_lines

MAX_CHARACTERS = 1200
"""Maximum size of a passage: about the 256 tokens that small embedding models read."""
MIN_CHARACTERS = 400
"""Size from which a passage ends at an empty line."""


@dataclass(frozen=True, slots=True)
class Passage:
    """Whole lines of a file, or part of a very long line."""

    line: int
    """Number of the first line, counted from 1."""
    text: str

    @property
    def fingerprint(self) -> bytes:
        """Hash of the text, the key of its embedding."""
        return hashlib.sha256(self.text.encode("utf-8", "surrogatepass")).digest()[:16]


def split_passages(data: bytes) -> Iterator[Passage]:
    """Yield a file's passages in order, in linear time; none if it is not text."""
    try:
        lines = split_lines(data.decode())
    except UnicodeDecodeError:
        return
    pending: list[str] = []
    first, size = 1, 0
    for number, line in enumerate(lines, 1):
        ends = size >= MIN_CHARACTERS and not line.strip()
        if pending and (ends or line.startswith("#") or size + len(line) > MAX_CHARACTERS):
            yield from _join_passage(first, pending)
            pending, size = [], 0
        if not pending:
            first = number
        if line.strip() or pending:
            pending.append(line)
            size += len(line) + 1
        if size > MAX_CHARACTERS:
            yield from _split_line_into_passages(number, line)
            pending, size = [], 0
    yield from _join_passage(first, pending)


def _join_passage(line: int, lines: list[str]) -> Iterator[Passage]:
    if text := "\n".join(lines).strip():
        yield Passage(line, text)


def _split_line_into_passages(number: int, line: str) -> Iterator[Passage]:
    """Yield a line that is too long for a passage in pieces."""
    for start in range(0, len(line), MAX_CHARACTERS):
        if piece := line[start : start + MAX_CHARACTERS].strip():
            yield Passage(number, piece)


SCHEMA_VERSION = 2
"""Version of the tables; an index with another version is replaced."""
BUSY_SECONDS = 20
"""Longest wait for another process. Writes take moments, so a longer one is by a frozen process."""
BATCH_FILES, BATCH_CHARACTERS = 200, 1_000_000
"""Size of one write: a killed process keeps its completed batches."""
TRIES = 10
"""Attempts to mirror one tree while other processes search other trees."""
PERSISTENT_ERRORS = frozenset(
    {
        *(sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN),
        *(sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_PERM, sqlite3.SQLITE_INTERRUPT),
    }
)
"""Errors that a new index would not avoid."""
TABLES = """
CREATE TABLE IF NOT EXISTS mirrored (tree TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS files (path BLOB PRIMARY KEY, blob TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS passages
    (id INTEGER PRIMARY KEY, path BLOB NOT NULL, line INTEGER NOT NULL, mark BLOB NOT NULL);
CREATE INDEX IF NOT EXISTS passages_path ON passages (path);
CREATE VIRTUAL TABLE IF NOT EXISTS words
    USING fts5(text, tokenize='porter unicode61 remove_diacritics 2');
CREATE TABLE IF NOT EXISTS vectors
    (mark BLOB, model TEXT, vector BLOB NOT NULL, PRIMARY KEY (mark, model)) WITHOUT ROWID;
"""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PassageRef:
    """Place of a passage; ties in a ranking are ordered by it."""

    path: bytes
    line: int
    id: int


class SearchIndex:
    """An open index file, for use in one thread."""

    def __init__(self, path: Path) -> None:
        # No WAL mode: it needs shared memory, which mounted volumes lack.
        self._base = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)
        try:
            # A power cut may corrupt the file; it is then rebuilt.
            self._base.execute("PRAGMA synchronous = OFF")
            (form,) = self._base.execute("PRAGMA user_version").fetchone()
            if form not in (0, SCHEMA_VERSION):
                raise sqlite3.DatabaseError(f"{path} has the form {form}, not {SCHEMA_VERSION}")
            if form == 0:
                with self._write_transaction():
                    for statement in TABLES.split(";"):
                        self._base.execute(statement)
                    self._base.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        except BaseException:
            self._base.close()
            raise

    def close(self) -> None:
        self._base.close()

    @contextmanager
    def mirror_files(self, files: Files) -> Iterator[None]:
        """Keep the index equal to these files inside the block, whatever other processes do."""
        for _ in range(TRIES):
            self._mirror_tree(files)
            with self._transaction("BEGIN"):
                if self._mirrored_tree == files.id:
                    yield
                    return
        raise sqlite3.OperationalError("another process keeps searching another tree")

    def match_words(self, query: str, under: tuple[bytes, bytes], limit: int) -> list[PassageRef]:
        """Return passages that match an FTS5 query, best first by BM25."""
        rows = self._base.execute(
            "SELECT p.path, p.line, p.id FROM words JOIN passages p ON p.id = words.rowid "
            "WHERE words MATCH ? AND p.path >= ? AND p.path < ? "
            "ORDER BY round(bm25(words), 9), p.path, p.line, p.id LIMIT ?",
            (query, *under, limit),
        )
        return [PassageRef(*row) for row in rows]

    def find_vectors(
        self, model: str, under: tuple[bytes, bytes]
    ) -> tuple[list[PassageRef], Matrix]:
        """Return the passages with an embedding of that model, and the embeddings as rows."""
        records = self._base.execute(
            "SELECT p.path, p.line, p.id, v.vector FROM passages p "
            "JOIN vectors v ON v.mark = p.mark AND v.model = ? WHERE p.path >= ? AND p.path < ?",
            (model, *under),
        ).fetchall()
        joined = np.frombuffer(b"".join(row[3] for row in records), dtype="<f2")
        try:
            rows = joined.reshape(len(records), -1 if records else 0)
        except ValueError:
            raise sqlite3.DatabaseError("embeddings of the index are damaged") from None
        return [PassageRef(*row[:3]) for row in records], rows.astype(np.float32)

    def passage_text(self, place: PassageRef) -> str:
        (text,) = self._base.execute(
            "SELECT text FROM words WHERE rowid = ?", (place.id,)
        ).fetchone()
        return str(text)

    def without_vector(
        self, model: str, under: tuple[bytes, bytes], limit: int
    ) -> list[tuple[bytes, str]]:
        """Return up to `limit` texts without an embedding of that model, each with its mark."""
        return self._base.execute(
            "SELECT lacking.mark, w.text FROM (SELECT p.mark, min(p.id) AS id FROM passages p "
            "LEFT JOIN vectors v ON v.mark = p.mark AND v.model = ? "
            "WHERE v.mark IS NULL AND p.path >= ? AND p.path < ? "
            "GROUP BY p.mark ORDER BY 2 LIMIT ?) AS lacking "
            "JOIN words w ON w.rowid = lacking.id ORDER BY lacking.id",
            (model, *under, limit),
        ).fetchall()

    def keep_vectors(self, model: str, marks: list[bytes], rows: Matrix) -> None:
        halves = rows.astype("<f2")
        with self._write_transaction():
            self._base.executemany(
                "INSERT OR IGNORE INTO vectors VALUES (?, ?, ?)",
                [(mark, model, row.tobytes()) for mark, row in zip(marks, halves, strict=True)],
            )

    @property
    def _mirrored_tree(self) -> str | None:
        """Id of the mirrored tree; None while the index is between trees."""
        row = self._base.execute("SELECT tree FROM mirrored").fetchone()
        return row[0] if row else None

    def _indexed_files(self) -> dict[bytes, str]:
        return dict(self._base.execute("SELECT path, blob FROM files"))

    def _mirror_tree(self, files: Files) -> None:
        if self._mirrored_tree == files.id:
            return
        expected = {
            entry.path.encode("utf-8", "surrogateescape"): entry.id
            for entry in files.walk()
            if entry.kind == "file"
        }
        indexed = self._indexed_files()
        stale = [path for path in {*expected, *indexed} if expected.get(path) != indexed.get(path)]
        ready: list[tuple[bytes, str | None, list[Passage]]] = []
        size = 0
        for path in sorted(stale):
            blob = expected.get(path)
            cut = list(split_passages(files.store.read(bytes.fromhex(blob)))) if blob else []
            ready.append((path, blob, cut))
            size += sum(len(passage.text) for passage in cut)
            if len(ready) >= BATCH_FILES or size >= BATCH_CHARACTERS:
                self._replace_files(ready)
                ready, size = [], 0
        self._replace_files(ready)
        with self._write_transaction():
            if self._indexed_files() == expected:
                self._base.execute("DELETE FROM mirrored")
                self._base.execute("INSERT INTO mirrored VALUES (?)", (files.id,))

    def _replace_files(self, ready: list[tuple[bytes, str | None, list[Passage]]]) -> None:
        """Replace the passages of these files; a blob of None removes the path."""
        with self._write_transaction():
            self._base.execute("DELETE FROM mirrored")
            for path, blob, cut in ready:
                row = self._base.execute("SELECT blob FROM files WHERE path = ?", (path,))
                existing = row.fetchone()
                if existing and existing[0] == blob:
                    continue  # another process was quicker
                if existing:
                    self._base.execute(
                        "DELETE FROM words WHERE rowid IN (SELECT id FROM passages WHERE path = ?)",
                        (path,),
                    )
                    self._base.execute("DELETE FROM passages WHERE path = ?", (path,))
                    self._base.execute("DELETE FROM files WHERE path = ?", (path,))
                if blob:
                    self._base.execute("INSERT INTO files VALUES (?, ?)", (path, blob))
                for passage in cut:
                    cursor = self._base.execute(
                        "INSERT INTO passages (path, line, mark) VALUES (?, ?, ?)",
                        (path, passage.line, passage.fingerprint),
                    )
                    self._base.execute(
                        "INSERT INTO words (rowid, text) VALUES (?, ?)",
                        (cursor.lastrowid, passage.text),
                    )

    def _write_transaction(self) -> AbstractContextManager[None]:
        return self._transaction("BEGIN IMMEDIATE")

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[None]:
        self._base.execute(begin)
        try:
            yield
        except BaseException:
            with suppress(sqlite3.Error):
                self._base.execute("ROLLBACK")
            raise
        self._base.execute("COMMIT")


def with_search_index(folder: Path, use: Callable[[SearchIndex], T]) -> T:
    """Return the result of `use` on the folder's index; replace an unusable index once.

    A new index gets a new name, so that a process with the old one open cannot interfere.

    Raises:
        sqlite3.Error: The disk is full or unwritable, or the new index fails too.
    """
    folder.mkdir(exist_ok=True)
    number = max(_search_index_numbers(folder), default=1)
    try:
        return _use_index(folder, number, use)
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT)
        # DBMOVED: another process has already replaced the index.
        if code & 0xFF in PERSISTENT_ERRORS and code != sqlite3.SQLITE_READONLY_DBMOVED:
            raise
    result = _use_index(folder, number + 1, use)
    for old in _search_index_numbers(folder):
        if old <= number:
            for path in folder.glob(f"{old}.sqlite*"):
                path.unlink(missing_ok=True)
    return result


def _use_index(folder: Path, number: int, use: Callable[[SearchIndex], T]) -> T:
    with closing(SearchIndex(folder / f"{number}.sqlite")) as index:
        return use(index)


def _search_index_numbers(folder: Path) -> list[int]:
    return [int(path.stem) for path in folder.glob("*.sqlite") if path.stem.isdecimal()]
