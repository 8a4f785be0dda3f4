"""Packing a repository, at phase ends and when its journal is full; safe at every moment.

The one rule: an object leaves its place only after a pack that holds it has been read back in
full, fsynced, and given its name in `objects/pack`. From it follows what is promised:

* A kill at any point leaves every object in at least one place. What a draft left behind is
  swept by the next packer; files of the journal that are packed already are dropped then.
* A writer that knows its object to be in the journal does not write it again. It may be moved
  into a pack a moment later, but it is never absent, and readers look there before they call an
  object missing.
* A file of the journal is locked while it is packed. Its writer goes on in another one, also when
  it was frozen in between and wakes after the file is gone.
"""

import shutil
from contextlib import suppress
from pathlib import Path

import pygit2
from pygit2.packbuilder import PackBuilder

from activities.checkpoints.journal import closed
from activities.checkpoints.locks import locked, sync
from activities.checkpoints.records import HEAD, read_records
from activities.checkpoints.staging import Staging

MAX_PACKS = 20
WAIT_SECONDS = 2
INDEX_HEAD = b"\xfftOc\x00\x00\x00\x02"
FIRST_ID = len(INDEX_HEAD) + 256 * 4
"""Behind the counts of ids by their first byte, of which the last is that of all."""


def pack(repository: Path, *, max_packs: int = MAX_PACKS, wait: float = WAIT_SECONDS) -> None:
    """Moves the journal into one pack; the smaller packs too, when there are over `max_packs`.

    When it returns everything stored before is on the disk (fsync). Objects that turn out damaged
    are set aside. Raises TimeoutError while another packer, alive or frozen, is at it for `wait`
    seconds: what it leaves is for the next time.
    """
    with locked(repository / "longhaul-pack.lock", seconds=wait):
        draft = repository / "packing"
        shutil.rmtree(draft, ignore_errors=True)
        _sweep(repository)
        with closed(repository / "journal") as files:
            try:
                _pack(repository, draft, files, max_packs)
            finally:
                shutil.rmtree(draft, ignore_errors=True)


def _pack(repository: Path, draft: Path, files: list[Path], max_packs: int) -> None:
    objects = repository / "objects"
    staging = Staging(draft / "objects")
    taken = {file: _take(file, staging, objects) for file in files}
    staging.finish()
    packs = sorted((objects / "pack").glob("pack-*.pack"))
    merged = _readable(objects, _smaller(packs)) if len(packs) > max_packs else {}
    wanted = {pygit2.Oid(raw=oid) for oid in staging.ids}.union(*merged.values())
    made = _write(repository, draft, wanted) if wanted else None
    # Also for a pack that a killed packer placed and we now rely on.
    sync(objects / "pack")
    if made:
        for old in merged:
            if old.stem != made:
                # The index first: a pack without one is never looked at.
                old.with_suffix(".idx").unlink(missing_ok=True)
                old.unlink()
    # What was sound in them has been read from a pack by now, here or when that was made.
    for file, is_whole in taken.items():
        if is_whole:
            file.unlink()
        else:
            damaged = repository / "damaged"
            damaged.mkdir(exist_ok=True)
            file.rename(damaged / file.name)


def _take(path: Path, staging: Staging, objects: Path) -> bool:
    """Stages what of a file is sound and in no pack. Whether all of it was sound."""
    # Asked first: not finding an object, the reader would look for new packs each time.
    packs, reader = pygit2.OdbBackendPack(str(objects)), _pack_reader(objects)
    is_whole, end = True, 0
    for at, record in read_records(path):
        end = at + HEAD.size + len(record.data)
        if not record.is_sound:
            is_whole = False
        elif not packs.exists(pygit2.Oid(raw=record.id)) or not _reads(reader, record.id):
            staging.add(record)
    return is_whole and end == path.stat().st_size


def _write(repository: Path, draft: Path, wanted: set[pygit2.Oid]) -> str:
    """Makes, verifies and places one pack of these objects. Returns its name without suffix."""
    (draft / "pack").mkdir()
    source = pygit2.Repository(str(repository))
    source.odb.add_disk_alternate(str(draft / "objects"))
    builder = PackBuilder(source)
    for oid in sorted(wanted, key=str):
        builder.add(oid)
    builder.write(draft / "pack")
    reader = _pack_reader(draft)
    for oid in wanted:
        reader.read(oid)  # checks the hash; raises if it is not there
    [made] = (draft / "pack").glob("pack-*.pack")
    index = made.with_suffix(".idx")
    sync(made)
    sync(index)
    place = repository / "objects" / "pack"
    # The index last: with it the pack becomes visible, and it must be whole by then.
    made.rename(place / made.name)
    index.rename(place / index.name)
    return made.stem


def _reads(reader: pygit2.Odb, oid: bytes) -> bool:
    with suppress(KeyError, pygit2.GitError):
        reader.read(pygit2.Oid(raw=oid))
        return True
    return False


def _smaller(packs: list[Path]) -> list[Path]:
    """Those to make one of: half of them, and what is no larger than these together.

    So an object moves a few times only, however many come after it, and packing costs a step the
    same in a job of any length.
    """
    by_size = sorted((pack.stat().st_size, pack) for pack in packs)
    taken = len(packs) // 2 + 1
    total = sum(size for size, _ in by_size[:taken])
    for size, _ in by_size[taken:]:
        if size > total:
            break
        total += size
        taken += 1
    return [pack for _, pack in by_size[:taken]]


def _readable(objects: Path, packs: list[Path]) -> dict[Path, set[pygit2.Oid]]:
    """The objects of each pack; one that holds a damaged object is left out, and as it is."""
    reader = _pack_reader(objects)
    held = {pack: _ids(pack.with_suffix(".idx")) for pack in packs}
    return {
        pack: ids for pack, ids in held.items() if ids and all(_reads(reader, o.raw) for o in ids)
    }


def _ids(index: Path) -> set[pygit2.Oid]:
    """The ids in a pack's index, by git's second format; none of an index in another one.

    After https://git-scm.com/docs/pack-format.
    """
    data = index.read_bytes()
    if not data.startswith(INDEX_HEAD):
        return set()
    count = int.from_bytes(data[FIRST_ID - 4 : FIRST_ID], "big")
    places = range(FIRST_ID, FIRST_ID + 20 * count, 20)
    return {pygit2.Oid(raw=data[at : at + 20]) for at in places}


def _pack_reader(objects: Path) -> pygit2.Odb:
    """A fresh view of the packs below `<objects>/pack` and of nothing else."""
    reader = pygit2.Odb()
    reader.add_backend(pygit2.OdbBackendPack(str(objects)), 1)
    return reader


def _sweep(repository: Path) -> None:
    """Removes packs without an index, which killed processes left."""
    for found in (repository / "objects" / "pack").glob("pack-*.pack"):
        if not found.with_suffix(".idx").exists():
            found.unlink()
