"""The image's steps, without a container program: in a root that bubblewrap makes.

The packages of Debian's that the image adds, and its user's account, need a real root and are left
out.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from activities.commands.sandbox import find_bwrap, sandbox_problem

ROOT = Path(__file__).parents[2]
WHY = sandbox_problem(find_bwrap())
OWN = ("/opt/longhaul", "/source", "/wheels", "/var/lib/longhaul")
"""Folders that the steps write, instead of this machine's."""
REPLACED = {"dev", "opt", "proc", "source", "tmp", "var", "wheels"}
HEALTH_SECONDS = 60

pytestmark = pytest.mark.skipif(bool(WHY), reason=WHY or "")


def read_instructions() -> list[tuple[str, str]]:
    """Return the Containerfile's instructions and their arguments, with joined lines."""
    text = (ROOT / "Containerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(name, rest.strip()) for name, _, rest in (line.partition(" ") for line in lines)]


def read_stage(number: int) -> list[tuple[str, str]]:
    """Return the instructions after the given `FROM`, counted from 0."""
    instructions = read_instructions()
    begins = [place for place, (name, _) in enumerate(instructions) if name == "FROM"]
    return instructions[begins[number] + 1 : [*begins, len(instructions)][number + 1]]


class ImageRoot:
    """This machine's root, read-only, with the image's own folders in place of what is there."""

    def __init__(self, place: Path) -> None:
        self._place = place
        for path in OWN:
            self._outside(path).mkdir(parents=True)

    def _outside(self, path: str) -> Path:
        return self._place / path.removeprefix("/")

    def _mounts(self) -> Iterator[str]:
        for path in sorted({*Path("/").glob("*"), *Path("/opt").glob("*")}):
            if path.is_symlink():
                yield from ("--symlink", str(path.readlink()), str(path))
            elif path.is_dir() and path.name not in REPLACED:
                yield from ("--ro-bind", str(path), str(path))
        for own in OWN:
            yield from ("--bind", str(self._outside(own)), own)
        yield from ("--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp")
        # The checkout, Python and pip's settings may be in a folder that is replaced.
        for needed in (sys.prefix, sys.base_prefix, str(Path.home())):
            if Path(needed).parts[1:2] and Path(needed).parts[1] in REPLACED:
                yield from ("--ro-bind", needed, needed)

    def copy(self, names: list[str], path: str) -> None:
        """Copy what `.dockerignore` leaves of these names, as `COPY` does."""
        lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
        kept = [line.removeprefix("!") for line in lines if line.startswith("!")]
        unwanted = shutil.ignore_patterns(
            *(line.removeprefix("**/") for line in lines if line.startswith("**/"))
        )
        for name in kept if names == ["."] else names:
            assert name in kept
            if (source := ROOT / name).is_dir():
                shutil.copytree(source, self._outside(path) / name, ignore=unwanted)
            else:
                shutil.copy(source, self._outside(path) / name)

    def run(self, script: str, *options: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run a shell script in the root."""
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("LONGHAUL_")}
        # Most of what is installed is never imported here.
        inherited["PIP_NO_COMPILE"] = "1"
        tools = f"{Path(sys.executable).parent}:{inherited['PATH']}"
        return subprocess.run(
            [
                str(find_bwrap()), *self._mounts(), "--unshare-pid", "--die-with-parent", *options,
                "/bin/sh", "-ec", script,
            ],
            env={**inherited, "PATH": tools, **variables}, check=False, capture_output=True,
            text=True,
        )  # fmt: skip


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> ImageRoot:
    """Carry out the steps of the stage that builds."""
    root = ImageRoot(tmp_path_factory.mktemp("image"))
    for name, arguments in read_stage(0):
        if name == "COPY":
            *names, path = arguments.split()
            root.copy(names, path.rstrip("/"))
        else:
            assert name == "RUN", name
            done = root.run(arguments)
            if "Failed to establish a new connection" in done.stderr:
                pytest.skip("the package index cannot be reached")
            assert done.returncode == 0, done.stdout + done.stderr
    return root


def test_the_worker_of_the_image_is_healthy_as_its_user(image: ImageRoot) -> None:
    stage = read_stage(1)
    assert ("COPY", "--from=build /opt/longhaul /opt/longhaul") in stage
    values = {name: arguments for name, arguments in stage if name not in ("RUN", "COPY")}
    variables = dict(re.findall(r"(LONGHAUL_\w+|PYTHONUNBUFFERED)=(\S+)", values["ENV"]))
    [command] = re.findall(r'\["(.+)"\]', values["CMD"])
    [check] = re.findall(r'CMD \["python", "-c", "(.+)"\]$', values["HEALTHCHECK"])
    done = image.run(
        f"""
        export PATH="/opt/longhaul/bin:$PATH"
        temporal server start-dev --headless --log-level error >/dev/null 2>&1 &
        while ! {command} >log 2>&1; do sleep 0.3; done &
        for _ in $(seq {2 * HEALTH_SECONDS}); do
            if python -c "{check}" 2>/dev/null; then exit 0; fi
            sleep 0.5
        done
        cat log; exit 1
        """,
        "--unshare-user", "--uid", values["USER"], "--gid", values["USER"], "--unshare-net",
        "--chdir", values["WORKDIR"],
        **variables, HOME=values["WORKDIR"], USER="longhaul",
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
