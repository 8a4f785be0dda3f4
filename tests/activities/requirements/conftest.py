"""Workspaces of the agents that write and validate requirements."""

from pathlib import Path

import pytest

from tests.activities.requirements.drafts import OTHER, QUOTE
from tests.activities.standing import Standing


@pytest.fixture
def job(tmp_path: Path) -> Standing:
    made = Standing.begin(tmp_path, kind="tactical", agent="creator")
    made.write("documents/a.md", QUOTE)
    made.write("documents/a.md.txt", f"[page 1]\n{QUOTE}\n{OTHER}\n")
    made.call("cite_document", path="documents/a.md", page=1, quote=QUOTE)
    return made


@pytest.fixture
def judge(tmp_path: Path) -> Standing:
    tools = ["files", "todos", "job", "validation"]
    made = Standing.begin(tmp_path, kind="tactical", set={"tools": tools})
    records = " ".join(f"The system shall keep record number {n}." for n in range(1, 10))
    made.write("documents/a.md", records)
    return made
