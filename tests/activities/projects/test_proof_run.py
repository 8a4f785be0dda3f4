"""The system's own runs: what is no proof is refused whatever it prints; honest work passes."""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from activities.projects.lost_tests import Baseline
from activities.projects.proof_run import NO_REPORT
from activities.projects.suite_probes import NOT_SEEN
from protocol.proof import AcceptedRun, proof_command_without_cd
from tests.activities.projects.proving import GOOD, PYTEST, UNITTEST, WHY, Bench

pytestmark = pytest.mark.skipif(WHY is not None, reason=f"no sandbox here: {WHY}")
BAD = {**GOOD, "tea.py": "def brew(cups):\n    return 1\n"}
"""The same with a bug."""
SAYS_SO = (
    "print('28 passed in 0.10s', flush=True)\nprint('Ran 28 tests in 0.1s\\n\\nOK', flush=True)\n"
)
TESTS = GOOD["tests/test_tea.py"]
COOL = "def cool(cups):\n    return cups + 1\n"


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


@pytest.mark.parametrize(
    "command",
    [
        PYTEST,
        UNITTEST,
        "python3 -m unittest tests.test_tea",
        "python3 -m unittest discover -s tests -t . 2>&1 | tail -15",
        "cd repo && python3 -m pytest -q",
        "python3 -m unittest && python3 -m unittest -v tests/test_tea.py",
        "make test",
        "sh check.sh",
    ],
)
def test_honest_work_passes(bench: Bench, command: str) -> None:
    product = {**GOOD, "Makefile": "test:\n\tpython3 -m unittest discover -s tests -t .\n"}
    product["check.sh"] = "python3 -m unittest discover -s tests -t .\n"
    report = bench.prove(product, proof_command_without_cd(command, "repo"), before=product)
    assert report.problems == []
    [run] = report.proofs
    assert (run.passed, run.exit_code, run.tests, run.failed, run.skipped) == (True, 0, 2, 0, 0)


def test_what_a_run_showed_is_kept_and_what_is_cut_is_marked(bench: Bench) -> None:
    loud = {**GOOD, "tests/test_tea.py": TESTS + "import sys\nsys.stderr.write('tea ' * 2000)\n"}
    [run] = bench.prove(loud, UNITTEST).proofs
    assert run.cut
    assert run.end.startswith("…")
    assert run.end.endswith("OK")
    [run] = bench.prove(GOOD, PYTEST).proofs
    assert not run.cut
    assert "2 passed" in run.end
    assert run.line == f"unit: {PYTEST}: exit code 0, 2 tests"


@pytest.mark.parametrize("command", [PYTEST, UNITTEST])
def test_work_that_fails_comes_back_with_the_end_of_the_output(bench: Bench, command: str) -> None:
    report = bench.prove(BAD, command)
    [why] = report.problems
    assert f"`{command}` at the top of repo/ for the check unit: exit code 1" in why
    assert "test_one" in why
    [run] = report.proofs
    assert (run.passed, run.tests, run.failed) == (False, 2, 2)


@pytest.mark.parametrize(
    ("command", "why"),
    [
        (f"{PYTEST} || true", "leave out ||"),
        (f"{PYTEST}; true", "leave out ;"),
        (f"{PYTEST}; exit 0", "leave out ;"),
        (f"{PYTEST} && exit 0", "leave out exit"),
        (f"! {PYTEST}", "leave out !"),
        (f"{PYTEST} &", "leave out &"),
        (f"set +o pipefail && {PYTEST} | tail", "leave out set"),
        (f"{PYTEST} > /dev/null", "leave out >"),
        (f"{PYTEST}\ntrue", "in one line"),
        ("echo `python3 -m pytest`", "commands within"),
        ("python3 -c \"print('19 passed in 0.1s')\"", "code of its own"),
        ("python3 -c \"print('19 passed')\" # pytest", "leave the comment out"),
        ("sh -c 'python3 -m pytest; true'", "code of its own"),
        ("PATH=.:$PATH pytest", "leave out PATH="),
        ("PYTEST_ADDOPTS=--co pytest", "leave out PYTEST_ADDOPTS="),
        ("export PATH=. && pytest", "leave out PATH="),
        (f"{PYTEST} -k one", "leave out -k"),
        (f"{PYTEST} --maxfail=1", "leave out --maxfail"),
        ("pytest --collect-only", "leave out --collect-only"),
        ("python3 -m pytest tests/test_tea.py::Tea::test_one", "whole files"),
        ("echo 28 passed in 0.1s", "runs no test"),
        ("ls tests && cat tea.py", "runs no test"),
        ("python3 'unclosed", "cannot read"),
    ],
)
def test_commands_that_prove_nothing_are_not_run(bench: Bench, command: str, why: str) -> None:
    report = bench.prove(GOOD, command)
    assert why in report.problems[0]
    assert report.proofs[0].exit_code is None


@pytest.mark.parametrize(
    ("product", "command", "why"),
    [
        # A pipe does not hide a failure.
        (BAD, f"{UNITTEST} | tail -2", "exit code 1"),
        (BAD, f"{UNITTEST} 2>&1 | cat", "exit code 1"),
        # No tests are collected.
        ({**GOOD, "tests/test_tea.py": ""}, PYTEST, "exit code 5"),
        ({**GOOD, "tests/test_tea.py": ""}, UNITTEST, "found no tests to run"),
        # It prints success but is no test.
        ({**GOOD, "tests/check.py": SAYS_SO}, "python3 tests/check.py", "no test runner"),
        ({**GOOD, "check.sh": "echo '28 passed in 0.1s'\n"}, "sh check.sh", "runs no test"),
        ({**GOOD, "Makefile": "t:\n\t@echo 28 passed in 0.1s\n"}, "make t", "runs no test"),
        # What would ignore the exit code is not asked: the system starts the runner itself.
        ({**BAD, "Makefile": f"t:\n\t-{UNITTEST}\n"}, "make t", "exit code 1"),
        ({**BAD, "tests/test_tea.py": TESTS + SAYS_SO}, UNITTEST, "exit code 1"),
        # It ends the run too early.
        ({**BAD, "tests/test_a.py": f"{SAYS_SO}import os\nos._exit(0)\n"}, UNITTEST, NO_REPORT),
        (
            {**BAD, "tests/__init__.py": f"{SAYS_SO}import os\ngetattr(os, '_ex' + 'it')(0)\n"},
            UNITTEST,
            NO_REPORT,
        ),
        ({**BAD, "tests/__init__.py": "raise SystemExit(0)\n"}, UNITTEST, "exit code 1"),
        # All tests are skipped.
        (
            {**BAD, "tests/test_tea.py": TESTS.replace("class", "@unittest.skip('')\nclass")},
            PYTEST,
            "found no tests to run",
        ),
        # The runner is replaced.
        ({**BAD, "pytest.py": SAYS_SO}, PYTEST, "pytest.py would be run in place of the real"),
        ({**BAD, "unittest/__init__.py": ""}, UNITTEST, "unittest/ would be run in place"),
        ({**BAD, "tests/sitecustomize.py": "", "tests/__init__.py": ""}, UNITTEST, "exit code 1"),
        ({**BAD, "src/sitecustomize.py": ""}, PYTEST, "src/sitecustomize.py would be run"),
        ({**BAD, "bin/pytest": f"#!/usr/bin/python3\n{SAYS_SO}"}, "bin/pytest", "leave out bin"),
        # Results are changed by a hook.
        (
            {**BAD, "conftest.py": "def pytest_runtest_makereport(item, call):\n    pass\n"},
            PYTEST,
            "conftest.py has pytest_runtest_makereport",
        ),
        (
            {**BAD, "conftest.py": "def pytest_sessionfinish(session):\n    pass\n"},
            PYTEST,
            "conftest.py has pytest_sessionfinish",
        ),
        # The name is assembled, so that no word gives it away.
        (
            {
                **BAD,
                "conftest.py": (
                    "def call(pyfuncitem):\n    return True\n"
                    "globals()['pytest_pyfunc' + '_call'] = call\n"
                ),
                "tests/test_tea.py": "def test_one():\n    assert False\n",
            },
            PYTEST,
            NOT_SEEN,
        ),
        ({**BAD, "pytest.ini": "[pytest]\naddopts = --co\n"}, PYTEST, "found no tests to run"),
        ({**GOOD, "tests/test_tea.py": TESTS + "def load_tests(*a):\n    import unittest\n"
          "    return unittest.TestSuite()\n"}, UNITTEST, "found no tests to run"),
    ],
)  # fmt: skip
def test_false_proofs_are_refused(
    bench: Bench, product: Mapping[str, str], command: str, why: str
) -> None:
    assert why in bench.why(product, command)


def test_a_command_that_no_runner_is_known_for_counts_by_a_persons_word(bench: Bench) -> None:
    """Its exit code is all that is known, unless it writes a report; no agent can accept it."""
    old = '<testsuite><testcase name="test_one"/><testcase name="test_two"/></testsuite>'
    product = {"check.sh": "test -f tea.c\n", "tea.c": "x", "out/junit.xml": old}
    assert "runs no test" in bench.why(product, "sh check.sh")
    accepted = {"command": "sh check.sh", "exit_code_only": True}
    [run] = bench.prove(product, accepted).proofs
    assert (run.passed, run.tests, run.line) == (
        True,
        None,
        "unit: sh check.sh: exit code 0, exit code only",
    )
    with_report = {**accepted, "report": "out/junit.xml"}
    [run] = bench.prove(product, with_report).proofs
    assert run.tests is None  # the report came with the product
    writes = {**product, "check.sh": f"printf '{old}' > out/junit.xml\n"}
    [run] = bench.prove(writes, with_report).proofs
    assert (run.passed, run.tests, run.exit_code_only) == (True, 2, False)
    assert "exit code 1" in bench.why({"check.sh": "exit 1\n"}, accepted)


@pytest.mark.parametrize(
    "files", [{"out/junit.xml/x": "1"}, {"out": "1"}], ids=["a folder", "below a file"]
)
def test_a_report_that_is_none_is_told_to_the_agent(bench: Bench, files: Mapping[str, str]) -> None:
    test = {"command": "sh check.sh", "report": "out/junit.xml", "exit_code_only": True}
    why = bench.why({"check.sh": "true\n", **files}, test)
    assert "out/junit.xml cannot be a report" in why


def test_what_was_accepted_with_the_product_may_stay(bench: Bench) -> None:
    """A coder is not responsible for a hook in the repository that a person started from."""
    hook = "def pytest_sessionfinish():\n    pass\n"
    product = {**GOOD, "conftest.py": hook}
    refused = bench.why(product, PYTEST, before=GOOD)
    assert "conftest.py has pytest_sessionfinish" in refused
    assert bench.why(product, PYTEST, before=product) == ""
    # Whether it changes the test results is checked all the same.
    faked = {**BAD, "conftest.py": "import pytest\n\n\n@pytest.hookimpl(tryfirst=True)\n"
             "def pytest_runtest_protocol(item, nextitem):\n    return True\n"}  # fmt: skip
    assert bench.why(faked, PYTEST, before=faked) != ""


def test_tests_are_known_by_name(bench: Bench) -> None:
    """Another test in the place of one that is gone does not make up for it."""
    other = TESTS.replace("test_two", "test_other")
    product = {**GOOD, "tests/test_tea.py": other}
    why = bench.why(product, UNITTEST, before=GOOD)
    assert "are gone, skipped or expected to fail: tests.test_tea.Tea.test_two" in why
    handoff = bench.handoff(UNITTEST)
    files, before = bench.files(product), bench.files(GOOD)
    stated = ["test_two: two cups are one too many by the new instructions"]
    result = bench.proving.run_checks(files, handoff, before, stated)
    assert result.problems == []
    assert (
        "gone or weaker, by a statement of the job: tests.test_tea.Tea.test_two"
        in result.proofs[0].line
    )
    quiet = {**GOOD, "tests/test_tea.py": ONE_SKIPPED}
    assert "skipped or expected to fail" in bench.why(quiet, UNITTEST, before=GOOD)
    # It failed when the system ran it for this feature: a mark does not mend that.
    failed = Baseline(before, ["tests.test_tea.Tea.test_two"], UNITTEST)
    seen = replace(bench.proving, refused=[failed])
    [why] = seen.run_checks(bench.files(quiet), handoff, None).problems
    assert "when the system ran them are gone, skipped or expected to fail: tests.test_tea" in why


def test_work_whose_new_tests_are_all_skipped_is_refused(bench: Bench) -> None:
    new = "    @unittest.skip('')\n    def test_new(self):\n        self.fail()\n"
    product = {**GOOD, "tests/test_tea.py": f"{TESTS}\n{new}"}
    why = bench.why(product, UNITTEST, before=GOOD)
    assert "all tests that are new are skipped or expected to fail: tests.test_tea.Tea" in why


def test_names_of_cases_may_differ_from_run_to_run(bench: Bench) -> None:
    cases = (
        "import time\n\nimport pytest\n\nimport tea\n\n\n"
        "@pytest.mark.parametrize('at', [f'{time.time_ns()}', '1'])\n"
        "def test_at(at):\n    assert tea.brew(1) == 2\n"
    )
    before = {**GOOD, "tests/test_at.py": cases}
    product = {**before, "tests/test_more.py": "import tea\n\n\ndef test_more():\n"
               "    assert tea.brew(3) == 6\n"}  # fmt: skip
    assert bench.why(product, PYTEST, before=before) == ""
    fewer = cases.replace(", '1'", "")
    why = bench.why({**product, "tests/test_at.py": fewer}, PYTEST, before=before)
    assert "tests/test_at.py::test_at[1]" in why


ONE_SKIPPED = TESTS.replace("    def test_two", "    @unittest.skip('')\n    def test_two")


def test_tests_that_are_gone_or_skipped_are_missed(bench: Bench) -> None:
    def why(text: str, **before: Any) -> str:
        accepted = AcceptedRun(**{"command": UNITTEST, "tests": 2, "feature": "tea", **before})
        return bench.why({**GOOD, "tests/test_tea.py": text}, UNITTEST, accepted=[accepted])

    assert why(TESTS) == ""
    fewer = TESTS[: TESTS.index("    def test_two")]
    assert "it ran 1 test, and 2 before" in why(fewer)
    assert "it ran 1 test, and 2 before" in why(ONE_SKIPPED)
    assert "1 tests are skipped, and 0 before" in why(ONE_SKIPPED, tests=1)
    assert why(ONE_SKIPPED, tests=1, skipped=1) == ""
    # As many as before another feature began: none of them belongs to this one.
    assert "none is of this feature" in why(TESTS, feature="coffee")
    assert why(TESTS, feature="coffee", tests=1) == ""


def test_what_pytest_skips_is_counted_apart(bench: Bench) -> None:
    accepted = AcceptedRun(command=PYTEST, tests=2, feature="tea")
    product = {**GOOD, "tests/test_tea.py": ONE_SKIPPED}
    assert "it ran 1 test, and 2 before" in bench.why(product, PYTEST, accepted=[accepted])


def test_what_was_accepted_before_has_to_hold_still(bench: Bench) -> None:
    product = {**GOOD, "tests/test_cup.py": TESTS.replace("tea", "cup"), "cup.py": GOOD["tea.py"]}
    own = "python3 -m unittest tests/test_cup.py"
    accepted = [
        AcceptedRun(command="python3 -m unittest tests/test_tea.py", tests=2, feature="tea")
    ]
    assert bench.why(product, own, accepted=accepted) == ""
    del product["tests/test_tea.py"]
    reason = bench.why(product, own, accepted=accepted)
    assert "The feature tea was accepted and holds no longer" in reason


def test_as_many_tests_are_run_as_are_asked_for(bench: Bench) -> None:
    assert bench.why(GOOD, {"command": UNITTEST, "min_tests": 2}) == ""
    assert "it ran 2 tests, and 3 are asked for" in bench.why(
        GOOD, {"command": UNITTEST, "min_tests": 3}
    )


def test_coverage_is_read_from_what_the_run_prints(bench: Bench) -> None:
    product = {**GOOD, "tests/__init__.py": "print('TOTAL      10      2    80%')\n"}
    assert bench.why(product, UNITTEST, coverage=80) == ""
    short = bench.why(product, UNITTEST, coverage=90)
    assert "at least 90 % is asked for; the runs print 80 %" in short
    assert "print none" in bench.why(GOOD, UNITTEST, coverage=90)


def test_a_runner_that_is_not_there_is_named_so(bench: Bench) -> None:
    bench.shell = bench.shell.model_copy(update={"path": [], "readable": []})
    assert "the test runner is not there" in bench.why(GOOD, "/usr/bin/python3 -m pytest")
    assert "the test runner is not there" in bench.why(GOOD, "phpunit tests")


def test_a_run_leaves_nothing_and_begins_from_nothing(bench: Bench) -> None:
    """A file written in one run is missing in the next: each gets a copy of the tree alone."""
    once = TESTS + (
        "    def test_fresh(self):\n        import pathlib\n"
        "        self.assertFalse(pathlib.Path('mark').exists())\n"
        "        pathlib.Path('mark').write_text('x')\n"
    )
    for _ in range(2):
        assert bench.why({**GOOD, "tests/test_tea.py": once}, UNITTEST) == ""


def test_a_build_may_generate_what_it_generated_at_the_start(bench: Bench) -> None:
    build = "test:\n\tmkdir -p lib/new\n\tcp tea.py lib/copy.py\n\ttouch lib/new/a b\n"
    product = bench.files({**GOOD, "Makefile": f"{build}\t{PYTEST}\n", "lib/copy.py": ""})
    command = bench.handoff({"command": "make test", "by_person": True}).tests["unit"]
    start = replace(bench.proving, generated=None).run_command(product, command)
    assert start.is_green
    assert start.generated[0] == "lib/copy.py"
    assert {"b", "lib/new"} <= set(start.generated)
    assert "lib/new/a" not in start.generated
    assert replace(bench.proving, generated=start.generated).run_command(product, command).is_green
    assert "changes lib/copy.py" in bench.proving.run_command(product, command).refused


def test_tests_may_be_run_by_a_file_that_imports_them(bench: Bench) -> None:
    gathered = {
        "tests/__main__.py": "from .test_tea import Tea\n",
        "pytest.ini": "[pytest]\npython_files = __main__.py\n",
    }
    before = {**GOOD, **gathered}
    command = {"command": PYTEST, "by_person": True}
    more = TESTS + "\n    def test_three(self):\n        self.assertEqual(tea.brew(3), 6)\n"
    assert bench.why({**before, "tests/test_tea.py": more}, command, before=before) == ""
    blind = "    def run(self, result): result.startTest(self); result.stopTest(self)\n"
    product = {
        **before,
        "tests/test_tea.py": more.replace(
            "(unittest.TestCase):\n", f"(unittest.TestCase):\n{blind}"
        ),
    }
    assert NOT_SEEN in bench.why(product, command, before=before)


def test_tests_that_were_skipped_before_are_not_shown_again(bench: Bench) -> None:
    product = {**GOOD, "tests/test_tea.py": ONE_SKIPPED}
    for skipped, shown in ((1, []), (0, ["tests/test_tea.py::Tea::test_two"])):
        accepted = [AcceptedRun(command=PYTEST, tests=1, skipped=skipped)]
        [proof] = bench.prove(product, PYTEST, before=product, accepted=accepted).proofs
        assert [name for name in shown if name in " ".join(proof.shown)] == shown
        assert bool(proof.shown) == bool(shown)


OLD_TESTS = {
    "tea.py": (
        "def brew(cups):\n    return cups * 2\n\n\ndef pour(cups):\n    return cups - 1\n\n\n"
        "def name():\n    return 'tea'\n"
    ),
    "base.py": (
        "import unittest\n\n\nclass Base(unittest.TestCase):\n"
        "    def check(self, found, wanted):\n        self.assertEqual(found, wanted)\n"
    ),
    "data/cups.json": '{"5": 10}\n',
    "same.py": "def same(found, wanted):\n    assert found == wanted\n",
    "tests/helper.py": "def check(found, wanted):\n    assert found == wanted\n",
    "tests/test_base.py": (
        "import tea\nfrom base import Base\n\n\nclass TestBase(Base):\n"
        "    def test_base(self):\n        self.check(tea.brew(2), 4)\n"
    ),
    "tests/test_bound.py": "import tea\n\n\ndef test_bound():\n    assert tea.brew(1) == 2\n",
    "tests/test_data.py": (
        "import json\nimport tea\n\n\ndef test_data():\n"
        "    for cups, wanted in json.load(open('data/cups.json')).items():\n"
        "        assert tea.brew(int(cups)) == wanted\n"
    ),
    "tests/test_helped.py": (
        "import tea\nfrom helper import check\n\n\ndef test_helped():\n    check(tea.brew(2), 4)\n"
    ),
    "tests/test_many.py": (
        "import pytest\nimport tea\n\n\n@pytest.mark.parametrize(('cups', 'wanted'), [(3, 6)])\n"
        "def test_many(cups, wanted):\n    assert tea.brew(cups) == wanted\n"
    ),
    "tests/test_name.py": (
        "from tea import name\n\n\ndef test_name():\n    assert name() == 'tea'\n"
    ),
    "tests/test_pour.py": "import tea\n\n\ndef test_pour():\n    assert tea.pour(3) == 2\n",
    "tests/test_same.py": (
        "import tea\nfrom same import same\n\n\ndef test_same():\n    same(tea.brew(2), 4)\n"
    ),
    "tests/test_value.py": (
        "import tea\n\n\ndef test_value():\n    assert tea.brew(3) == 6\n\n\n"
        "def test_kind():\n    assert isinstance(tea.brew(3), int)\n"
    ),
}


def fitted(shown: str) -> set[str]:
    named = re.search(r"pass only as this work changed them: (.*)", shown)
    return (
        {each.rpartition("::")[2] for each in re.split(r", | and ", named[1])} if named else set()
    )


def test_older_tests_that_were_fitted_to_the_work_are_named_whatever_was_done_to_them(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was asked of the accepted product fails now; another feature's command shows it."""
    monkeypatch.setattr("activities.projects.proof_run.MOST_NAMES", 20)

    def with_change(path: str, old: str, new: str) -> dict[str, str]:
        assert old in OLD_TESTS[path]
        return {path: OLD_TESTS[path].replace(old, new)}

    after = {
        **OLD_TESTS,
        "tea.py": OLD_TESTS["tea.py"].replace("* 2", "* 3").replace("- 1", "- 2") + "\n\n" + COOL,
        **with_change("base.py", "assertEqual(found, wanted)", "assertTrue(found)"),
        **with_change("data/cups.json", "10", "15"),
        **with_change("same.py", "==", "!="),
        **with_change("tests/helper.py", "==", "!="),
        **with_change("tests/test_bound.py", "== 2", ">= 0"),
        **with_change("tests/test_many.py", "(3, 6)", "(3, 9)"),
        "tests/conftest.py": "import tea\n\ntea.pour = lambda cups: cups - 1\n",
        "tests/more/test_value.py": OLD_TESTS["tests/test_value.py"].replace("== 6", "== 9"),
        "cool/test_cool.py": "import tea\n\n\ndef test_cool():\n    assert tea.cool(1) == 2\n",
    }
    del after["tests/test_value.py"]
    accepted = [AcceptedRun(command=PYTEST, tests=10)]
    result = bench.prove(after, "python3 -m pytest -q cool", before=OLD_TESTS, accepted=accepted)
    assert fitted(" ".join(result.proofs[0].shown)) == {
        *("test_base", "test_bound", "test_data", "test_helped", "test_many[3-6]"),
        *("test_pour", "test_same", "test_value"),
    }, result


def test_changes_of_older_tests_that_hide_nothing_are_not_named(bench: Bench) -> None:
    """Nor are those beside a test that the new code cannot even load."""
    after = {
        **OLD_TESTS,
        "tea.py": OLD_TESTS["tea.py"].replace("def name", "def title") + "\n\n" + COOL,
        "data/cups.json": '{"5": 10, "6": 12}\n',
        "tests/lib/help.py": OLD_TESTS["tests/helper.py"],
        "tests/test_helped.py": OLD_TESTS["tests/test_helped.py"].replace("helper", "lib.help"),
        "tests/more/test_pour.py": OLD_TESTS["tests/test_pour.py"],
        "tests/test_bound.py": OLD_TESTS["tests/test_bound.py"]
        + "\n\ndef test_cool():\n    assert tea.cool(1) == 2\n",
        "tests/test_many.py": OLD_TESTS["tests/test_many.py"].replace("(3, 6)", "(3, 6), (4, 8)"),
        "tests/test_name.py": OLD_TESTS["tests/test_name.py"]
        .replace("name()", "title()")
        .replace("import name", "import title")
        .replace("test_title", "test_name"),
    }
    del after["tests/helper.py"], after["tests/test_pour.py"]
    result = bench.prove(after, PYTEST, before=OLD_TESTS)
    assert result.problems == []
    assert fitted(" ".join(result.proofs[0].shown)) == {"test_name"}
