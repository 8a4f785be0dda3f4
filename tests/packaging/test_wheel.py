"""The wheel in an environment without the checkout."""

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
UNWANTED = shutil.ignore_patterns("__pycache__", ".*", "tests", "benchmarks", "build", "workspaces")
IN_PLACE = ("longhaul_agents", "activities", "cli", "config", "engine", "examples", "protocol")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the commands of an environment with the wheel, installed without a network."""
    place = tmp_path_factory.mktemp("wheel")
    source = Path(shutil.copytree(ROOT, place / "source", ignore=UNWANTED, symlinks=True))
    # An earlier build left a module that is no longer in the source.
    removed = source / "build/lib/longhaul_agents/packages/cli/removed.py"
    removed.parent.mkdir(parents=True)
    removed.touch()
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    offline = ["--no-deps", "--no-index"]
    subprocess.run(
        [*pip, "wheel", *offline, "--no-build-isolation", "-w", place / "wheels", source],
        check=True,
    )
    shutil.rmtree(source)
    environment = place / "environment"
    venv.create(environment, symlinks=True)
    # This environment has Longhaul's dependencies, and nothing of the checkout.
    libraries = [path for path in sys.path if Path(path).name == "site-packages"]
    inner = environment / Path(sysconfig.get_path("purelib")).relative_to(sys.prefix)
    (inner / "shared.pth").write_text("\n".join(libraries))
    [wheel] = (place / "wheels").glob("longhaul_agents-*.whl")
    python = str(environment / "bin" / "python")
    subprocess.run([*pip, f"--python={python}", "install", *offline, wheel], check=True)
    assert not list(inner.rglob("removed.py"))
    assert sorted(path.name for path in inner.glob("*") if path.is_dir()) == [
        "longhaul_agents",
        wheel.name.split("-py3")[0] + ".dist-info",
    ]
    return environment / "bin"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


def run(
    installed: Path, home: Path, arguments: Sequence[str], **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder that contains nothing of ours."""
    command, *rest = arguments
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("LONGHAUL_", "OPENAI_", "TEMPORAL_", "PYTHON"))
    }
    tools = f"{Path(sys.executable).parent}{os.pathsep}{inherited['PATH']}"
    return subprocess.run(
        [installed / command, *rest],
        cwd=home, env={**inherited, "PATH": tools, **variables}, timeout=90, check=False,
        capture_output=True, text=True,
    )  # fmt: skip


def test_both_commands_explain_themselves(installed: Path, home: Path) -> None:
    shown = run(installed, home, ["longhaul", "start", "--help"], COLUMNS="200")
    assert shown.returncode == 0, shown.stderr
    assert "Usage: longhaul start" in shown.stdout
    assert "longhaul start creator --document policy.pdf" in shown.stdout
    assert "starter.py" not in shown.stdout
    worker = run(installed, home, ["longhaul-worker", "--help"])
    assert worker.returncode == 0, worker.stderr
    assert "longhaul-worker" in worker.stdout


def test_it_says_its_version(installed: Path, home: Path) -> None:
    assert run(installed, home, ["longhaul", "--version"]).stdout == "0.1.0\n"


def test_messages_name_the_installed_command(installed: Path, home: Path) -> None:
    done = run(installed, home, ["longhaul", "guards", "promote"])
    assert done.returncode == 2
    assert "`longhaul guards` lists them" in done.stderr


def test_every_file_that_is_read_is_in_it(installed: Path) -> None:
    [packages] = installed.parent.glob("lib/python*/site-packages/longhaul_agents/packages")
    expected = {
        str(path.relative_to(ROOT))
        for name in IN_PLACE[1:]
        for path in (ROOT / name).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".service"
    }
    present = {str(path.relative_to(packages)) for path in packages.rglob("*") if path.is_file()}
    assert expected - present == set()


def test_an_agent_of_ones_own_does_a_job_beside_the_installed_package(
    installed: Path, home: Path
) -> None:
    written = run(installed, home, ["longhaul", "init", "mine"])
    assert written.returncode == 0, written.stderr
    [folder] = re.findall(r"export LONGHAUL_CONFIG=(\S+)", written.stderr)
    check = run(installed, home, ["longhaul", "config", "check", "editor"], LONGHAUL_CONFIG=folder)
    assert check.returncode == 0, check.stdout + check.stderr
    assert f"{folder}/agents/editor/agent.yaml" in check.stdout
    tools = run(installed, home, ["longhaul", "tools"], LONGHAUL_CONFIG=folder)
    assert f"{folder}/tools/" in tools.stderr, tools.stdout + tools.stderr
    done = run(
        installed,
        home,
        ["longhaul", "demo", "--agent", "editor", "--json"],
        LONGHAUL_CONFIG=folder,
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert (result["agent"], result["status"]) == ("editor", "completed")
    assert result["output"]
    assert Path(result["workspace"]).is_relative_to(home)
