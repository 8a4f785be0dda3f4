"""Servers that work on files: a private folder for each call, read back when it ends."""

import json
from pathlib import Path

import pytest

from tests.activities.mcp.serving import agent, answer, call, public, standing
from tests.activities.standing import Standing


@pytest.fixture(scope="module")
def config():
    return agent(fs=public("filesystem", "{workspace}", cwd="workspace"))


@pytest.fixture
def job(tmp_path: Path, config) -> Standing:
    job = standing(tmp_path / "job", config)
    job.write("notes/tea.md", "green\n")
    return job


def test_what_it_writes_is_in_the_next_checkpoint(job: Standing) -> None:
    assert call(job, "fs__read_text_file", '{"path": "notes/tea.md"}').ok
    assert answer(job) == "green\n"
    reply = call(job, "fs__write_file", '{"path": "notes/new.md", "content": "black"}')
    assert reply.ok
    assert reply.changed
    assert job.text("notes/new.md") == "black"
    assert job.text("notes/tea.md") == "green\n"
    assert call(job, "fs__move_file", '{"source": "notes/new.md", "destination": "a.md"}').ok
    assert {"a.md", "notes/tea.md"} <= set(job.paths())
    assert "notes/new.md" not in job.paths()


def test_no_result_depends_on_where_the_private_folder_is(job: Standing) -> None:
    assert call(job, "fs__search_files", '{"path": ".", "pattern": "**/*.md"}').ok
    assert "notes/tea.md" in answer(job)
    assert str(job.root.path) not in answer(job)
    assert not call(job, "fs__read_text_file", '{"path": "/etc/passwd"}').ok
    assert "Access denied" in answer(job)
    assert str(job.root.path) not in answer(job)
    for path in ("../../x", "../../../../../../x"):
        assert not call(job, "fs__read_text_file", json.dumps({"path": path})).ok
        assert path in answer(job)
        assert str(job.root.path.parent) not in answer(job)


def test_owned_paths_are_protected(job: Standing) -> None:
    before = job.open().files
    for path in ("instructions.md", "plan.md", "archive/x.md"):
        assert not call(job, "fs__write_file", f'{{"path": "{path}", "content": "mine"}}').ok
        assert path in answer(job)
    assert job.open().files == before


def test_a_failed_call_changes_nothing(job: Standing) -> None:
    before = job.open().files
    edit = '{"path": "notes/tea.md", "edits": [{"oldText": "red", "newText": "blue"}]}'
    assert not call(job, "fs__edit_file", edit).ok
    assert job.open().files == before
