"""The software example: features built, tested by running their tests, one blocked."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from temporalio.client import Client

from activities.checkpoints import Root
from activities.commands import bubblewrap, sandbox
from activities.projects.project_repository import project_repository_path
from rehearsal import rehearse
from tests.soak import soak
from tests.workflows.serving import serving

EXAMPLE = Path(__file__).parents[2] / "examples" / "projects" / "features.yaml"
WHY = sandbox.sandbox_problem(sandbox.find_bwrap())
if WHY is None and shutil.which("python3", path=bubblewrap.PATH) is None:
    WHY = "the sandbox sees no python3"
pytestmark = pytest.mark.skipif(WHY is not None, reason=f"no sandbox here: {WHY}")

MADE = soak(["gallons"], ["feet", "miles", "pounds", "fahrenheit", "gallons"])
LEFT_OUT = soak(("- Feet", "- Miles", "- Pounds", "- Degrees"), ())
"""Left out so that one feature is made after one that is blocked."""
TESTS = soak(1, 7)
"""Number of tests of those features."""


async def test_what_can_be_made_is_tested_and_merged_and_the_rest_is_blocked(
    temporal: Client, root: Root, tmp_path: Path
) -> None:
    start = yaml.safe_load(EXAMPLE.read_text(encoding="utf-8"))
    lines = start["instructions"].splitlines()
    start["instructions"] = "\n".join(line for line in lines if not line.startswith(LEFT_OUT))
    async with serving(temporal, root, rehearse) as jobs:
        handle = await jobs.start(start, kind="Project", job_id="measures")
        result = await jobs.result(handle, 300)
        tester = temporal.get_workflow_handle("measures.gallons-tester-1")
        log = (jobs.folder(tester) / "commands" / "log.jsonl").read_text()
        statuses = [
            await temporal.get_workflow_handle(f"measures.gallons-{role}-1").query("status")
            for role in ("coder", "tester")
        ]
        given_up = temporal.get_workflow_handle("measures.beaufort-coder-1")
        more = (jobs.folder(given_up) / "commands" / "log.jsonl").read_text()
    assert result["status"] == "completed", result
    units = {unit["id"]: unit for unit in result["units"]}
    beaufort = units.pop("beaufort")
    assert (beaufort["status"], beaufort["attempts"], beaufort["tested"]) == ("blocked", 1, False)
    assert "beaufort(12)" in " ".join(beaufort["reasons"])
    assert list(units) == MADE
    # A feature without trouble takes short jobs: no planning, just the work and the handoff.
    assert sum(status["usage"]["model_calls"] for status in statuses) <= 10, statuses
    assert [status["phase"]["number"] for status in statuses] == [1, 1]
    for unit in units.values():
        assert (unit["status"], unit["tested"], unit["attempts"]) == ("completed", True, 1)
        [proof] = unit["evidence"]
        assert proof["ran"].endswith(f"tests.test_{unit['id']}")
        assert (proof["exit_code"], proof["passed"]) == (0, True)
        assert proof["tests"] >= 1
        assert proof["asked_by"] == f"{unit['id']}-tester-1"
        assert proof["end"].rstrip().endswith("OK")
    assert [json.loads(line)["exit_code"] for line in log.splitlines()] == [0, 0]
    # Its coder says that it cannot mend it, so that no second attempt is paid for.
    assert "could not be mended" in beaufort["reasons"][0]
    assert [json.loads(line)["exit_code"] for line in more.splitlines()] == [1]
    whoever_clones_it_finds_what_was_accepted(
        project_repository_path(root, "measures"), tmp_path / "clone"
    )


def whoever_clones_it_finds_what_was_accepted(repository: Path, clone: Path) -> None:
    subprocess.run(["git", "clone", "-q", str(repository), str(clone)], check=True)
    ran = subprocess.run(
        ["python3", "-m", "unittest", "discover", "-s", "tests", "-t", "."],
        cwd=clone,
        capture_output=True,
        text=True,
        check=False,
    )
    assert f"Ran {TESTS} test" in ran.stderr
    assert ran.returncode == 0, ran.stderr
    assert not (clone / "beaufort.py").exists()
    assert {path.name for path in clone.iterdir()} >= {"gallons.py", "README.md", "tests"}
