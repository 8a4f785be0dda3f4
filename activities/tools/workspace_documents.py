"""Documents in the workspace: their paths, and their text for the tools that read it."""

import hashlib
from pathlib import PurePosixPath

from activities.checkpoints import Files
from activities.checkpoints import parse_path as parts_of
from activities.documents.bounded_reader import read_document_bounded
from activities.documents.pages import (
    DocumentError,
    Page,
    PicturesAlone,
    Quality,
    ReadingResult,
    parse_pages,
)
from activities.job.input_documents import (
    input_document_quality_name,
    input_document_text_name,
    original_document_paths,
)
from activities.toolkit.path_ownership import owned_path_refusal
from activities.toolkit.tool_context import ToolContext
from activities.toolkit.tool_errors import ToolError
from activities.web.page_sources import FOLDER as FETCHED


def document_result_folder(path: str) -> str:
    """Return a document's folder for results, such as `laws/tea_pdf`, which looks like no file."""
    parts = parts_of(path)
    name = PurePosixPath(*(parts[1:] if parts[0] == "documents" else parts))
    return str(name.with_name(f"{name.stem}_{name.suffix[1:]}") if name.suffix else name)


def read_workspace_pages(context: ToolContext, path: str) -> list[Page]:
    return read_workspace_document(context.files, path).pages


def read_workspace_document(files: Files, path: str) -> ReadingResult:
    name = canonical_document_path(files, path)
    data = files.read(name)
    beside = input_document_text_name(name)
    try:
        # Only inputs have trusted text beside them; elsewhere the agent could forge what it cites.
        if _is_document_write_protected(name) and files.entry(beside):
            return ReadingResult(
                parse_pages(files.read(beside).decode()),
                quality=_stored_document_quality(files, name),
            )
        return read_document_bounded(PurePosixPath(path).name, data)
    except PicturesAlone:
        raise ToolError(
            f"{path} is pictures alone, without text. A model that has view_image can look at it."
        ) from None
    except DocumentError as error:
        raise ToolError(f"{path}: {error}") from None


def document_digest(files: Files, path: str) -> str:
    """Return the SHA-256 of a document's bytes, which distinguishes its versions."""
    return hashlib.sha256(files.read(path)).hexdigest()


def input_document_paths(files: Files) -> list[str]:
    return [path for path in original_document_paths(files) if not path.startswith(f"{FETCHED}/")]


def _stored_document_quality(files: Files, name: str) -> Quality:
    path = input_document_quality_name(name)
    return Quality() if files.entry(path) is None else Quality.from_json(files.read(path).decode())


def canonical_document_path(files: Files, path: str) -> str:
    """Return the document's path, also for the text beside it, which has all pages in one file."""
    name = "/".join(parts_of(path))
    document = name.removesuffix(input_document_text_name(""))
    if document == name or not _is_document_write_protected(document) or files.entry(name) is None:
        return name
    meant = files.entry(document)
    return document if meant and meant.kind == "file" else name


def _is_document_write_protected(name: str) -> bool:
    return owned_path_refusal(name, "strategic") is not None
