"""Import a person's edits in a workspace folder into a tree."""

from activities.checkpoints import folder_io
from activities.checkpoints.checkin import Checkin
from activities.checkpoints.checkpoint_repository import Checkpoints
from activities.checkpoints.entries import with_entry, without_entry
from activities.checkpoints.projection import locked_projection
from activities.checkpoints.tree_diff import Change, diff_files
from activities.checkpoints.tree_files import Files
from activities.checkpoints.workspaces_root import Root


def take_edits(
    checkpoints: Checkpoints, root: Root, job: str, base: Files
) -> tuple[Files, list[str]]:
    """Apply a person's changes in `<root>/<job>/` to `base`, the job's newest files.

    A folder that lags behind `base` reverts nothing: only differences from what was projected
    there count as changes. Links stay links; executable bits, empty folders and nested
    repositories are included; `errors/` is not. Returns the files and one line per omitted entry
    (devices, sockets, FIFOs, files over `base.limit`, overlong paths), which keeps its state from
    `base`. Raises OSError, CheckpointMissing.
    """
    with locked_projection(checkpoints) as record:
        if not root.workspace(job).is_dir():
            return base, [f"There is no folder {root.workspace(job)}; nothing was taken from it."]
        with folder_io.open_folder(None, root.workspace(job)) as fd:
            checkin = Checkin(base)
            edited = Files(base.store, checkin.import_folder(fd).hex(), limit=base.limit)
    trees = [record.tree, *record.started] if record else []
    known = [Files(base.store, tree) for tree in dict.fromkeys(trees) if tree]
    if known != [base]:
        edited = _merge_edits(base, edited, known)
    return edited, checkin.notes


def _merge_edits(base: Files, edited: Files, known: list[Files]) -> Files:
    """Apply to `base` the entries of `edited` that none of the trees we may have projected has."""
    changes = [
        change
        for change in diff_files(base, edited)
        if not any(_tree_has_edit(tree, change) for tree in known) and (known or change.new)
    ]
    result = base

    def is_removed(path: str) -> bool:
        return edited.tree_entry(tuple(path.split("/"))) is None

    for change in changes:
        if change.new is None:
            result = without_entry(result, change.path, is_removed)
    placed_folder = ""
    for change in changes:
        if change.new is None or (placed_folder and change.path.startswith(placed_folder)):
            continue
        path = _topmost_edited_path(change.path, [base, *known])
        result = with_entry(result, path, edited.tree_entry(tuple(path.split("/"))))
        placed_folder = f"{path}/"
    return result


def _topmost_edited_path(path: str, trees: list[Files]) -> str:
    """Return the highest parent folder that is in none of the trees, else the path itself.

    A new folder is added as a whole; adding its files one by one would rewrite all its parents
    each time.
    """
    parts = tuple(path.split("/"))
    for depth in range(1, len(parts)):
        if all(tree.tree_entry(parts[:depth]) is None for tree in trees):
            return "/".join(parts[:depth])
    return path


def _tree_has_edit(tree: Files, change: Change) -> bool:
    raw = tree.tree_entry(tuple(change.path.split("/")))
    entry = tree.to_entry(tuple(change.path.split("/")), raw) if raw else None
    return entry == change.new
