"""Packing a repository at phase ends, safe at every moment.

The one rule: an object leaves its place only after a pack that holds it has been read back in
full, fsynced, and given its name in `objects/pack`. From it follows what is promised:

* A kill at any point leaves every object in at least one place. What a draft left behind is
  swept by the next packer; loose objects that are packed already are dropped then.
* A writer that finds its object present does not write it again (libgit2 only touches the file's
  time). The object may be moved from loose file to pack a moment later, but it is never absent,
  and readers look for new packs before they call an object missing.
* A writer that makes an object anew after its loose file went writes a second copy: harmless.
  Objects written after the listing was made are not in the pack and are not removed.
"""

import shutil
import time
from contextlib import suppress
from pathlib import Path

import pygit2
from pygit2.packbuilder import PackBuilder

from activities.checkpoints.locks import locked, sync
from activities.checkpoints.objects import set_aside_if_damaged

MAX_PACKS = 20
WAIT_SECONDS = 2


def pack(repository: Path, *, max_packs: int = MAX_PACKS) -> None:
    """Moves all loose objects into one pack; all packs too, when there are more than `max_packs`.

    When it returns everything stored before is on the disk (fsync). Objects that turn out damaged
    are set aside. Raises TimeoutError while another packer, alive or frozen, is at it: what it
    leaves is for the next time.
    """
    with locked(repository / "longhaul-pack.lock", seconds=WAIT_SECONDS):
        draft = repository / "packing"
        shutil.rmtree(draft, ignore_errors=True)
        _sweep(repository)
        loose = [oid for oid in _loose(repository) if not set_aside_if_damaged(repository, oid)]
        packs = sorted((repository / "objects" / "pack").glob("pack-*.pack"))
        everything = len(packs) > max_packs
        everything = everything and _readable(repository / "objects")
        packed = _packed(repository / "objects")
        wanted = {pygit2.Oid(hex=oid) for oid in loose} - (set() if everything else packed)
        if everything:
            wanted |= packed
        made = _write(repository, draft, wanted) if wanted else None
        # Also for a pack that a killed packer placed and we now rely on.
        sync(repository / "objects" / "pack")
        if everything and made:
            for old in packs:
                if old.stem != made:
                    # The index first: a pack without one is never looked at.
                    old.with_suffix(".idx").unlink(missing_ok=True)
                    old.unlink()
        _drop_loose(repository, loose)
        shutil.rmtree(draft, ignore_errors=True)


def _write(repository: Path, draft: Path, wanted: set[pygit2.Oid]) -> str:
    """Makes, verifies and places one pack of these objects. Returns its name without suffix."""
    (draft / "pack").mkdir(parents=True)
    builder = PackBuilder(pygit2.Repository(str(repository)))
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


def _drop_loose(repository: Path, loose: list[str]) -> None:
    """Removes the loose objects that can be read from packs alone."""
    reader = _pack_reader(repository / "objects")
    for oid in loose:
        with suppress(KeyError, pygit2.GitError, FileNotFoundError):
            reader.read(oid)
            # The folder of the first two digits stays: a writer may be about to rename into it.
            (repository / "objects" / oid[:2] / oid[2:]).unlink()


def _loose(repository: Path) -> list[str]:
    return [
        found.parent.name + found.name
        for found in (repository / "objects").glob("[0-9a-f][0-9a-f]/*")
        if len(found.name) == 38 and "." not in found.name
    ]


def _packed(objects: Path) -> set[pygit2.Oid]:
    return set(_pack_reader(objects))


def _readable(objects: Path) -> bool:
    """Whether every packed object can be read; a pack with a damaged one is left as it is."""
    reader = _pack_reader(objects)
    try:
        for oid in reader:
            reader.read(oid)
    except (KeyError, pygit2.GitError):
        return False
    return True


def _pack_reader(objects: Path) -> pygit2.Odb:
    """A fresh view of the packs below `<objects>/pack` and of nothing else."""
    reader = pygit2.Odb()
    reader.add_backend(pygit2.OdbBackendPack(str(objects)), 1)
    return reader


def _sweep(repository: Path) -> None:
    """Removes what killed processes left: packs without an index, half-written loose objects."""
    for found in (repository / "objects" / "pack").glob("pack-*.pack"):
        if not found.with_suffix(".idx").exists():
            found.unlink()
    for found in (repository / "objects").glob("tmp_object_git2_*"):
        with suppress(FileNotFoundError):
            # A young one may still be being written.
            if time.time() - found.stat().st_mtime > 24 * 3600:
                found.unlink()
