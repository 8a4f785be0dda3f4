"""File tools. They read and write the checkpoint's tree, never a folder."""

import re
from fnmatch import fnmatchcase
from typing import Annotated

from pydantic import Field

from activities.checkpoints import FileEntry, Files
from activities.checkpoints.checkpoint_errors import quote_path_in_error
from activities.job.conversation_calls import WRITTEN
from activities.job.workspace_summary import workspace_summary
from activities.text.safe_text import split_lines
from activities.toolkit.misplaced_paths import check_new_path
from activities.toolkit.path_ownership import DOCUMENT_NOTICE, is_path_of_outside_content
from activities.toolkit.registry import tool
from activities.toolkit.tool_context import ToolContext
from activities.toolkit.tool_errors import ToolError
from protocol.short_text import count_noun
from protocol.tools import READ_LINES

Path = Annotated[str, Field(max_length=1000, description="Path in the workspace.")]
Target = Annotated[str, Field(max_length=1000)]
"""A path without that description, which every request pays for."""
MAX_LISTED = 500
MAX_LINE = 400
LINES_AROUND = 40
_CRLF = re.compile(r"\r?\n")


@tool("files", effect="reads")
def read_file(
    context: ToolContext,
    path: Path,
    offset: Annotated[int, Field(ge=1, description="First line to show, from 1.")] = 1,
    limit: Annotated[int, Field(ge=1, le=5000)] = READ_LINES,
    column: Annotated[
        int, Field(ge=1, le=10**7, description="First character of each line, from 1.")
    ] = 1,
) -> str:
    """Read a text file, with line numbers.

    Shows `limit` lines from line `offset`. The header says how many lines there are; read on
    with a larger offset, and with a larger column in a line too long to be shown whole. More than
    20,000 characters (by default) are cut in the middle: read long files in parts, side by side.
    """
    lines = split_lines(_read_file_text(context.files, path))
    context.note_read(path)
    if offset > max(len(lines), 1):
        raise ToolError(f"{path} has {len(lines)} lines; offset {offset} is past its end.")
    shown = lines[offset - 1 : offset - 1 + limit]
    header = f"{path}, lines {offset}-{offset - 1 + len(shown)} of {len(lines)}"
    if column > 1:
        header += (
            f", from column {column:,} on (the longest has {max(map(len, shown), default=0):,})"
        )
    if is_path_of_outside_content(path):
        header += f". {DOCUMENT_NOTICE}"
    numbered = (f"{n:6}\t{line[column - 1 :]}" for n, line in enumerate(shown, offset))
    return "\n".join([header, *numbered])


@tool("files", effect="writes")
def write_file(context: ToolContext, path: Target, content: str) -> str:
    """Write a text file; an existing one is replaced.

    Folders on the way are made.
    """
    beside = _write_file_text(context, path, content)
    return f"Wrote {len(content):,} characters to {path}.{beside}"


@tool("files", effect="writes")
def append_file(context: ToolContext, path: Target, content: str) -> str:
    """Add text to the end of a file; a missing one is made.

    Nothing is put between what was there and the new text: begin with a line break if one is
    wanted.
    """
    before = _read_file_text(context.files, path) if context.files.entry(path) else ""
    beside = _write_file_text(context, path, before + content)
    length = len(before) + len(content)
    return f"Appended {len(content):,} characters to {path}, now {length:,}.{beside}"


@tool("files", effect="writes")
def edit_file(
    context: ToolContext,
    path: Target,
    old: Annotated[str, Field(min_length=1, description="Text to replace, exactly as it is.")],
    new: str,
    replace_all: bool = False,
) -> str:
    """Replace a passage of a text file.

    `old` must occur exactly once, unless `replace_all` is true. An edit is refused when the
    file changed since it was last read; the answer then shows the lines as they are. A file with
    CRLF line ends keeps them.
    """
    text = _read_file_text(context.files, path)
    read, present = context.reads.entry(path), context.files.entry(path)
    if read and present and read.id != present.id:
        context.note_read(path)
        raise ToolError(
            f"{path} changed since it was last read, nothing was edited. It is now:\n"
            f"{_file_lines_around(text, old)}"
        )
    old, new = _match_file_line_ends(text, old, new)
    count = text.count(old)
    if count == 0:
        raise ToolError(
            f"{path} does not contain that text. It is now:\n{_file_lines_around(text, old)}"
        )
    if old == new:
        raise ToolError(f"old and new are the same text: nothing would change in {path}.")
    # Count overlapping places too: it is unclear which one is meant.
    if not replace_all and text.find(old, text.find(old) + 1) >= 0:
        times = f"{count} times" if count > 1 else "in places that overlap"
        raise ToolError(
            f"{path} contains that text {times}. Give more of the surrounding text, or set "
            "replace_all."
        )
    # Check the size first: the result of a short file may not fit into memory.
    if (size := len(text) + count * (len(new) - len(old))) > context.files.limit:
        raise ToolError(
            f"{path} would have {size:,} characters; a file may have {context.files.limit:,}. "
            "Replace less."
        )
    _write_file_text(context, path, text.replace(old, new))
    return f"Replaced {count_noun(count, 'passage')} in {path}."


@tool("files", effect="reads")
def list_files(
    context: ToolContext,
    path: Path = "",
    pattern: Annotated[
        str | None,
        Field(
            max_length=1000,
            description="Shell pattern on the whole path or on what of it lies below `path`.",
        ),
    ] = None,
) -> str:
    """List a folder, or with a pattern every matching path below it.

    Shows size in bytes; folders end in a slash.
    """
    if pattern is None:
        entries = context.files.children(path)
    else:
        top = context.files.resolve_links(path)
        entries = [
            e for e in context.files.walk(path) if _matches_list_files_pattern(e.path, pattern, top)
        ]
    if not entries:
        return f"Nothing in {path or 'the workspace'}" + (
            f" matches {pattern}." if pattern else "."
        )
    lines = [_file_listing_line(entry) for entry in entries[:MAX_LISTED]]
    if len(entries) > MAX_LISTED:
        lines.append(
            f"[TRUNCATED {len(entries) - MAX_LISTED} more; list a folder or use a pattern]"
        )
    return "\n".join(lines)


def _matches_list_files_pattern(path: str, pattern: str, folder: str) -> bool:
    # In shells `**/` also matches no folder at all.
    patterns = {pattern, pattern.replace("**/", "")}
    names = {path, path.removeprefix(f"{folder}/")}
    return any(fnmatchcase(name, each) for name in names for each in patterns)


@tool("files", effect="writes")
def move_file(context: ToolContext, old: Target, new: Target) -> str:
    """Move or rename a file or folder; refused when the target exists."""
    moved = context.files.entry(old)
    if moved and moved.kind != "folder":
        _refuse_folder_path(new)
    if context.files.entry(new):
        raise ToolError(f"{new} exists. Choose another name or delete it first.")
    beside = check_new_path(context, new)
    context.files = context.files.move(old, new)
    return f"Moved {old} to {new}.{beside}"


@tool("files", effect="writes")
def delete_file(context: ToolContext, path: Target) -> str:
    """Delete a file, or a folder with all that is in it."""
    context.files = context.files.delete(path)
    return f"Deleted {path}."


@tool("files", effect="writes", local=False, seconds=60, owns=("workspace_summary.md",))
def generate_workspace_summary(context: ToolContext) -> str:
    """Bring workspace_summary.md up to date: every file with purpose and size, and progress."""
    text = workspace_summary(
        context.files,
        context.changes,
        context.state,
        context.config.shell.volatile,
        repository=context.repository,
    )
    _write_file_text(context, "workspace_summary.md", text)
    return f"Wrote {len(text):,} characters to workspace_summary.md."


def _write_file_text(context: ToolContext, path: str, content: str) -> str:
    """Write the file; return what the result should say of its place."""
    if content.strip() == WRITTEN:
        raise ToolError(
            f"{WRITTEN} stands for a text that is in its file. Write the text itself, or leave "
            "the file as it is."
        )
    _refuse_folder_path(path)
    beside = check_new_path(context, path)
    context.files = context.files.write(path, content.encode())
    context.note_read(path)
    return beside


def _refuse_folder_path(path: str) -> None:
    if path.endswith(("/", "/.")):
        raise ToolError(
            f"{quote_path_in_error(path)} names a folder. Give the file's name too; folders on the "
            "way are made."
        )


def _read_file_text(files: Files, path: str) -> str:
    data = files.read(path)
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise ToolError(
            f"{path} is not a text file in UTF-8 ({len(data):,} bytes). "
            "extract_document_text reads PDF, DOCX, HTML and text in other encodings."
        ) from None


def _file_listing_line(entry: FileEntry) -> str:
    if entry.kind == "folder":
        return f"{entry.path}/"
    return f"{entry.path}  {entry.size:,}" + (" (link)" if entry.kind == "link" else "")


def _match_file_line_ends(text: str, old: str, new: str) -> tuple[str, str]:
    """Return `old` and `new` with the line ends of a CRLF text, since read_file hides them."""
    ends = text.count("\r\n")
    # If `old` has a carriage return, the model chose the line ends itself.
    throughout = ends == text.count("\n") and "\r" not in old
    if ends and (throughout or old not in text):
        return _CRLF.sub("\r\n", old), _CRLF.sub("\r\n", new)
    return old, new


def _file_lines_around(text: str, passage: str) -> str:
    """Return numbered lines around the first line of `passage`, else from the start of the text."""
    lines = split_lines(text)
    first = passage.strip().split("\n")[0].strip()
    index = next((n for n, line in enumerate(lines) if first and first in line), 0)
    start = max(0, index - LINES_AROUND // 4)
    shown = lines[start : start + LINES_AROUND]
    return "\n".join(f"{n:6}\t{line[:MAX_LINE]}" for n, line in enumerate(shown, start + 1))
