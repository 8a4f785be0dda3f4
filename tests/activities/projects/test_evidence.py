"""What a tester's commands prove: read from the system's record of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from activities.commands import sandbox
from activities.projects.handoff import hand_over, refusals
from activities.projects.repository import Repository, repository_path
from protocol.handoffs import Handoff, ProjectLink
from tests.activities.standing import AT, Standing

WHY = sandbox.lacking(sandbox.find_bwrap())
pytestmark = pytest.mark.skipif(WHY is not None, reason=f"no sandbox here: {WHY}")
RUN = "cd repo && sh check.sh"


@pytest.fixture
def tester(tmp_path: Path) -> Standing:
    """A tester of a script that was handed over."""
    standing = Standing.begin(tmp_path, kind="tactical", agent="tester")
    held = Repository.create(repository_path(standing.root, "tea"))
    files = {"check.sh": b"grep tea menu.md\n", "menu.md": b"tea\n", "run.log": b"once\n"}
    commit = held.commit(
        held.with_files(str(held.git.TreeBuilder().write()), files), [], "begin", AT
    )
    handoff = Handoff.model_validate(
        {
            "id": "brew-tester-1",
            "from_agent": "coder",
            "to_agent": "tester",
            "task": "Test.",
            "inputs": {"commit": commit},
            "report": "verdict",
            "checks": ["unit"],
            "proof": {"unit": ["run_command"]},
        }
    )
    snapshot = standing.open()
    link = ProjectLink(id="tea", folder="repo", summary_tokens=1000, handoff=handoff)
    hand_over(standing.root, snapshot, link)
    standing.commit = snapshot.save("handed", AT)
    return standing


def judged(tester: Standing, *, passed: bool = True) -> list[str]:
    """What keeps the verdict from being taken."""
    verdict = {"health": "ok", "checks": [{"check": "unit", "passed": passed}], "passed": passed}
    found = [] if passed else ["Cold."]
    tester.write("output/verdict.json", json.dumps({**verdict, "findings": found}))
    return refusals(tester.open())


def test_a_command_that_ended_well_proves_that_a_check_passed(tester: Standing) -> None:
    assert "was not run" in judged(tester)[0]
    tester.call("run_command", command=RUN)
    assert judged(tester) == []


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("ls -R repo", "end the command with the test itself"),
        (f"{RUN} | cat", "end the command with the test itself"),
        ("sh -c true", "it printed nothing"),
        ("sh -c 'echo Ran 0 tests in 0.0s'", "it found no tests to run"),
        ("sh -c 'grep coffee repo/menu.md || { echo no coffee; exit 1; }'", "no run of it did"),
    ],
)
def test_other_commands_prove_nothing(tester: Standing, command: str, why: str) -> None:
    tester.call("run_command", command=command)
    [told] = judged(tester)
    assert why in told


def test_a_check_that_failed_needs_a_run_as_well(tester: Standing) -> None:
    assert "was not run" in judged(tester, passed=False)[0]
    tester.call("run_command", command="sh -c 'echo cold; exit 1'")
    assert judged(tester, passed=False) == []


def test_the_record_is_read_whatever_line_ends_a_command_holds(tester: Standing) -> None:
    tester.call("run_command", command=f"{RUN} '\u2028' '\x85' '\x0c'")
    assert judged(tester) == []


def test_of_the_same_command_the_newest_run_counts(tester: Standing) -> None:
    command = (
        "sh -c 'echo x >> /workspace/notes.txt; wc -l notes.txt; test $(wc -l < notes.txt) {}'"
    )
    first = command.format("-lt 2")
    tester.call("run_command", command=first)
    assert judged(tester) == []
    tester.call("run_command", command=first)
    assert "no run of it did" in judged(tester)[0]


def test_what_is_tested_stays_as_it_was_and_is_tested_after_its_last_change(
    tester: Standing,
) -> None:
    tester.call("run_command", command=RUN)
    tester.call("run_command", command="printf 'green tea\\n' > repo/menu.md")
    altered, old = judged(tester)
    assert "put these back" in altered
    assert "repo/menu.md" in altered
    assert "before the files that it is about were last changed" in old
    tester.call("run_command", command="printf 'tea\\n' > repo/menu.md")
    assert len(judged(tester)) == 1
    tester.call("run_command", command=RUN)
    assert judged(tester) == []
    # What running leaves beside the product is none of it.
    tester.call("run_command", command="mkdir repo/cache; echo 1 > repo/cache/a")
    assert judged(tester) == []


def test_what_running_leaves_in_logs_and_caches_is_no_change_of_what_is_tested(
    tester: Standing,
) -> None:
    tester.call("run_command", command=RUN)
    tester.call("run_command", command=f"echo twice >> repo/run.log; {RUN}")
    tester.call("run_command", command="rm repo/run.log")
    assert judged(tester) == []
    tester.call("run_command", command="echo coffee >> repo/menu.md")
    assert "put these back" in judged(tester)[0]
    assert "repo/menu.md" in judged(tester)[0]
