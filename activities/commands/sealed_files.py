"""Files of the worker's machine that only checks may read.

They are no part of a workspace: the sandbox of a check shows them, that of the agent's commands
does not.
"""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from activities.commands.sandbox import SandboxUnavailable
from config.schema.work_checks import Sealed

PLACE = "/sealed"
"""Where the sandbox of a check shows them."""


def sealed_digest(path: Path) -> str:
    total = hashlib.sha256()
    paths = sorted(each for each in path.rglob("*") if each.is_file()) if path.is_dir() else [path]
    for each in paths:
        name = str(each.relative_to(path)) if each != path else ""
        total.update(f"{name}\0{hashlib.sha256(each.read_bytes()).hexdigest()}\n".encode())
    return total.hexdigest()


def pin_sealed_files(sealed: Sequence[Sealed]) -> str:
    """Record the digest of each file; return why one cannot be used, empty if all can."""
    for each in sealed:
        try:
            each.digest = sealed_digest(Path(each.path))
        except OSError as problem:
            return f"sealed: {each.path} cannot be read on this machine ({problem.strerror})"
    return ""


def sealed_folders(sealed: Sequence[Sealed]) -> Mapping[str, Path]:
    """Return what a check's sandbox shows, by path in it.

    Raises SandboxUnavailable: Something is missing here, or is not as it was when the job began.
    """
    for each in sealed:
        try:
            digest = sealed_digest(Path(each.path))
        except OSError as problem:
            raise SandboxUnavailable(
                f"The sealed {each.path} cannot be read here ({problem.strerror}): put it back."
            ) from None
        if each.digest and digest != each.digest:
            raise SandboxUnavailable(
                f"The sealed {each.path} is not as it was when the job began: put it back, or "
                "start anew with it."
            )
    return {f"{PLACE}/{Path(each.path).name}": Path(each.path) for each in sealed}


def shows_output(sealed: Sequence[Sealed]) -> bool:
    """Return whether an agent may see what a check prints."""
    return all(each.show == "output" for each in sealed)
