"""A bucket as a remote: git packs, and for each area one object that lists them.

Objects of an area, such as `jobs/guide/`:

    packs/<hash>-<random>   a pack; never changed, deleted once another pack has all its objects
    refs.json               the refs, and the packs in an order in which each needs those before it

A pack is uploaded before `refs.json` names it, and `refs.json` is only replaced if nobody else has
replaced it since it was read. So a kill leaves at most an unused pack, and a host with an outdated
list cannot overwrite a newer one: it reads the newer list and adds to it.
"""

import random
import secrets
import shutil
import tempfile
import threading
import time
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pygit2
from pydantic import Field, ValidationError

from activities.checkpoints.bucket import Bucket
from activities.checkpoints.checkpoint_errors import RemoteUnavailable
from activities.checkpoints.git import run_git
from activities.checkpoints.remote_interface import (
    RemoteCapabilities,
    forgotten_mark,
    is_forgotten_mark,
)
from protocol.data_model import Data
from protocol.s3_address import S3Address

MAX_PACKS = 50
"""Each push adds a pack; above this number, small ones are merged."""
MAX_ATTEMPTS = 20
BACKOFF_SECONDS = 0.05
"""Longest wait before the first retry of a push that another host overtook; later waits grow."""
MAX_REMEMBERED = 1000
SWEEP_SECONDS = 86_400
"""Age at which packs that no list names, and folders of killed pushes, are deleted."""
_PUSHING = "pushing-"


class StoredPack(Data):
    key: str
    size: int
    tips: list[str]
    """Ids of the pushed commits; this pack and those before it contain everything they need."""


class S3PackListing(Data):
    refs: dict[str, str] = Field(default_factory=dict)
    packs: list[StoredPack] = Field(default_factory=list)

    @property
    def tips(self) -> list[str]:
        return list(dict.fromkeys(tip for pack in self.packs for tip in pack.tips))


@dataclass
class S3PackListingVersion:
    """A listing as read or written; `version` is None if the object does not exist yet."""

    listing: S3PackListing = field(default_factory=S3PackListing)
    version: str | None = None


class S3Remote:
    capabilities = RemoteCapabilities(deletes_objects=True)

    def __init__(self, address: S3Address) -> None:
        self._bucket = Bucket(address)
        self._lock = threading.Lock()
        self._remembered: OrderedDict[str, S3PackListingVersion] = OrderedDict()
        """Newest listing that this process read or wrote, by area; saves pushes from reading it
        again.
        """

    def push_refs(
        self,
        area: str,
        repository: Path,
        objects: Path | None,
        moved_refs: dict[str, str],
        new_refs: dict[str, str],
    ) -> None:
        before = self._recall_listing(area) or self._read_listing(area)
        for attempt in range(1, MAX_ATTEMPTS + 1):
            listing = before.listing
            refs = {**new_refs, **listing.refs, **moved_refs}
            if refs == listing.refs:
                return
            changed = [refs[name] for name in refs if refs[name] != listing.refs.get(name)]
            packs = list(listing.packs)
            if pack := self._upload_pack(area, repository, objects, changed, listing.tips):
                packs.append(pack)
            after = self._write_listing(area, S3PackListing(refs=refs, packs=packs), before)
            if after is not None:
                if len(packs) > MAX_PACKS:
                    self._merge_packs(area, repository, objects, after)
                return
            # Wait a random time, or the same host could lose every time.
            time.sleep(random.uniform(0, BACKOFF_SECONDS * attempt))
            before = self._read_listing(area)
        raise RemoteUnavailable(f"others changed the refs {MAX_ATTEMPTS} times meanwhile")

    def list_refs(self, area: str, folder: str) -> list[str]:
        refs = self._read_listing(area).listing.refs
        return [name for name in refs if name.startswith(f"{folder}/")]

    def fetch_packs(self, area: str, draft: Path) -> tuple[dict[str, str], list[Path]]:
        for _ in range(MAX_ATTEMPTS):
            listing = self._read_listing(area).listing
            packs = self._download_packs(area, listing, draft)
            if packs is not None:
                return listing.refs, packs
        raise RemoteUnavailable(f"{area} in the bucket lacks a pack that its list names")

    def forget_area(self, area: str, at: int) -> list[str]:
        for _ in range(MAX_ATTEMPTS):
            before = self._read_listing(area)
            living = [name for name in before.listing.refs if not is_forgotten_mark(name)]
            if not living:
                return []
            mark = S3PackListing(refs={forgotten_mark(at): "0" * 40}, packs=[])
            if self._write_listing(area, mark, before) is not None:
                stored = self._bucket.stale_keys(f"{area}/packs", -SWEEP_SECONDS)
                self._bucket.delete_objects(stored)
                return living
        raise RemoteUnavailable(f"others changed the refs {MAX_ATTEMPTS} times meanwhile")

    def check_access(self) -> None:
        self._bucket.check_access()

    def check_promises(self) -> None:
        self._bucket.require_conditions()

    def _download_packs(self, area: str, listing: S3PackListing, draft: Path) -> list[Path] | None:
        """Download the packs that a draft lacks; return None if one was deleted meanwhile."""
        packs = []
        for stored in listing.packs:
            if not _missing_s3_remote_commits(draft, None, stored.tips):
                continue
            target = draft / "download"
            if not self._bucket.download_object(f"{area}/packs/{stored.key}", target):
                return None
            # Git verifies the whole pack, so damage by a server is detected.
            place = draft / "objects" / "pack" / f"pack-{secrets.token_hex(20)}.pack"
            place.parent.mkdir(exist_ok=True)
            target.rename(place)
            run_git(draft, "index-pack", str(place))
            packs.append(place)
        return packs

    def _upload_pack(
        self,
        area: str,
        repository: Path,
        objects: Path | None,
        commits: list[str],
        known: list[str],
    ) -> StoredPack | None:
        """Upload a pack with what `commits` need beyond `known`; None if there is nothing."""
        missing = _missing_s3_remote_commits(repository, objects, known)
        tips = sorted(set(commits) - set(known))
        if not tips:
            return None
        revisions = [*tips, *(f"^{commit}" for commit in known if commit not in missing)]
        options = ("--revs", "--non-empty", "--delta-base-offset", "--quiet")
        _sweep_s3_push_folders(repository)
        # Git writes beside its objects and renames, which fails across file systems.
        with tempfile.TemporaryDirectory(prefix=_PUSHING, dir=repository) as folder:
            run_git(
                repository,
                "pack-objects",
                *options,
                f"{folder}/pack",
                objects=objects,
                stdin="\n".join(revisions).encode() + b"\n",
            )
            for file in Path(folder).glob("pack-*.pack"):
                key = f"{file.stem.removeprefix('pack-')}-{secrets.token_hex(4)}"
                self._bucket.upload_file(f"{area}/packs/{key}", file)
                return StoredPack(key=key, size=file.stat().st_size, tips=tips)
        return None

    def _merge_packs(
        self, area: str, repository: Path, objects: Path | None, before: S3PackListingVersion
    ) -> None:
        """Merge the newest packs up to one twice as large as those after it, if possible."""
        packs = before.listing.packs
        first = _first_s3_pack_to_merge(packs)
        older, merged = packs[:first], packs[first:]
        tips = sorted({tip for pack in merged for tip in pack.tips})
        if _missing_s3_remote_commits(repository, objects, tips):
            return  # a host that has all commits will merge
        with suppress(RemoteUnavailable):
            # Keep only commits without descendants among them: these include the others.
            output = run_git(repository, "merge-base", "--independent", *tips, objects=objects)
            known = [tip for pack in older for tip in pack.tips]
            pack = self._upload_pack(area, repository, objects, output.split(), known)
            if pack is None:
                return
            listing = S3PackListing(refs=before.listing.refs, packs=[*older, pack])
            if self._write_listing(area, listing, before) is None:
                return
            self._bucket.delete_objects([f"{area}/packs/{each.key}" for each in merged])
            named = {f"{area}/packs/{each.key}" for each in listing.packs}
            stale = self._bucket.stale_keys(f"{area}/packs", SWEEP_SECONDS)
            self._bucket.delete_objects([key for key in stale if key not in named])

    def _read_listing(self, area: str) -> S3PackListingVersion:
        stored = self._bucket.read_object(f"{area}/refs.json")
        if stored is None:
            return self._remember_listing(area, S3PackListingVersion())
        try:
            listing = S3PackListing.model_validate_json(stored.data)
        except ValidationError:
            raise RemoteUnavailable(f"{area}/refs.json in the bucket is damaged") from None
        return self._remember_listing(area, S3PackListingVersion(listing, stored.version))

    def _write_listing(
        self, area: str, listing: S3PackListing, before: S3PackListingVersion
    ) -> S3PackListingVersion | None:
        """Replace the listing that was read; return None if it has changed since."""
        data = listing.model_dump_json().encode()
        version = self._bucket.replace_object(f"{area}/refs.json", data, before.version)
        if version is None:
            return None
        return self._remember_listing(area, S3PackListingVersion(listing, version))

    def _recall_listing(self, area: str) -> S3PackListingVersion | None:
        with self._lock:
            return self._remembered.get(area)

    def _remember_listing(self, area: str, version: S3PackListingVersion) -> S3PackListingVersion:
        with self._lock:
            self._remembered[area] = version
            self._remembered.move_to_end(area)
            while len(self._remembered) > MAX_REMEMBERED:
                self._remembered.popitem(last=False)
        return version


def _sweep_s3_push_folders(repository: Path) -> None:
    for folder in repository.glob(f"{_PUSHING}*"):
        with suppress(FileNotFoundError):
            if folder.stat().st_mtime < time.time() - SWEEP_SECONDS:
                shutil.rmtree(folder, ignore_errors=True)


def _first_s3_pack_to_merge(packs: list[StoredPack]) -> int:
    """Return the index from which packs are merged, so that sizes fall by half at least."""
    first, size = len(packs) - 1, packs[-1].size
    while first and packs[first - 1].size < 2 * size:
        first -= 1
        size += packs[first].size
    return first


def _missing_s3_remote_commits(
    repository: Path, objects: Path | None, commits: list[str]
) -> set[str]:
    """Return those of the commits that a repository lacks."""
    repo = pygit2.Repository(str(repository))
    if objects is not None:
        repo.odb.add_disk_alternate(str(objects))
    missing = {commit for commit in commits if pygit2.Oid(hex=commit) not in repo.odb}
    repo.free()
    return missing
