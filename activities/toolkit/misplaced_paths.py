"""Paths that a model gets wrong: new ones beside the repository, and missing ones."""

from collections.abc import Iterator
from itertools import islice
from pathlib import PurePosixPath

from activities.checkpoints import Files, parse_path
from activities.checkpoints.checkpoint_errors import quote_path_in_error
from activities.toolkit.path_ownership import READ, is_system_path
from activities.toolkit.tool_context import ToolContext
from activities.toolkit.tool_errors import ToolError
from protocol.short_text import first_few

OWN_FOLDERS = ("notes", "output")
"""Folders in which agents keep their own files, whether or not the repository has such folders."""


def check_new_path(context: ToolContext, path: str) -> str:
    """Check the path of a file that a tool is about to make.

    A model that names files as the repository does leaves out the repository's folder. It would
    make a second `src/`, in which nothing finds its work.

    Returns:
        A sentence for the result if the file begins a folder beside the repository; else empty.

    Raises ToolError.
    """
    parts = parse_path(path)
    beside = "/".join(parts)
    if not parts or parts[0] in OWN_FOLDERS or beside in READ or is_system_path(beside):
        return ""
    if context.files.tree_entry(parts[:1]) or beside in _expected_paths(context):
        return ""
    folders = list(_product_folders(context))
    for folder in folders:
        if context.files.tree_entry((*folder, parts[0])):
            product, present, inside = (
                quote_path_in_error("/".join((*folder, *below))) for below in ((), parts[:1], parts)
            )
            raise ToolError(
                f"{quote_path_in_error(beside)} is outside {product}, which has {present}. The "
                f"path inside is {inside}; what is no part of {product} goes under notes/ or "
                "output/."
            )
    if not folders or len(parts) == 1:
        return ""
    top, product = (quote_path_in_error("/".join(each)) for each in (parts[:1], folders[0]))
    return f" {top} is new, and beside {product}, not in it."


def _product_folders(context: ToolContext) -> Iterator[tuple[str, ...]]:
    if link := context.repository:
        if subfolder := link.origin.start.subfolder:
            yield parse_path(f"{link.folder}/{subfolder}")
        yield parse_path(link.folder)
    if context.project_link:
        yield parse_path(context.project_link.folder)


def _expected_paths(context: ToolContext) -> set[str]:
    """Return the paths that the phase's todos name as theirs."""
    paths = {todo.updates for todo in context.state.phase.todos}
    for todo in context.state.phase.todos:
        if done_when := todo.done_when:
            named = done_when.matches or done_when.valid
            paths.add(named.path if named else done_when.file_exists or "")
    return paths


MAX_SEARCHED = 5000
MAX_NAMED = 3


def namesakes_note(files: Files, path: str) -> str:
    """Return a sentence on the files elsewhere that have the path's name, else on the folders;
    empty if none has."""
    name = PurePosixPath(path).name
    if not name:
        return ""
    named_files: list[str] = []
    # A dictionary keeps the order, and each folder once.
    named_folders: dict[str, None] = {}
    for entry in islice(files.walk(), MAX_SEARCHED):
        *parents, own = entry.path.split("/")
        if own == name:
            named_files.append(quote_path_in_error(entry.path))
        elif name in parents:
            folder = "/".join(parents[: parents.index(name) + 1])
            named_folders[quote_path_in_error(folder)] = None
    if named_files:
        return f" Files of that name: {first_few(named_files, MAX_NAMED)}."
    if named_folders:
        return f" Folders of that name: {first_few(list(named_folders), MAX_NAMED)}."
    return ""
