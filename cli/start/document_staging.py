"""Passes local documents to the worker through the workspaces root, which both can access."""

import hashlib
import os
import re
import secrets
import shutil
from pathlib import Path

from cli.output import UserError
from engine.root_location import open_workspaces_root
from protocol.git_address import git_address_without_user

_URL = re.compile(r"https?://\S+")


def stage_documents(
    documents: list[str], root: Path, limit: int, remote: str | None = None
) -> list[str]:
    """Return a job's `documents`: URLs unchanged, files staged as `staged:<sha>/<name>`.

    Args:
        documents: Paths and URLs as typed.
        limit: Maximum document size in bytes.
        remote: Remote that also receives the files, for workers on other hosts.

    Raises:
        UserError: A document is missing, unreadable or too large.
        SetupError: The root cannot be written.
    """
    local = {
        text: _check_local_document(text, limit) for text in documents if not _URL.fullmatch(text)
    }
    if not local:
        return list(documents)
    try:
        folder = open_workspaces_root(root).staged
        staged = {text: _stage_document_copy(path, folder) for text, path in local.items()}
        if remote:
            _upload_staged_documents(list(staged.values()), folder, remote)
        return [staged.get(text, text) for text in documents]
    except OSError as error:
        raise UserError(f"a document cannot be staged: {error}") from None


def _check_local_document(text: str, limit: int) -> Path:
    try:
        path = Path(text).expanduser()
        exists = path.exists()
    except (OSError, RuntimeError) as error:  # the name is too long, or the user does not exist
        reason = getattr(error, "strerror", None) or "no such user or home"
        raise UserError(f"document {text[:200]}: {reason.lower()}") from None
    if not exists:
        raise UserError(f"document {text}: there is no such file")
    if not path.is_file():
        raise UserError(f"document {text}: not a file; name each document on its own")
    if not os.access(path, os.R_OK):
        raise UserError(f"document {text}: cannot be read")
    # Checked here too: the worker would refuse it, and the copy would remain.
    if (size := path.stat().st_size) > limit:
        raise UserError(
            f"document {text}: {size:,} bytes, larger than {limit:,} (limits.file_bytes); split it"
        )
    return path


def _stage_document_copy(path: Path, folder: Path) -> str:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()[:16]
    target = folder / digest / path.name
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        # Copy before naming, since a worker may already be looking for it.
        draft = target.with_name(f".{secrets.token_hex(6)}")
        shutil.copyfile(path, draft)
        draft.replace(target)
    return f"staged:{digest}/{path.name}"


def _upload_staged_documents(staged: list[str], folder: Path, remote: str) -> None:
    """Store staged files in the remote. Raises UserError, OSError."""
    from activities.checkpoints import GitNotInstalled, RemoteUnavailable  # noqa: PLC0415
    from activities.checkpoints.remote_files import store_remote_file  # noqa: PLC0415 - takes a moment

    for entry in staged:
        name = entry.removeprefix("staged:")
        try:
            store_remote_file(remote, name, folder / name)
        except (GitNotInstalled, RemoteUnavailable) as error:
            raise UserError(
                f"document {folder / name}: cannot be put into the remote "
                f"{git_address_without_user(remote)}, "
                f"from where workers take it: {error}"
            ) from None
