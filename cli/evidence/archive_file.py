"""The file of an evidence archive: a tar file of which every byte follows from its records.

    head             JSON: format, job, number of records, the digest of the last, the signing key
    head.sig         signature over `head`, if it was signed
    manifest.jsonl   a record per further member, in their order, each with the digest of the one
                     before
    …                the members that the records name

A reader builds every header, record and the head anew and compares, so that no bit is free.
"""

import hashlib
import json
import re
import tarfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from cli.output import UserError

FORMAT = "longhaul evidence 1"
HEAD, SIGNATURE, MANIFEST = "head", "head.sig", "manifest.jsonl"
SIGNED_AS = "longhaul-evidence"
"""Purpose of the signature, which counts for no other."""
MAX_MEMBER_BYTES = 8 * 1024**3 - 1
"""Largest member: a header of this form has no room for more."""
MAX_HEAD_BYTES = 65_536
MAX_MANIFEST_BYTES = 256 << 20
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._%=-]*(/[A-Za-z0-9][A-Za-z0-9._%=-]*)*")
_BLOCK = tarfile.BLOCKSIZE
_END = bytes(2 * _BLOCK)
_CHUNK = 1 << 20


class BrokenArchive(Exception):
    """The file is not as it was written; the message says where."""


@dataclass(frozen=True)
class Member:
    """A member that a reader has checked."""

    path: str
    offset: int
    """Of its content in the file."""
    size: int
    sha256: str


@dataclass
class Archive:
    """What was read of an archive."""

    path: Path
    members: dict[str, Member] = field(default_factory=dict)
    head: dict[str, Any] = field(default_factory=dict)
    head_bytes: bytes = b""
    signature: bytes | None = None
    records: int = 0
    size: int = 0
    """Of the file, in bytes."""

    @property
    def job(self) -> str:
        return str(self.head["job"])

    @property
    def digest(self) -> str:
        """Digest of the last record, on which everything else rests."""
        return str(self.head["sha256"])

    def read(self, path: str) -> bytes:
        """Return a member's content. Raises KeyError."""
        member = self.members[path]
        with self.path.open("rb") as file:
            file.seek(member.offset)
            return file.read(member.size)

    def extract(self, path: str, target: Path) -> None:
        """Copy a member into a file."""
        member = self.members[path]
        with self.path.open("rb") as file, target.open("wb") as copy:
            file.seek(member.offset)
            rest = member.size
            while rest and (chunk := file.read(min(_CHUNK, rest))):
                copy.write(chunk)
                rest -= len(chunk)


def write_archive(
    target: Path,
    job: str,
    members: Mapping[str, bytes | Path],
    key: str = "",
    sign: Callable[[bytes, str], bytes] | None = None,
) -> str:
    """Write an archive and return the digest of its last record.

    Args:
        members: Contents, or files that have them, by path in the archive, in order.
        key: Fingerprint of the key that signs; empty for no signature.
        sign: Returns the signature over the head's bytes for a purpose; None for no signature.

    Raises:
        OSError, UserError: it cannot be written, or a member is too large.
    """
    lines, previous = [], _first(job)
    for number, (path, content) in enumerate(members.items(), 1):
        size, digest = _measure(content)
        if size > MAX_MEMBER_BYTES:
            raise UserError(f"{path} has {size:,} bytes, which an evidence archive cannot take")
        lines.append(_record(number, path, size, digest, previous))
        previous = hashlib.sha256(lines[-1]).hexdigest()
    head = _head(job, len(lines), previous, key)
    draft = target.with_name(f"{target.name}.part")
    try:
        with draft.open("wb") as file:
            _write_member(file, HEAD, head)
            if sign:
                _write_member(file, SIGNATURE, sign(head, SIGNED_AS))
            _write_member(file, MANIFEST, b"".join(line + b"\n" for line in lines))
            for path, content in members.items():
                _write_member(file, path, content)
            file.write(_END)
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)
    return previous


def read_archive(path: Path) -> Archive:
    """Read an archive and check every byte of it but the signature.

    Raises:
        BrokenArchive: something is not as it was written.
        OSError: the file cannot be read.
    """
    archive = Archive(path)
    with path.open("rb") as file:
        archive.head_bytes = _read_small(file, HEAD, MAX_HEAD_BYTES)
        archive.head = _parse_head(archive.head_bytes)
        if archive.head["key"]:
            archive.signature = _read_small(file, SIGNATURE, MAX_HEAD_BYTES)
        manifest = _read_small(file, MANIFEST, MAX_MANIFEST_BYTES)
        for record in _parse_manifest(manifest, archive.head):
            member = _read_member(file, record)
            archive.members[member.path] = member
        archive.records, archive.size = len(archive.members), path.stat().st_size
        if file.read(len(_END) + 1) != _END:
            raise BrokenArchive("there is something after the last record")
    return archive


def _first(job: str) -> str:
    """Return what the first record has in place of the digest of the one before."""
    return hashlib.sha256(f"{FORMAT}\n{job}".encode("utf-8", "surrogatepass")).hexdigest()


def _record(number: int, path: str, size: int, digest: str, previous: str) -> bytes:
    """Return a line of the manifest, without its end."""
    values = {"record": number, "path": path, "bytes": size, "sha256": digest}
    return json.dumps({**values, "previous": previous}).encode()


def _head(job: str, records: int, digest: str, key: str) -> bytes:
    values = {"format": FORMAT, "job": job, "records": records, "sha256": digest, "key": key}
    return json.dumps(values).encode() + b"\n"


def _parse_head(data: bytes) -> dict[str, Any]:
    try:
        head = json.loads(data)
        rebuilt = _head(head["job"], head["records"], head["sha256"], head["key"])
    except (ValueError, KeyError, TypeError, RecursionError):
        rebuilt = b""
    if rebuilt != data or not isinstance(head["job"], str) or not isinstance(head["key"], str):
        raise BrokenArchive(f"{HEAD} is not as it was written, or is of another version")
    return dict(head)


def _parse_manifest(data: bytes, head: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the records, each of which follows from the one before, up to the head's digest."""
    records, previous, paths = [], _first(head["job"]), set()
    lines = data.split(b"\n")
    if lines.pop() != b"":
        raise BrokenArchive(f"{MANIFEST} is cut short")
    for number, line in enumerate(lines, 1):
        try:
            record = json.loads(line)
            size, path = record["bytes"], record["path"]
            rebuilt = _record(number, path, size, record["sha256"], previous)
        except (ValueError, KeyError, TypeError, RecursionError):
            raise BrokenArchive(f"record {number} of {MANIFEST} cannot be read") from None
        if rebuilt != line or type(size) is not int or size < 0:
            raise BrokenArchive(
                f"record {number} of {MANIFEST} ({path}) does not follow from the one before"
            )
        if not isinstance(path, str) or not _NAME.fullmatch(path) or path in paths:
            raise BrokenArchive(f"record {number} of {MANIFEST} has a path that no archive has")
        paths.add(path)
        records.append(record)
        previous = hashlib.sha256(line).hexdigest()
    if len(records) != head["records"] or previous != head["sha256"]:
        raise BrokenArchive(
            f"the {len(records)} records of {MANIFEST} do not end at what {HEAD} says: "
            f"{head['records']} records, the last with the digest {head['sha256']}"
        )
    return records


def _read_member(file: BinaryIO, record: Mapping[str, Any]) -> Member:
    """Read the member that a record names, and compare its digest."""
    path, size = str(record["path"]), int(record["bytes"])
    _check_header(file, path, size)
    offset, digest, rest = file.tell(), hashlib.sha256(), size
    while rest and (chunk := file.read(min(_CHUNK, rest))):
        digest.update(chunk)
        rest -= len(chunk)
    _check_padding(file, path, size)
    if rest or digest.hexdigest() != record["sha256"]:
        raise BrokenArchive(f"{path} does not have the digest that record {record['record']} has")
    return Member(path, offset, size, digest.hexdigest())


def _read_small(file: BinaryIO, path: str, most: int) -> bytes:
    """Return the content of a member that no record names."""
    header = file.read(_BLOCK)
    try:
        size = tarfile.TarInfo.frombuf(header, "ascii", "surrogateescape").size
    except tarfile.HeaderError:
        raise BrokenArchive(f"where {path} should be, there is no member") from None
    if header != _header(path, max(size, 0)) or size > most:
        raise BrokenArchive(f"where {path} should be, there is another member")
    data = file.read(size)
    _check_padding(file, path, size)
    if len(data) < size:
        raise BrokenArchive(f"{path} is cut short")
    return data


def _check_header(file: BinaryIO, path: str, size: int) -> None:
    if file.read(_BLOCK) != _header(path, size):
        raise BrokenArchive(f"where {path} should be, there is another member, or a changed one")


def _check_padding(file: BinaryIO, path: str, size: int) -> None:
    padding = -size % _BLOCK
    if file.read(padding) != bytes(padding):
        raise BrokenArchive(f"what follows {path} is not as it was written")


def _header(path: str, size: int) -> bytes:
    info = tarfile.TarInfo(path)
    info.size = size
    try:
        return info.tobuf(tarfile.USTAR_FORMAT)
    except ValueError:
        raise BrokenArchive(f"{path} is no path that an archive has") from None


def _write_member(file: BinaryIO, path: str, content: bytes | Path) -> None:
    size = len(content) if isinstance(content, bytes) else content.stat().st_size
    file.write(_header(path, size))
    if isinstance(content, bytes):
        file.write(content)
    else:
        with content.open("rb") as source:
            while chunk := source.read(_CHUNK):
                file.write(chunk)
    file.write(bytes(-size % _BLOCK))


def _measure(content: bytes | Path) -> tuple[int, str]:
    """Return size and digest."""
    if isinstance(content, bytes):
        return len(content), hashlib.sha256(content).hexdigest()
    with content.open("rb") as file:
        return content.stat().st_size, hashlib.file_digest(file, "sha256").hexdigest()


def is_member_path(path: str) -> bool:
    """Whether an archive can have a member of this path."""
    return bool(_NAME.fullmatch(path)) and len(path) <= 100


def member_paths(archive: Archive, prefix: str) -> Sequence[str]:
    """Return the paths below a folder of the archive, in its order."""
    return [path for path in archive.members if path.startswith(prefix)]
