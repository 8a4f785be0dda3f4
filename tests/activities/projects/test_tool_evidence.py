"""Checks that no command can make: what the tools of a tester's job show of them."""

import hashlib
import json
from pathlib import Path

import pytest

from activities.projects.handoff import prepare_handoff_workspace
from activities.projects.handoff_checks import handoff_problems
from activities.projects.project_repository import ProjectRepository, project_repository_path
from activities.projects.tool_evidence import tool_proofs
from protocol.handoffs import Handoff, ProjectLink
from tests.activities.standing import AT, Standing
from tests.activities.tools.test_images import SHOT


@pytest.fixture
def tester(tmp_path: Path) -> Standing:
    """Return the job of a tester for a page that was handed over."""
    standing = Standing.begin(tmp_path, kind="tactical", agent="tester")
    project = ProjectRepository.create(project_repository_path(standing.root, "tea"))
    files = {"menu.md": b"tea\n", "run.log": b"once\n"}
    commit = project.commit(
        project.with_files(str(project.git.TreeBuilder().write()), files), [], "begin", AT
    )
    handoff = Handoff.model_validate(
        {
            "id": "brew-tester-1",
            "from_agent": "coder",
            "to_agent": "tester",
            "task": "Test.",
            "inputs": {"commit": commit},
            "report": "verdict",
            "checks": ["browser"],
            "proof": {"browser": ["search_files"]},
        }
    )
    snapshot = standing.open()
    link = ProjectLink(id="tea", folder="repo", summary_tokens=1000, handoff=handoff)
    prepare_handoff_workspace(standing.root, snapshot, link)
    standing.commit = snapshot.save("handed", AT)
    return standing


def look(tester: Standing) -> None:
    tester.call("search_files", query="tea", path="repo")


def judged(tester: Standing) -> list[str]:
    """Return why the verdict is not accepted."""
    checks = [{"check": "browser", "passed": True}]
    verdict = {"health": "ok", "checks": checks, "passed": True, "findings": []}
    tester.write("output/verdict.json", json.dumps(verdict))
    return handoff_problems(tester.open())


def test_what_was_not_looked_at_is_named_with_a_way_out(tester: Standing) -> None:
    [why] = judged(tester)
    assert "The check browser was not run" in why
    assert "(search_files)" in why
    assert "hand over a list for it (todo_write)" in why
    look(tester)
    assert judged(tester) == []


def test_what_is_looked_at_stays_as_it_was_and_is_looked_at_after_its_last_change(
    tester: Standing,
) -> None:
    look(tester)
    tester.call("write_file", path="repo/menu.md", content="green tea\n")
    altered, old = judged(tester)
    assert "put these back" in altered
    assert "repo/menu.md" in altered
    assert "search_files {" in old
    assert "before the files that the check browser is about were last changed" in old
    tester.call("write_file", path="repo/menu.md", content="tea\n")
    assert len(judged(tester)) == 1
    look(tester)
    assert judged(tester) == []
    # Neither new files beside the product nor logs are part of it.
    tester.call("write_file", path="repo/cache.txt", content="1\n")
    tester.call("write_file", path="repo/run.log", content="twice\n")
    assert judged(tester) == []


def test_a_look_at_an_image_is_evidence_with_its_hash(tester: Standing) -> None:
    snapshot = tester.open()
    assert snapshot.link
    snapshot.link.handoff.proof = {"browser": ["view_image"]}
    snapshot.config.model.vision = True
    snapshot.pin_config(snapshot.config)
    snapshot.files = snapshot.files.write("received/page.png", SHOT)
    tester.commit = snapshot.save("a page", AT)
    assert "(view_image)" in judged(tester)[0]
    tester.call("view_image", path="received/page.png")
    assert judged(tester) == []
    [proof] = tool_proofs(tester.open(), "c0ffee")
    assert proof.end.startswith("received/page.png (PNG, 800 x 600, ")
    assert hashlib.sha256(SHOT).hexdigest()[:16] in proof.end
