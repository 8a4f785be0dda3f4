"""A package's source archive: a job installs what its tests need, and runs them in the sandbox."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import tarfile
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from temporalio.client import Client

from activities.checkpoints import Root
from activities.commands import sandbox
from tests.activities.repository.origins import WorkTree
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


@pytest.fixture
def index(tmp_path: Path) -> Iterator[str]:
    """Host and port of a server with the wheels that Mako's tests need."""
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
    with tarfile.open(archive) as opened:
        opened.extractall(tmp_path, filter="data")
    tree = WorkTree(tmp_path / "mako-1.4.3")
    tree.git("init", "-q", "-b", "trunk")
    tree.commit("Mako 1.4.3", {})
    return tree


async def test_a_job_runs_the_tests_of_a_python_package(
    temporal: Client, root: Root, index: str, mako: WorkTree
) -> None:
    model = Short(
        {
            "Plan": [plan("[x] Test"), hand_over({}), DONE],
            "Work": [("run_command", {"command": f"({RUN_TESTS}) | tee output/tests.txt"}), DONE],
            "Close": [close("output/tests.txt")],
        }
    )
    shell = {
        "network": [index],
        "caches": {"PIP_CACHE_DIR": "pip"},
        "setup": [
            "python3 -m venv /layer",
            f"/layer/bin/pip install --no-index --find-links http://{index}/ '"
            + "' '".join(NEEDED)
            + "'",
        ],
    }
    settings = {f"shell.{name}": value for name, value in shell.items()}
    settings["tools"] = ["files", "todos", "job", "shell"]
    async with serving(temporal, root, model) as jobs:
        start = job(repository={"url": mako.url}, set=settings)
        handle = await jobs.start(start)
        result = await jobs.result(handle, 240)
        printed = (jobs.folder(handle) / "output" / "tests.txt").read_text()
    assert result["status"] == "completed"
    last = printed.strip().splitlines()[-1]
    assert " passed" in last, printed[-2000:]
    assert "failed" not in last, printed[-2000:]
    assert int(last.split(" passed")[0].split()[-1]) > 500
