"""Tools of one's own, from `tools/` of the folders that LONGHAUL_CONFIG names."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from temporalio import activity

from activities.activity_catalogue import all_activities
from activities.checkpoints import Root
from activities.preparation.agent_resolution import check_added_tools, resolve_configured_tools
from activities.steps.tool_call import tool_activities
from activities.toolkit.agent_tools import agent_tools
from activities.toolkit.own_tools import (
    PREFIX,
    collecting_tool_problems,
    load_own_tools,
    own_tools_by_file,
)
from activities.toolkit.registry import REGISTRY, STEP_ACTIVITIES
from cli.app import main
from config.agent_files import load_agent
from config.layers import SHIPPED, Layers
from config.schema.agent import ConfigError
from tests.activities.standing import Standing

ROOT = Path(__file__).parents[3]
TOOL = '''
from activities.toolkit import ToolContext, tool

@tool("{group}", effect="reads")
def {name}(context: ToolContext, path: str) -> str:
    """Say {answer}."""
    return "{answer}"
'''


@pytest.fixture(autouse=True)
def registry() -> Iterator[None]:
    before = list(REGISTRY)
    yield
    for name in REGISTRY.keys() - set(before):
        del REGISTRY[name]
    for module in [name for name in sys.modules if name.startswith(PREFIX)]:
        del sys.modules[module]


def write(folder: Path, file: str, text: str = "", **named: str) -> Path:
    path = folder / "tools" / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text or TOOL.format(**{"group": "tea", "answer": "yes"} | named))
    return path


def test_tools_follow_the_shipped_ones_by_file_and_the_strongest_file_counts(
    tmp_path: Path,
) -> None:
    weak, strong = tmp_path / "weak", tmp_path / "strong"
    write(weak, "b.py", name="brew")
    write(weak, "c.py", name="pour", answer="weak")
    c = write(strong, "c.py", name="pour", answer="strong")
    a = write(strong, "a.py", name="steep")
    write(strong, ".#a.py", "no code")
    shipped = list(REGISTRY)
    load_own_tools(Layers((strong, weak, SHIPPED)))
    assert list(REGISTRY) == [*shipped, "steep", "brew", "pour"]
    files = own_tools_by_file()
    assert list(files.values()) == [["steep"], ["brew"], ["pour"]]
    assert [next(iter(files)), list(files)[-1]] == [str(a), str(c)]
    job = Standing.begin(tmp_path, set={"tools": ["files", "tea"]})
    assert job.call("pour", path="a.md") == "strong"
    offered = [each.name for each in agent_tools(job.open().config)]
    assert offered[-3:] == ["steep", "brew", "pour"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("\nimport no_such_module", "cannot be imported (ModuleNotFoundError: No module named"),
        ("\nimport no_such_module", "'no_such_module', line 2)"),
        ("def f(:", "cannot be imported (SyntaxError: "),
        ("raise SystemExit(3)", "cannot be imported (SystemExit: 3, line 1)"),
        (TOOL.format(group="tea", name="read_file", answer="no"), "tool read_file: the name is"),
        (TOOL.format(group="tea", name="read_file", answer="no"), "file_tools.py: tool read_file)"),
        (
            TOOL.format(group="tea", name="transition", answer="no"),
            "tool transition: the name is taken by an activity of the system",
        ),
    ],
)
def test_file_that_cannot_be_used_is_named_with_the_error(
    tmp_path: Path, text: str, why: str
) -> None:
    path = write(tmp_path, "a.py", text)
    with pytest.raises(ConfigError) as caught:
        load_own_tools(Layers((tmp_path, SHIPPED)))
    assert str(caught.value).startswith(f"{path}: ")
    assert why in str(caught.value)


def test_a_check_collects_what_is_wrong_and_loads_the_rest(tmp_path: Path) -> None:
    layers = Layers((tmp_path, SHIPPED))
    paths = [write(tmp_path, file, "import no_such_module") for file in ("a.py", "b.py")]
    write(tmp_path, "c.py", name="brew")
    with collecting_tool_problems() as problems:
        load_own_tools(layers)
    assert [problem.partition(": ")[0] for problem in problems] == list(map(str, paths))
    assert "brew" in REGISTRY
    with pytest.raises(ConfigError):
        load_own_tools(layers)


def test_names_of_other_activities_are_taken(tmp_path: Path) -> None:
    root = Root.open(tmp_path / "root", create=True)
    names = {activity._Definition.must_from_callable(each).name for each in all_activities(root)}
    assert names - REGISTRY.keys() - {None} == STEP_ACTIVITIES


def test_commands_and_workers_load_them_from_the_folder_that_init_writes(tmp_path: Path) -> None:
    folder = tmp_path / "mine"

    def run(*command: str) -> subprocess.CompletedProcess[str]:
        environment = {
            **os.environ, "LONGHAUL_CONFIG": str(folder), "TEMPORAL_ADDRESS": "localhost:1"
        }  # fmt: skip
        return subprocess.run(
            [sys.executable, *command],
            cwd=ROOT, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip

    assert main(["init", str(folder)]) == 0
    file = folder / "tools" / "counting.py"
    # What a worker imports.
    catalogue = (
        "from activities import activity_catalogue as c; t = c.tool_activities; print(len(t(None)))"
    )
    assert int(run("-c", catalogue).stdout) == len(tool_activities(None)) + 1  # type: ignore[arg-type]
    broken = file.with_name("also.py")
    broken.write_text("import no_such_module")
    why = f"{broken}: cannot be imported (ModuleNotFoundError"
    shown = run("starter.py", "tools")
    assert shown.returncode == 1
    assert "write_file" in shown.stdout
    assert f"the tool count_words is in {file}" in shown.stderr
    assert f"error: {why}" in shown.stderr
    check = run("starter.py", "config", "check")
    assert check.returncode == 1
    assert "✓ generalist" in check.stdout
    assert f"✗ own tools: {why}" in check.stdout
    doctor = run("starter.py", "doctor").stdout
    assert "✓ configuration" in doctor
    assert f"✗ own tools: {why}" in doctor


def test_a_start_gives_no_agent_a_tool_that_runs_in_the_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, "tea.py", name="brew")
    load_own_tools(Layers((tmp_path, SHIPPED)))
    monkeypatch.setenv("LONGHAUL_CONFIG", str(tmp_path))
    asked: dict[str, object] = {"tools": ["files", "todos", "job", "brew"]}
    config = load_agent("generalist", asked)
    with pytest.raises(ConfigError, match=r"set: tools: .*brew is a tool of this worker's own"):
        check_added_tools(config, resolve_configured_tools(config))
    named = {"start": {"set": ["harmless", "tools"]}}
    for content in ({"tools": asked["tools"]}, named):
        (tmp_path / "defaults.yaml").write_text(yaml.safe_dump(content))
        config = load_agent("generalist", asked)
        check_added_tools(config, resolve_configured_tools(config))
