"""A package's source archive: a job installs the tests' dependencies and runs the tests."""

import functools
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from temporalio.client import Client

from activities.checkpoints import Root
from activities.commands import sandbox
from tests.activities.source_repository.origins import WorkTree
from tests.workflows.serving import serving
from tests.workflows.short import DONE, Short, close, hand_over, job, plan

WHY = sandbox.sandbox_problem(sandbox.find_bwrap())
pytestmark = pytest.mark.skipif(WHY is not None, reason=f"no sandbox here: {WHY}")
FETCHED = Path(__file__).parents[1] / ".fetched"
NEEDED = ("pytest==9.*", "MarkupSafe>=2", "setuptools>=77")
RUN_TESTS = (
    "pip install -q --no-deps --no-index --no-build-isolation --target /tmp/mako ./repo"
    " && cd repo && PYTHONPATH=/tmp/mako pytest -q -p no:cacheprovider test"
)
NPM_NEEDED = (
    *("es-value-fixtures@1.7.1", "for-each@0.3.5", "has-bigints@1.1.0", "has-proto@1.2.0"),
    *("has-override-mistake@1.0.1", "has-property-descriptors@1.0.2", "has-symbols@1.1.0"),
    *("iconv-lite@0.5.2", "mock-property@1.1.0", "object-inspect@1.13.4", "safer-buffer@2.1.2"),
    *("side-channel@1.1.0", "tape@5.9.0"),
)


def _unpack_archive(archive: Path, folder: Path) -> None:
    """Unpack with tar: before Python 3.11.4, which Debian 12 lacks, tarfile cannot drop owners."""
    subprocess.run(["tar", "-xzf", archive, "--no-same-owner", "-C", folder], check=True)


@pytest.fixture
def index(tmp_path: Path) -> Iterator[str]:
    """Return host and port of a server with the wheels that Mako's tests need."""
    wheels = tmp_path / "wheels"
    command = [sys.executable, "-m", "pip", "download", "-q", "--only-binary", ":all:"]
    fetched = subprocess.run(
        [*command, "-d", wheels, *NEEDED], capture_output=True, text=True, check=False, timeout=180
    )
    if fetched.returncode:
        if os.environ.get("CI"):
            pytest.fail(fetched.stderr)
        pytest.skip(f"pip cannot download here: {fetched.stderr[-200:]}")
    handler = functools.partial(SimpleHTTPRequestHandler, directory=str(wheels))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture
def mako(tmp_path: Path) -> WorkTree:
    archive = FETCHED / "mako-1.4.3.tar.gz"
    if not archive.exists():
        pytest.skip("the archive is not there; tests/sources.txt has the command that fetches it")
    _unpack_archive(archive, tmp_path)
    tree = WorkTree(tmp_path / "mako-1.4.3")
    tree.git("init", "-q", "-b", "trunk")
    tree.commit("Mako 1.4.3", {})
    return tree


@pytest.fixture
def qs(tmp_path: Path) -> WorkTree:
    """Return the npm package qs, which contains its tests."""
    if not shutil.which("npm"):
        pytest.skip("there is no npm here")
    command = ["npm", "pack", "--silent", "qs@6.14.0", "--pack-destination", str(tmp_path)]
    fetched = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    if fetched.returncode:
        pytest.skip(f"npm cannot fetch here: {fetched.stderr[-200:]}")
    _unpack_archive(tmp_path / "qs-6.14.0.tgz", tmp_path)
    tree = WorkTree(tmp_path / "package")
    tree.git("init", "-q", "-b", "trunk")
    tree.commit("qs 6.14.0", {})
    return tree


async def run_tests(
    client: Client, root: Root, tree: WorkTree, command: str, shell: dict[str, object]
) -> str:
    """Return what the command printed in a job on the repository."""
    model = Short(
        {
            "Plan": [plan("[ ] Boil", "[ ] Brew"), hand_over({}), DONE],
            "Work": [("run_command", {"command": f"({command}) | tee output/tests.txt"}), DONE],
            "Close": [close("output/tests.txt")],
        }
    )
    settings = {f"shell.{name}": value for name, value in shell.items()}
    settings["tools"] = ["files", "todos", "job", "shell"]
    async with serving(client, root, model) as jobs:
        handle = await jobs.start(job(repository={"url": tree.url}, set=settings))
        result = await jobs.result(handle, 240)
        assert result["status"] == "completed"
        return (jobs.folder(handle) / "output" / "tests.txt").read_text()


async def test_a_job_runs_the_tests_of_a_python_package(
    temporal: Client, root: Root, index: str, mako: WorkTree
) -> None:
    needed = " ".join(f"'{each}'" for each in NEEDED)
    shell: dict[str, object] = {
        "network": [index],
        "caches": {"PIP_CACHE_DIR": "pip"},
        "setup": [
            "python3 -m venv /layer",
            f"/layer/bin/pip install --no-index --find-links http://{index}/ {needed}",
        ],
    }
    printed = await run_tests(temporal, root, mako, RUN_TESTS, shell)
    last = printed.strip().splitlines()[-1]
    assert " passed" in last, printed[-2000:]
    assert "failed" not in last, printed[-2000:]
    assert int(last.split(" passed")[0].split()[-1]) > 500


@pytest.mark.skipif(
    not os.environ.get("LONGHAUL_SOAK"), reason="npm takes a minute; LONGHAUL_SOAK=1 runs it"
)
async def test_a_job_runs_the_tests_of_a_node_package(
    temporal: Client, root: Root, qs: WorkTree
) -> None:
    certificates = "NODE_EXTRA_CA_CERTS"
    shell: dict[str, object] = {
        # With the port, as a mirror of the registry may have a private address.
        "network": ["registry.npmjs.org:443"],
        "caches": {"npm_config_cache": "npm"},
        "environment": {certificates: certificates} if os.environ.get(certificates) else {},
        "path": ["/layer/node_modules/.bin"],
        "setup": [f"npm install --no-audit --no-fund --prefix /layer {' '.join(NPM_NEEDED)}"],
    }
    # Node searches the folders above a file, and NODE_PATH.
    command = "cd repo && NODE_PATH=/layer/node_modules tape 'test/*.js'"
    printed = await run_tests(temporal, root, qs, command, shell)
    assert "\n# fail" not in printed, printed[-2000:]
    passed = printed.partition("\n# pass ")[2].split()
    assert passed, printed[-2000:]
    assert int(passed[0]) > 500
