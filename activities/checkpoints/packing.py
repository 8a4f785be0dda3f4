"""Pack a repository, at phase ends and when its journal is full; safe at every moment.

One rule: an object leaves its place only after a pack with it was read back in full, fsynced, and
renamed into `objects/pack`. It follows:

* A kill at any point leaves every object in at least one place. The next packer removes the
  killed one's draft, and journal files that are already packed.
* An index is written before its pack and removed after it. So a killed packer leaves at most an
  index without a pack. A pack without an index has lost it; the pack stays, because it may be the
  only place of its objects.
* A writer that knows its object to be in the journal does not write it again. The object may move
  into a pack a moment later but is never absent, and readers look in packs before they report an
  object as missing.
* A journal file is locked while it is packed. Its writer continues in another file, even if it
  was frozen meanwhile and wakes after the file is gone.
"""

import secrets
import shutil
from contextlib import suppress
from pathlib import Path

import pygit2
from pygit2.packbuilder import PackBuilder

from activities.checkpoints import packfile
from activities.checkpoints.checkpoint_errors import GitNotInstalled, RemoteUnavailable
from activities.checkpoints.disk_access import fsync_path
from activities.checkpoints.git import run_git
from activities.checkpoints.journal import locked_journal_files
from activities.checkpoints.journal_records import HEAD, read_records
from activities.checkpoints.locks import file_lock
from activities.checkpoints.object_store import read_sound_object

MAX_PACKS = 20
WAIT_SECONDS = 2


def pack_journal(
    repository: Path, *, max_packs: int = MAX_PACKS, wait: float = WAIT_SECONDS
) -> None:
    """Move the journal into one pack; if there are more than `max_packs`, merge the smaller ones.

    On return everything stored before is on disk (fsync). Damaged objects are set aside. Raises
    TimeoutError if another packer holds the lock for `wait` seconds; the next call packs the rest.
    """
    with file_lock(repository / "longhaul-pack.lock", seconds=wait):
        draft = repository / "packing"
        shutil.rmtree(draft, ignore_errors=True)
        _remove_orphan_indexes(repository)
        with locked_journal_files(repository / "journal") as files:
            try:
                _pack_files(repository, draft, files, max_packs)
            finally:
                shutil.rmtree(draft, ignore_errors=True)


def _pack_files(repository: Path, draft: Path, files: list[Path], max_packs: int) -> None:
    objects = repository / "objects"
    writer = packfile.PackWriter(draft / "objects")
    staged = {file: _stage_unpacked_objects(file, writer, objects) for file in files}
    writer.finish()
    if writer.ids:
        _install_pack(_pack_staged_objects(repository, draft, writer.ids), objects)
    # Also for a pack of a killed packer, which the steps below rely on.
    fsync_path(objects / "pack")
    damaged = repository / "damaged"
    for file, is_intact in staged.items():
        if is_intact:
            file.unlink()
        else:
            damaged.mkdir(exist_ok=True)
            file.rename(damaged / file.name)
    pack_files = sorted((objects / "pack").glob("pack-*.pack"))
    packs = [
        pack
        for pack in pack_files
        if pack.with_suffix(".idx").exists() and not (damaged / pack.name).exists()
    ]
    if len(packs) > max_packs:
        _merge_packs(_packs_to_merge(packs), draft / "merged", objects, damaged)


def _stage_unpacked_objects(path: Path, writer: packfile.PackWriter, objects: Path) -> bool:
    """Stage the file's undamaged objects that are in no pack. Return whether all were undamaged."""
    # Check first: on a missing object, the reader would search for new packs each time.
    packs, reader = pygit2.OdbBackendPack(str(objects)), _pack_reader(objects)
    is_intact, end = True, 0
    for offset, record in read_records(path):
        end = offset + HEAD.size + len(record.data)
        if not record.is_sound:
            is_intact = False
        elif not packs.exists(pygit2.Oid(raw=record.id)) or not _is_packed_readably(
            reader, record.id
        ):
            writer.add(record)
    return is_intact and end == path.stat().st_size


def _pack_staged_objects(repository: Path, draft: Path, ids: set[bytes]) -> Path:
    """Build and verify a pack of the staged objects in the draft folder."""
    (draft / "pack").mkdir()
    source = pygit2.Repository(str(repository))
    source.odb.add_disk_alternate(str(draft / "objects"))
    builder = PackBuilder(source)
    for oid in sorted(ids):
        builder.add(pygit2.Oid(raw=oid))
    builder.write(draft / "pack")
    [pack_path] = (path for path in (draft / "pack").iterdir() if path.suffix == ".pack")
    reader = _pack_reader(draft)
    # In pack order, so that a delta's base was read just before.
    for _, oid in packfile.read_pack_offsets(pack_path):
        read_sound_object(reader, oid)
        ids.discard(oid)
    if ids:
        raise OSError(f"{pack_path} lacks {len(ids)} objects.")
    return pack_path


def _install_pack(pack_path: Path, objects: Path) -> None:
    index = pack_path.with_suffix(".idx")
    fsync_path(pack_path)
    fsync_path(index)
    # An index without a pack is ignored by every reader.
    index.rename(objects / "pack" / index.name)
    pack_path.rename(objects / "pack" / pack_path.name)


def _merge_packs(packs: list[Path], draft: Path, objects: Path, damaged: Path) -> None:
    """Merge the packs into one. A pack with a damaged object stays as it is.

    An empty file with the pack's name among the damaged ones marks it, so that it is not read in
    vain each time.
    """
    while len(packs) > 1:
        writer, suspects = _stage_merged_packs(packs, draft)
        if not suspects:
            _install_pack(writer.pack, objects)
            fsync_path(objects / "pack")
            for old in packs:
                old.unlink()
                old.with_suffix(".idx").unlink(missing_ok=True)
            return
        writer.discard()
        for pack in suspects:
            # Undamaged packs may have failed because of another pack's copy of an object.
            alone, is_damaged = _stage_merged_packs([pack], draft)
            alone.discard()
            if is_damaged:
                damaged.mkdir(exist_ok=True)
                (damaged / pack.name).touch()
        packs = [pack for pack in packs if pack not in suspects]


def _stage_merged_packs(packs: list[Path], draft: Path) -> tuple[packfile.PackWriter, set[Path]]:
    """Stage the packs' objects as one pack; also return the packs with unreadable objects.

    Compressed entries are copied. Searching for deltas again would cost each object as much as the
    first time, however often it is moved.
    """
    writer = packfile.PackWriter(draft)
    source: dict[bytes, Path] = {}
    unread = set()
    # Of several copies the first pack's is used, so no delta depends on itself.
    for pack in packs:
        try:
            for oid, entry in packfile.read_pack_entries(pack):
                source.setdefault(oid, pack)
                writer.copy(oid, entry)
        except ValueError:
            unread.add(pack)
    writer.finish()
    reader = _pack_reader(draft)
    unread |= {pack for oid, pack in source.items() if not _is_packed_readably(reader, oid)}
    return writer, unread


def _packs_to_merge(packs: list[Path]) -> list[Path]:
    """Choose the packs to merge: half of them, and all that are no larger than these together.

    So an object moves only a few times, and packing costs a step the same in a job of any length.
    """
    sizes = {pack: pack.stat().st_size for pack in packs}
    chosen: list[Path] = []
    total = 0
    for pack in sorted(packs, key=sizes.__getitem__):
        is_larger = sizes[pack] > total and len(chosen) > len(packs) // 2
        if is_larger or total + sizes[pack] > packfile.MAX_BYTES:
            break
        chosen.append(pack)
        total += sizes[pack]
    return chosen


def _is_packed_readably(reader: pygit2.Odb, oid: bytes) -> bool:
    with suppress(KeyError, pygit2.GitError):
        read_sound_object(reader, oid)
        return True
    return False


def _pack_reader(objects: Path) -> pygit2.Odb:
    """Return a fresh reader of the packs below `<objects>/pack` and of nothing else."""
    reader = pygit2.Odb()
    reader.add_backend(pygit2.OdbBackendPack(str(objects)), 1)
    return reader


def _remove_orphan_indexes(repository: Path) -> None:
    """Remove indexes without a pack, left by killed processes."""
    for index_path in (repository / "objects" / "pack").glob("pack-*.idx"):
        if not index_path.with_suffix(".pack").exists():
            index_path.unlink()


def rebuild_pack_indexes(repository: Path) -> bool:
    """Rebuild missing or damaged indexes of packs, locked; return whether any was rebuilt."""
    mended = False
    packs = (repository / "objects" / "pack").glob("pack-*.pack")
    suspects = [
        pack_path
        for pack_path in packs
        if not packfile.is_intact_pack_index(pack_path.with_suffix(".idx"))
    ]
    if not suspects:
        return False
    with file_lock(repository / "longhaul-pack.lock", seconds=WAIT_SECONDS):
        draft = repository / "packing"
        for pack_path in suspects:
            index = pack_path.with_suffix(".idx")
            if not pack_path.exists() or packfile.is_intact_pack_index(index):
                mended = True  # another process rebuilt it, or merged the pack
                continue
            draft.mkdir(exist_ok=True)
            # Under a new name: libgit2 identifies packs by path for as long as it runs.
            new_index = draft / f"pack-{secrets.token_hex(20)}.idx"
            # Without git, or with a damaged pack, everything stays as it is.
            with suppress(GitNotInstalled, RemoteUnavailable):
                run_git(repository, "index-pack", "-o", str(new_index), str(pack_path))
                fsync_path(new_index)
                new_index.rename(pack_path.with_name(new_index.name))
                pack_path.rename(pack_path.with_name(new_index.with_suffix(".pack").name))
                index.unlink(missing_ok=True)
                mended = True
        shutil.rmtree(draft, ignore_errors=True)
    return mended
