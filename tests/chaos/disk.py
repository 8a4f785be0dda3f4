"""A small file system for tests that fill it, mounted where no other process sees it."""

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

MARK = "LONGHAUL_CHAOS_MOUNTS"
MEGABYTES = 96


def enter_private_mounts(module: str = "tests.chaos") -> None:
    """Restart this module with private mounts that end with it, if that is permitted."""
    if MARK in os.environ:
        return
    flags = "-m" if os.geteuid() == 0 else "-rm"
    with suppress(OSError):
        if subprocess.run(["unshare", flags, "true"], capture_output=True, check=False).returncode:
            return
        os.environ[MARK] = "1"
        again = [sys.executable, "-m", module, *sys.argv[1:]]
        os.execvp("unshare", ["unshare", flags, *again])


def can_mount() -> bool:
    """Return whether this process was started with private mounts."""
    return MARK in os.environ


def mount(folder: Path) -> None:
    """Raises CalledProcessError."""
    folder.mkdir(parents=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={MEGABYTES}m", "chaos", str(folder)]
    subprocess.run(command, check=True, capture_output=True)


def unmount(folder: Path) -> None:
    subprocess.run(["umount", "-l", str(folder)], check=False, capture_output=True)


def fill(folder: Path) -> Path:
    """Write a file that uses all free space; removing it frees the space."""
    ballast = folder / "ballast"
    with ballast.open("wb") as file, suppress(OSError):
        while True:
            os.posix_fallocate(file.fileno(), file.seek(0, os.SEEK_END), 1 << 16)
    with ballast.open("ab", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(512))
    return ballast
