"""Recorded histories of every released version are replayed with the present workflow."""

import ast
import gzip
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from temporalio.client import WorkflowHistory
from temporalio.worker import Replayer
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

from engine.converter import DATA_CONVERTER
from tests.replay import record
from tests.replay.record import HISTORIES, SCENES
from workflows.job import Job
from workflows.project import Project
from workflows.trial import Trial

RECORDED = sorted(HISTORIES.glob("*/*.json.gz"))
WORKFLOWS = Path(__file__).parents[2] / "workflows"
SANDBOX = SandboxedWorkflowRunner(
    restrictions=SandboxRestrictions.default.with_passthrough_modules("protocol")
)
"""Strict: it imports the modules anew for each run and fails at a clock, a file or a draw."""


def recorded(path: Path) -> str:
    return gzip.decompress(path.read_bytes()).decode()


def test_every_scene_is_recorded() -> None:
    for version in HISTORIES.iterdir():
        scenes = {re.sub(r"-\d+\.json\.gz$", "", path.name) for path in version.iterdir()}
        assert scenes == set(SCENES)
    assert len(list(HISTORIES.glob("*/continued-*"))) > 2


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: f"{path.parent.name}/{path.name}")
async def test_history_replays(path: Path) -> None:
    text = recorded(path)
    replayer = Replayer(
        workflows=[Job, Project, Trial],
        data_converter=DATA_CONVERTER,
        workflow_runner=SANDBOX,
    )
    result = await replayer.replay_workflow(
        WorkflowHistory.from_json(record.RECORDED, text), raise_on_replay_failure=False
    )
    assert result.replay_failure is None, result.replay_failure


async def test_replay_notices_another_shape() -> None:
    """The check can fail: a history with other activities than the code's is refused."""
    text = recorded(RECORDED[0])
    replayer = Replayer(
        workflows=[Job, Project], data_converter=DATA_CONVERTER, workflow_runner=SANDBOX
    )
    result = await replayer.replay_workflow(
        WorkflowHistory.from_json(record.RECORDED, text.replace('"model_call"', '"other_call"')),
        raise_on_replay_failure=False,
    )
    assert result.replay_failure is not None


def test_workflow_code_imports_no_io() -> None:
    """Only deterministic modules: protocol, workflows, Temporal's workflow API and a few more."""
    allowed = {"protocol", "workflows", "temporalio", "__future__", "asyncio"}
    allowed |= {"collections", "contextlib", "contextvars", "dataclasses", "datetime", "json"}
    allowed |= {"typing"}
    for path in [*WORKFLOWS.rglob("*.py"), *(WORKFLOWS.parent / "protocol").glob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text())):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            for name in names:
                top = name.split(".")[0]
                if name == "urllib.parse":  # reads text; its siblings reach the network
                    continue
                assert top in allowed | {
                    *("pydantic", "re", "difflib", "functools", "hashlib", "heapq", "itertools")
                }, f"{path.name} imports {name}"
                assert top in allowed or path.parent.name == "protocol"


def test_workflow_code_reads_neither_clock_nor_file() -> None:
    """Workers run it without the SDK's sandbox (`engine.workflow_runner`)."""
    for path in WORKFLOWS.rglob("*.py"):
        found = list(outside_calls(ast.parse(path.read_text(encoding="utf-8"))))
        assert not found, f"{path.name}: {found}"
    for line in ("open('a')", "datetime.now()", "date.today()", "print(1)", "__import__('os')"):
        assert list(outside_calls(ast.parse(line))), line
    assert not list(outside_calls(ast.parse("workflow.now()")))


def outside_calls(module: ast.Module) -> Iterator[str]:
    for node in ast.walk(module):
        if isinstance(node, ast.Call):
            called = node.func
            if isinstance(called, ast.Attribute) and called.attr in ("now", "today", "utcnow"):
                if ast.unparse(called.value) != "workflow":
                    yield ast.unparse(node)
            elif isinstance(called, ast.Name) and called.id in OUTSIDE:
                yield ast.unparse(node)


OUTSIDE = {"open", "print", "input", "exec", "eval", "__import__"}
CHANGING = {"add", "append", "clear", "discard", "extend", "insert", "pop", "popitem", "remove"}
CHANGING |= {"setdefault", "sort", "update"}


@pytest.mark.parametrize("path", sorted(WORKFLOWS.rglob("*.py")), ids=lambda path: path.stem)
def test_workflow_modules_hold_nothing_that_runs_change(path: Path) -> None:
    """All runs on a worker share these modules (`engine.workflow_runner`)."""
    assert list(changes(ast.parse(path.read_text()))) == []


def test_what_changes_a_module_is_noticed() -> None:
    source = "SEEN = {}\nONE = [1]\n"
    for line in ("SEEN['a'] = 1", "del SEEN['a']", "ONE.append(2)", "SEEN |= {}", "SEEN.a = 1"):
        assert list(changes(ast.parse(f"{source}def run():\n    {line}\n"))), line
    for line in ("global SEEN", "nonlocal SEEN"):
        assert list(changes(ast.parse(f"def outer():\n    SEEN = 1\n    {line}\n"))), line
    assert not list(changes(ast.parse(f"{source}def run():\n    mine = {{}}\n    mine['a'] = 1\n")))


def changes(module: ast.Module) -> Iterator[str]:
    """Return the lines of functions that write to module-level data."""
    module_names = {
        target.id
        for node in module.body
        if isinstance(node, ast.Assign | ast.AnnAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(module):
        written: ast.expr | None = None
        if isinstance(node, ast.Global | ast.Nonlocal):
            yield ast.unparse(node)
        elif isinstance(node, ast.Subscript | ast.Attribute):
            if isinstance(node.ctx, ast.Store | ast.Del):
                written = node.value
        elif isinstance(node, ast.AugAssign):
            written = node.target
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            written = node.func.value if node.func.attr in CHANGING else None
        if isinstance(written, ast.Name) and written.id in module_names:
            yield ast.unparse(node)
