"""Writes requirements.txt and similar files from pyproject.toml: `make pins`.

Every version is pinned by hash, for all platforms. No address of a package index is written, so
that users install from their own.
"""

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
COMPARE = "benchmarks/compare/requirements"
FILES = {
    "requirements.txt": [],
    "requirements-dev.txt": ["--group", "dev"],
    # Not held to requirements.txt, so that every runner is measured in its present version.
    f"{COMPARE}.txt": [f"{COMPARE}.in", "--override", f"{COMPARE}-override.in"],
}
HEADER = "# Pinned from pyproject.toml by `make pins`.\n"


def write_pinned_requirements() -> None:
    if shutil.which("uv") is None:
        sys.exit("uv, which resolves the versions, is not on PATH; pip install uv brings it")
    for name, options in FILES.items():
        command = ["uv", "pip", "compile", "pyproject.toml", "--universal", "--generate-hashes"]
        command += ["--python-version", "3.11", "--upgrade", "--no-header", "--no-emit-index-url"]
        command += ["--no-annotate", "--quiet", *options]
        compiled = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if compiled.returncode:
            sys.exit(compiled.stderr)
        (ROOT / name).write_text(HEADER + compiled.stdout)


if __name__ == "__main__":
    write_pinned_requirements()
