"""What becomes of a coder's and a tester's work: run by the system at their gate and after it."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from activities.projects.handoff import prepare_handoff_workspace
from activities.projects.handoff_proof import handoff_proof_problems
from activities.projects.product_copy import is_lock_file
from activities.projects.project_repository import ProjectRepository, project_repository_path
from activities.projects.work_examination import examine_work
from protocol.handoffs import Handoff, ProjectLink
from protocol.project_requests import ChildWork, TakeWorkRequest
from tests.activities.projects.proving import GOOD, UNITTEST, WHY
from tests.activities.standing import AT, JOB, Standing, environment

pytestmark = pytest.mark.skipif(WHY is not None, reason=f"no sandbox here: {WHY}")
BUG = "def brew(cups):\n    return 2\n"
COLD = (
    "import unittest\n\nimport tea\n\n\nclass Cold(unittest.TestCase):\n"
    "    def test_none(self):\n        self.assertEqual(tea.brew(0), 0)\n"
)
"""A test that a tester writes."""


class Desk:
    """A job that works for a project, and the project's repository."""

    def __init__(self, folder: Path, product: Mapping[str, str], **details: Any) -> None:
        self.standing = Standing.begin(folder, kind="tactical", agent="tester")
        self.held = ProjectRepository.create(project_repository_path(self.standing.root, "tea"))
        snapshot = self.standing.open()
        files = snapshot.files
        for path, text in product.items():
            files = files.write(f"handed/{path}", text.encode())
        tree = self.held.take_from(files, "handed")
        self.commit = self.held.commit(tree, [], "begin", AT)
        handoff = {
            "id": "brew-coder-1",
            "from_agent": "initializer",
            "to_agent": "coder",
            "task": "Brew.",
            "tests": {"unit": UNITTEST},
            **details,
            "inputs": {"commit": self.commit, **details.get("inputs", {})},
        }
        self.link = ProjectLink(
            id="tea",
            folder="repo",
            summary_tokens=1000,
            handoff=Handoff.model_validate(handoff),
        )
        prepare_handoff_workspace(self.standing.root, snapshot, self.link)
        self.standing.commit = snapshot.save("handed", AT)

    def write(self, path: str, text: str) -> None:
        self.standing.write(path, text)

    def verdict(self, *findings: str) -> None:
        passed = not findings
        fields = {"health": "ok", "checks": [{"check": "unit", "passed": passed}], "passed": passed}
        self.write("output/verdict.json", json.dumps({**fields, "findings": list(findings)}))

    @property
    def refusal(self) -> str:
        """Return the refusal by the gate of its job."""
        return self.refused()

    def refused(self, *unresolved: str) -> str:
        return handoff_proof_problems(self.standing.root, JOB, self.standing.open(), unresolved)

    def taken(self) -> ChildWork:
        """Return the project's examination of the finished job."""
        request = TakeWorkRequest(
            root=self.standing.root.id,
            form="features",
            job=JOB,
            checkpoint=self.standing.commit,
            folder="repo",
            handoff=self.link.handoff,
            tokens=1000,
            head=self.commit,
        )
        work, _ = environment(local=False).run(examine_work, self.standing.root, request, self.held)
        assert isinstance(work, ChildWork)
        return work

    def file(self, work: ChildWork, path: str) -> str:
        return (self.held.read_file(work.commit, path) or b"").decode()


def verdict_on(folder: Path, product: Mapping[str, str], **details: Any) -> Desk:
    """The verdict of a tester."""
    base = {"id": "brew-tester-1", "report": "verdict", "checks": ["unit"]}
    return Desk(folder, product, **{**base, **details})


def test_a_coder_is_refused_what_fails_and_told_the_ways_out(tmp_path: Path) -> None:
    coder = Desk(tmp_path, GOOD)
    coder.write("repo/tea.py", BUG)
    why = coder.refusal
    assert f"`{UNITTEST}` at the top of repo/ for the check unit: exit code 1" in why
    assert "FAILED (failures=1)" in why
    assert "files in repo/ can be edited in every phase" in why
    assert "`unresolved` that names the check" in why
    in_list = coder.standing.open()
    in_list.state.phase.ends_job = True
    why = handoff_proof_problems(coder.standing.root, JOB, in_list)
    assert "Mend it. Then call job_complete again" in why
    assert coder.taken().problems
    coder.write("repo/tea.py", GOOD["tea.py"] + "\n")
    assert coder.refusal == ""
    work = coder.taken()
    assert work.problems == []
    [run] = work.proofs
    assert (run.commit, run.asked_by, run.tests) == (work.commit, "brew-coder-1", 2)
    assert (run.phase, run.step) == (2, 0)


def test_what_passed_is_run_once_for_a_handoff_and_again_after_a_change(tmp_path: Path) -> None:
    counted = GOOD["tests/test_tea.py"] + (
        "    def test_secret(self):\n        import time\n        print('at', time.time_ns())\n"
    )
    coder = Desk(tmp_path, {**GOOD, "tests/test_tea.py": counted})
    assert coder.refusal == ""
    first, second = coder.taken().proofs[0].end, coder.taken().proofs[0].end
    assert first == second
    coder.write("repo/new.md", "x\n")
    assert coder.refusal == ""
    assert coder.taken().proofs[0].end != first


def test_only_what_is_handed_over_is_run(tmp_path: Path) -> None:
    """Not what lies beside the product, nor what a .gitignore or a cache hides."""
    coder = Desk(tmp_path, GOOD)
    coder.write("repo/tea.py", "from water import brew\n")
    coder.write("water.py", GOOD["tea.py"])
    coder.write("repo/__pycache__/water.py", GOOD["tea.py"])
    assert "No module named 'water'" in coder.refusal


def test_a_tester_that_passes_what_fails_is_refused(tmp_path: Path) -> None:
    desk = verdict_on(tmp_path, {**GOOD, "tea.py": BUG})
    desk.verdict()
    assert "`passed` cannot be true. The system ran" in desk.refusal
    assert "with this as a finding" in desk.refusal
    # Whatever the tester does to its copy, the coder's work as handed over is run.
    desk.write("repo/tea.py", GOOD["tea.py"])
    desk.write("repo/tests/test_tea.py", "import unittest\n")
    why = desk.refusal
    assert "put repo/tea.py, repo/tests/test_tea.py back" in why
    assert "`passed` cannot be true" in why
    assert desk.taken().problems
    desk.verdict("brew(1) is 2 and should be 2 a cup")
    assert desk.refusal == ""
    work = desk.taken()
    assert (work.problems, work.commit) == ([], desk.commit)


def test_an_honest_tester_needs_no_run_of_its_own(tmp_path: Path) -> None:
    desk = verdict_on(tmp_path, GOOD)
    desk.standing.call("run_command", command=f"cd repo && {UNITTEST} 2>&1 | tail -15")
    desk.verdict()
    assert desk.refusal == ""
    work = desk.taken()
    assert (work.problems, work.commit) == ([], desk.commit)
    [run] = work.proofs
    assert (run.asked_by, run.tests, run.step) == ("brew-tester-1", 2, 1)


def test_tests_of_a_tester_that_pass_are_merged(tmp_path: Path) -> None:
    desk = verdict_on(tmp_path, GOOD)
    desk.write("repo/tests/test_cold.py", COLD)
    desk.write("repo/scratch.py", "x = 1\n")
    desk.verdict()
    assert desk.refusal == ""
    work = desk.taken()
    assert work.problems == []
    assert desk.file(work, "tests/test_cold.py") == COLD
    # Nothing else of the tester's copy is taken.
    assert desk.held.changed_paths(desk.commit, work.commit) == ["tests/test_cold.py"]
    assert [run.tests for run in work.proofs] == [3]


def test_tests_of_a_tester_that_fail_go_to_the_coder(tmp_path: Path) -> None:
    product = {**GOOD, "tea.py": "def brew(cups):\n    return cups * 2 or 1\n"}
    desk = verdict_on(tmp_path, product)
    desk.write("repo/tests/test_cold.py", COLD)
    desk.verdict()
    assert "With the tests that you wrote (tests/test_cold.py) it does not pass" in desk.refusal
    desk.verdict("no cups give one")
    assert desk.refusal == ""
    work = desk.taken()
    assert (work.problems, work.tests) == ([], ["tests/test_cold.py"])
    assert desk.file(work, "tests/test_cold.py") == COLD
    assert [(run.passed, run.tests, run.failed) for run in work.proofs] == [(False, 3, 1)]
    branch = desk.held.git.references["refs/heads/jobs/tea.brew-tester-1"].target
    assert str(branch) == work.commit


def test_tests_that_no_command_runs_stay_on_the_testers_branch(tmp_path: Path) -> None:
    desk = verdict_on(tmp_path, GOOD, tests={"unit": "python3 -m unittest tests.test_tea"})
    desk.write("repo/tests/test_cold.py", COLD)
    desk.verdict()
    assert desk.refusal == ""
    work = desk.taken()
    assert (work.problems, work.commit) == ([], desk.commit)
    assert "refs/heads/jobs/tea.brew-tester-1" in desk.held.git.references


def test_a_feature_list_whose_runner_is_not_there_is_sent_back(tmp_path: Path) -> None:
    desk = Desk(tmp_path, GOOD, id="setup-initializer-1", report="features", tests={})

    def listed(command: str) -> None:
        one = {"id": "brew", "description": "x", "checks": ["unit"], "tests": {"unit": command}}
        desk.write("output/features.json", json.dumps({"features": [one]}))

    listed("phpunit tests")
    assert "`phpunit tests` cannot be run in the sandbox" in desk.refusal
    # A file that does not exist yet may start anything; one that does is followed.
    listed("make test")
    assert desk.refusal == ""
    desk.write("repo/check.sh", "echo 12 passing\n")
    listed("sh check.sh")
    assert "`sh check.sh` proves nothing: it runs no test" in desk.refusal
    # Tests that do not exist yet are a different case.
    listed("python3 -m unittest tests.test_brew")
    assert desk.refusal == ""


def test_a_lie_is_found_by_the_project_as_well(tmp_path: Path) -> None:
    """Bypassing the gate does not help: the project checks again."""
    product = {**GOOD, "check.sh": "echo '28 passed in 0.1s'\n"}
    coder = Desk(tmp_path, product, tests={"unit": "sh check.sh"})
    [why] = coder.taken().problems
    assert "it runs no test" in why


def test_a_tester_that_mends_the_product_is_told(tmp_path: Path) -> None:
    """What no test sees may be mended by the tester, and would be lost without a word."""
    desk = verdict_on(tmp_path, {**GOOD, "menu.py": "PRICE = 0\n", "notes.md": "x\n"})
    desk.write("repo/menu.py", "PRICE = 3\n")
    desk.standing.call("run_command", command="rm repo/notes.md")
    desk.verdict()
    why = desk.refusal
    assert "put repo/menu.py, repo/notes.md back" in why
    assert "make what was wrong there a finding" in why
    assert desk.taken().problems
    desk.verdict("PRICE is 0 in menu.py")
    assert desk.refusal == ""
    desk.write("repo/menu.py", "PRICE = 0\n")
    desk.write("repo/notes.md", "x\n")
    desk.verdict()
    assert desk.refusal == ""
    assert desk.taken().problems == []


def test_what_the_tests_themselves_change_is_no_edit_of_the_tester(tmp_path: Path) -> None:
    counting = GOOD["tests/test_tea.py"] + (
        "\n    def test_log(self):\n        import pathlib\n"
        "        pathlib.Path('runs.txt').write_text('ran')\n"
    )
    desk = verdict_on(tmp_path, {**GOOD, "tests/test_tea.py": counting, "runs.txt": ""})
    desk.standing.call("run_command", command=f"cd repo && {UNITTEST}")
    assert desk.standing.open().read_text("repo/runs.txt") == "ran"
    desk.verdict()
    assert desk.refusal == ""
    assert desk.taken().problems == []


def test_a_testers_failing_test_does_not_vanish(tmp_path: Path) -> None:
    desk = verdict_on(tmp_path, {**GOOD, "tea.py": "def brew(cups):\n    return cups * 2 or 1\n"})
    desk.write("repo/tests/test_cold.py", COLD)
    desk.verdict()
    assert "it does not pass; they run on the files as handed" in desk.refusal
    desk.standing.call("delete_file", path="repo/tests/test_cold.py")
    why = desk.refusal
    assert "that failed when the system ran them are gone, skipped or expected to fail" in why
    assert "tests.test_cold.Cold.test_none" in why
    assert desk.taken().problems
    assert desk.refused("test_none: no cups are not sold at all") == ""


@pytest.mark.parametrize("change", ["deleted", "skipped", "another value"])
def test_the_testers_test_comes_back_as_it_was_written(tmp_path: Path, change: str) -> None:
    product = {**GOOD, "tea.py": "def brew(cups):\n    return cups * 2 or 1\n"}
    inputs = {"written_tests": ["tests/test_cold.py"]}
    coder = Desk(tmp_path, {**product, "tests/test_cold.py": COLD}, inputs=inputs)
    if change == "deleted":
        coder.standing.call("delete_file", path="repo/tests/test_cold.py")
    elif change == "skipped":
        coder.write("repo/tests/test_cold.py", COLD.replace("class", "@unittest.skip('')\nclass"))
    else:
        coder.write("repo/tests/test_cold.py", COLD.replace(", 0)", ", 1)"))
    coder.write("repo/tea.py", product["tea.py"] + "\n")
    why = coder.refusal
    assert "exit code 1" in why
    assert "It ran tests/test_cold.py as the tester wrote them" in why
    if change == "another value":
        stated = "test_none: no cups cost one by the instructions"
        assert coder.refused(stated) == ""
        return
    coder.write("repo/tea.py", GOOD["tea.py"])
    assert coder.refusal == ""
    work = coder.taken()
    assert work.problems == []
    assert coder.file(work, "tests/test_cold.py") == COLD


def test_of_a_first_feature_the_refused_runs_are_the_baseline(tmp_path: Path) -> None:
    coder = Desk(tmp_path, {})
    for path, text in {**GOOD, "tea.py": "def brew(cups):\n    return cups + 1\n"}.items():
        coder.write(f"repo/{path}", text)
    assert "exit code 1" in coder.refusal
    one = GOOD["tests/test_tea.py"]
    coder.write("repo/tests/test_tea.py", one[: one.index("    def test_two")])
    why = coder.refusal
    assert "tests that failed when the system ran them are gone" in why
    assert "tests.test_tea.Tea.test_two" in why
    assert coder.taken().problems
    # A wrong test that is corrected in its place costs nothing, and its tester sees it.
    coder.write("repo/tests/test_tea.py", one.replace("brew(2), 4", "brew(2), 3"))
    assert coder.refusal == ""
    [run] = coder.taken().proofs
    assert "changed after it failed: tests/test_tea.py::Tea::test_two" in run.line


def test_changes_to_earlier_tests_are_shown_as_a_diff(tmp_path: Path) -> None:
    coder = Desk(tmp_path, GOOD)
    text = GOOD["tests/test_tea.py"].replace("brew(2), 4", "brew(3), 6")
    coder.write("repo/tests/test_tea.py", text)
    coder.write("repo/tests/test_cold.py", COLD)
    coder.write("repo/tea.py", GOOD["tea.py"] + "\n")
    work = coder.taken()
    assert work.problems == []
    assert "-        self.assertEqual(tea.brew(2), 4)" in work.test_changes
    assert "+        self.assertEqual(tea.brew(3), 6)" in work.test_changes
    assert "test_cold" not in work.test_changes


@pytest.mark.parametrize("named", ["unit", "brew"])
def test_what_a_coder_gives_up_is_told_in_its_own_words_first(tmp_path: Path, named: str) -> None:
    coder = Desk(tmp_path, {**GOOD, "tea.py": BUG})
    said = f"{named}: brewing needs a network, which is not there"
    coder.write("output/completion.json", json.dumps({"summary": "No.", "unresolved": [said]}))
    work = coder.taken()
    assert (work.given_up, work.problems) == (True, [said])
    coder.write("repo/tea.py", BUG + "\n")
    work = coder.taken()
    assert work.given_up
    assert work.problems[0] == said
    assert "exit code 1" in work.problems[1]
    coder.write("repo/tea.py", GOOD["tea.py"])
    work = coder.taken()
    assert (work.given_up, work.problems) == (False, [])


def test_an_entry_that_only_mentions_the_feature_gives_nothing_up(tmp_path: Path) -> None:
    coder = Desk(tmp_path, {**GOOD, "tea.py": BUG})
    for said in ("To brew a large pot takes a while: mind it", "brew: -"):
        coder.write("output/completion.json", json.dumps({"summary": "No.", "unresolved": [said]}))
        assert not coder.taken().given_up


@pytest.mark.parametrize(
    ("path", "is_lock"),
    [
        ("package-lock.json", True),
        ("web/yarn.lock", True),
        ("go.sum", True),
        ("clock.py", False),
        ("tests/test_lock.py", False),
        ("lock.py", False),
        ("menu.lock.py", False),
    ],
)
def test_lock_files_are_those_of_package_managers(path: str, is_lock: bool) -> None:
    assert is_lock_file(path) is is_lock
