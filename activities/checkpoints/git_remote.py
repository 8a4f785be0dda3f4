"""A git repository as a remote: git itself pushes and fetches."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pygit2

from activities.checkpoints.checkpoint_errors import RemoteUnavailable
from activities.checkpoints.git import run_git
from activities.checkpoints.remote_interface import (
    RemoteCapabilities,
    forgotten_mark,
    is_forgotten_mark,
)

OWNER_SECONDS = 20
MAX_DELETED = 500
"""Refs that one command deletes: a command line has no room for all of a long job."""
REFS = "refs/longhaul/"
"""Prefix of our refs, both in the remote and in drafts of fetched repositories."""


class GitRemote:
    capabilities = RemoteCapabilities(deletes_objects=False)

    def __init__(self, url: str) -> None:
        self._url = url

    def push_refs(
        self,
        area: str,
        repository: Path,
        objects: Path | None,
        moved_refs: dict[str, str],
        new_refs: dict[str, str],
    ) -> None:
        prefix = f"{REFS}{area}/"
        specs = [f"+{commit}:{prefix}{name}" for name, commit in moved_refs.items()]
        specs += [
            f"{commit}:{prefix}{name}"
            for name, commit in new_refs.items()
            if name not in moved_refs
        ]
        options = ("--porcelain", "--no-verify")
        try:
            run_git(repository, "push", *options, self._url, *specs, objects=objects)
        except RemoteUnavailable as error:
            lines = [line.split("\t") for line in error.output.splitlines()]
            rejected = [line for line in lines if line[0] == "!"]
            new_specs = {f":{prefix}{name}" for name in new_refs.keys() - moved_refs.keys()}
            # Do not send a new ref that exists with another commit; push again after a refusal.
            reasons = [
                why
                for _, spec, why in rejected
                if why.startswith("[remote") or not spec.endswith(tuple(new_specs))
            ]
            if reasons:
                raise RemoteUnavailable(f"{reasons[0]} {error}", error.output) from None
            if not rejected:
                raise

    def list_refs(self, area: str, folder: str) -> list[str]:
        prefix = f"{REFS}{area}/"
        pattern = f"{prefix}{folder}/*"
        output = run_git(None, "ls-remote", self._url, pattern, seconds=OWNER_SECONDS)
        refs = [line.partition("\t")[2] for line in output.splitlines()]
        return [ref.removeprefix(prefix) for ref in refs if ref.startswith(prefix)]

    def forget_area(self, area: str, at: int) -> list[str]:
        prefix = f"{REFS}{area}/"
        output = run_git(None, "ls-remote", self._url, f"{prefix}*")
        names = [line.partition("\t")[2] for line in output.splitlines()]
        mine = [name for name in names if name.startswith(prefix)]
        living = [name for name in mine if not is_forgotten_mark(name.removeprefix(prefix))]
        if not living:
            return []
        with TemporaryDirectory(prefix="longhaul-forget-") as folder:
            commit = _write_empty_commit(folder, "A forgotten job")
            spec = f"+{commit}:{prefix}{forgotten_mark(at)}"
            run_git(Path(folder), "push", "--no-verify", self._url, spec)
            for start in range(0, len(living), MAX_DELETED):
                deleted = [f":{name}" for name in living[start : start + MAX_DELETED]]
                run_git(Path(folder), "push", "--no-verify", self._url, *deleted)
        return [name.removeprefix(prefix) for name in living]

    def check_access(self) -> None:
        run_git(None, "ls-remote", self._url, "HEAD", seconds=OWNER_SECONDS)
        with TemporaryDirectory(prefix="longhaul-probe-") as folder:
            commit = _write_empty_commit(folder, "A probe")
            # The server says whether it takes pushes, and nothing is written.
            spec = f"{commit}:{REFS}probe"
            run_git(Path(folder), "push", "--dry-run", self._url, spec, seconds=OWNER_SECONDS)

    def check_promises(self) -> None:
        """See `Remote`. Git moves a ref only from where it was read."""

    def fetch_packs(self, area: str, draft: Path) -> tuple[dict[str, str], list[Path]]:
        refspec = f"+{REFS}{area}/*:{REFS}*"
        options = ("--quiet", "--no-tags", "--no-write-fetch-head")
        run_git(draft, "fetch", *options, self._url, refspec)
        repo = pygit2.Repository(str(draft))
        refs = {
            ref.removeprefix(REFS): str(repo.lookup_reference(ref).target)
            for ref in repo.listall_references()
        }
        repo.free()
        return refs, sorted((draft / "objects" / "pack").glob("pack-*.pack"))


def _write_empty_commit(folder: str, message: str) -> str:
    repo = pygit2.init_repository(folder, bare=True)
    who = pygit2.Signature("longhaul", "longhaul@localhost", 0, 0)
    return str(repo.create_commit(None, who, who, message, repo.TreeBuilder().write(), []))
