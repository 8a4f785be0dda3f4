"""Recorded histories of every released version are replayed against the present workflow."""

from __future__ import annotations

import ast
import gzip
import re
from pathlib import Path

import pytest
from temporalio.client import WorkflowHistory
from temporalio.worker import Replayer

from engine.converter import DATA_CONVERTER
from engine.sandbox import runner
from tests.replay import record
from tests.replay.record import HISTORIES, SCENES
from workflows.job import Job
from workflows.project import Project

RECORDED = sorted(HISTORIES.glob("*/*.json.gz"))
WORKFLOWS = Path(__file__).parents[2] / "workflows"


def recorded(path: Path) -> str:
    return gzip.decompress(path.read_bytes()).decode()


def test_every_scene_is_recorded() -> None:
    for version in HISTORIES.iterdir():
        found = {re.sub(r"-\d+\.json\.gz$", "", path.name) for path in version.iterdir()}
        assert found == set(SCENES)
    assert len(list(HISTORIES.glob("*/continued-*"))) > 2


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: f"{path.parent.name}/{path.name}")
async def test_history_replays(path: Path) -> None:
    text = recorded(path)
    replayer = Replayer(
        workflows=[Job, Project], data_converter=DATA_CONVERTER, workflow_runner=runner()
    )
    result = await replayer.replay_workflow(
        WorkflowHistory.from_json(record.RECORDED, text), raise_on_replay_failure=False
    )
    assert result.replay_failure is None, result.replay_failure


async def test_replay_notices_another_shape() -> None:
    """The check can fail: a history whose activities are other than the code's is refused."""
    text = recorded(RECORDED[0])
    replayer = Replayer(
        workflows=[Job, Project], data_converter=DATA_CONVERTER, workflow_runner=runner()
    )
    result = await replayer.replay_workflow(
        WorkflowHistory.from_json(record.RECORDED, text.replace('"model_call"', '"other_call"')),
        raise_on_replay_failure=False,
    )
    assert result.replay_failure is not None


def test_workflow_code_imports_no_io() -> None:
    """Only deterministic modules: protocol, workflows, Temporal's workflow API and a few more."""
    allowed = {"protocol", "workflows", "temporalio", "__future__", "asyncio"}
    allowed |= {"collections", "contextlib", "dataclasses", "datetime", "typing"}
    for path in [*WORKFLOWS.glob("*.py"), *(WORKFLOWS.parent / "protocol").glob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text())):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            for name in names:
                top = name.split(".")[0]
                assert top in allowed | {"pydantic"}, f"{path.name} imports {name}"
                assert top in allowed or path.parent.name == "protocol"
