"""What a person edited in a workspace folder, taken into a tree."""

from activities.checkpoints import folder_io
from activities.checkpoints.checkin import Checkin
from activities.checkpoints.diff import Change, diff
from activities.checkpoints.entries import with_entry, without_entry
from activities.checkpoints.files import Files
from activities.checkpoints.projection import projecting
from activities.checkpoints.repository import Checkpoints
from activities.checkpoints.root import Root


def take_edits(
    checkpoints: Checkpoints, root: Root, job: str, base: Files
) -> tuple[Files, list[str]]:
    """`base`, the job's newest files, with what a person changed in `<root>/<job>/`.

    A folder that lags behind `base` takes nothing back: only what differs from what was projected
    there counts as a change. Links are kept as links; executable bits, empty folders and nested
    repositories come along; `errors/` does not. Returns the files and a line for each thing left
    out: devices, sockets, FIFOs, files over `base.limit`, paths too long; there `base` stays.
    Raises OSError, CheckpointMissing.
    """
    with projecting(checkpoints) as record:
        if not root.workspace(job).is_dir():
            return base, [f"There is no folder {root.workspace(job)}; nothing was taken from it."]
        with folder_io.opened(None, root.workspace(job)) as fd:
            checkin = Checkin(base)
            taken = Files(base.store, checkin.take(fd).hex(), limit=base.limit)
    trees = [record.tree, *record.started] if record else []
    known = [Files(base.store, tree) for tree in dict.fromkeys(trees) if tree]
    if known != [base]:
        taken = _changes_on(base, taken, known)
    return taken, checkin.notes


def _changes_on(base: Files, taken: Files, known: list[Files]) -> Files:
    """`base` with what in `taken` is in none of the trees that we ourselves may have put there."""
    changes = [
        change
        for change in diff(base, taken)
        if not any(_same(tree, change) for tree in known) and (known or change.new)
    ]
    result = base

    def gone(path: str) -> bool:
        return taken.raw(tuple(path.split("/"))) is None

    for change in changes:
        if change.new is None:
            result = without_entry(result, change.path, gone)
    whole = ""
    for change in changes:
        if change.new is None or (whole and change.path.startswith(whole)):
            continue
        path = _highest(change.path, [base, *known])
        result = with_entry(result, path, taken.raw(tuple(path.split("/"))))
        whole = f"{path}/"
    return result


def _highest(path: str, trees: list[Files]) -> str:
    """The highest folder above that path which none of the trees has, else the path itself.

    It is put as a whole: of its files each by itself would make every folder above it anew.
    """
    parts = tuple(path.split("/"))
    for depth in range(1, len(parts)):
        if all(tree.raw(parts[:depth]) is None for tree in trees):
            return "/".join(parts[:depth])
    return path


def _same(tree: Files, change: Change) -> bool:
    raw = tree.raw(tuple(change.path.split("/")))
    there = tree.entry_of(tuple(change.path.split("/")), raw) if raw else None
    return there == change.new
