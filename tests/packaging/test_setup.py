"""What setup reports on a machine that lacks something."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "setup.sh"
OLD = "#!/bin/sh\ncase $1 in --version) echo Python 3.8.18;; *) exit 1;; esac\n"
BARE = f'#!/bin/sh\ncase $2 in *ensurepip*) exit 1;; esac\nexec {sys.executable} "$@"\n'


@pytest.fixture
def bin(tmp_path: Path) -> Path:
    """Return the only folder on PATH, without Python."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("sh", "cat", "cmp", "cp", "rm"):
        executable = shutil.which(name)
        assert executable
        (folder / name).symlink_to(executable)
    return folder


def put(path: Path, content: str) -> None:
    path.write_text(content)
    path.chmod(0o755)


def setup(bin: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", SCRIPT],
        cwd=bin.parent, env={"PATH": str(bin)}, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_no_python(bin: Path) -> None:
    done = setup(bin)
    assert done.returncode == 1
    assert "needs Python 3.11 or newer; found: no python3" in done.stderr
    assert "apt install" in done.stderr
    assert not (bin.parent / ".venv").exists()


def test_a_python_that_is_too_old(bin: Path) -> None:
    put(bin / "python3", OLD)
    done = setup(bin)
    assert done.returncode == 1
    assert "needs Python 3.11 or newer; found: Python 3.8.18" in done.stderr


def test_a_python_without_venv(bin: Path) -> None:
    put(bin / "python3", BARE)
    done = setup(bin)
    assert done.returncode == 1
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    assert f"python{version}-venv" in done.stderr
    assert "ensurepip" in done.stderr


def test_another_name_on_path_is_taken(bin: Path) -> None:
    put(bin / "python3", OLD)
    (bin / "python3.12").symlink_to(sys.executable)
    done = setup(bin)
    assert done.returncode == 0, done.stderr
    assert (bin.parent / ".venv/bin/pip").exists()
