"""What runners write of their tests."""

from __future__ import annotations

import pytest

from activities.projects.runner_commands import runner_command_fault
from activities.projects.runner_counts import read_junit, read_runner_coverage, read_runner_summary

CLOSINGS = [
    ("python3 -m pytest", "=== 3 failed, 25 passed, 2 skipped, 1 xfailed in 0.12s ===", (29, 3, 2)),
    ("pytest -q", "28 passed, 1 warning in 1.02s\n", (28, 0, 0)),
    ("pytest -q", "2 passed, 1 error in 0.10s", (3, 1, 0)),
    ("pytest -q", "no tests ran in 0.01s", (0, 0, 0)),
    ("python3 -m unittest", "Ran 5 tests in 0.1s\n\nOK (skipped=2)", (3, 0, 2)),
    ("python3 -m unittest", "Ran 5 tests in 0.1s\n\nFAILED (failures=1, errors=2)", (5, 3, 0)),
    ("go test ./...", "--- PASS: TestA (0.00s)\n    --- SKIP: TestA/b\n--- FAIL: TestC", (2, 1, 1)),
    ("cargo test", "test result: ok. 5 passed; 0 failed; 1 ignored; 0 measured\n"
     "test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured", (8, 1, 1)),
    ("node --test", "# tests 6\n# suites 0\n# pass 4\n# fail 1\n# cancelled 0\n# skipped 1",
     (5, 1, 1)),
    ("npx jest", "Test Suites: 1 passed\nTests:   1 failed, 2 skipped, 5 passed, 8 total",
     (6, 1, 2)),
    ("npx vitest run", " Test Files  1 passed (1)\n      Tests  5 passed (5)\n", (5, 0, 0)),
    ("npx mocha", "  5 passing (12ms)\n  1 pending\n  2 failing\n", (7, 2, 1)),
    ("rspec", "5 examples, 1 failure, 1 pending", (4, 1, 1)),
    ("phpunit", "OK (5 tests, 8 assertions)", (5, 0, 0)),
    ("phpunit", "Tests: 5, Assertions: 8, Failures: 1, Skipped: 1.", (4, 1, 1)),
    ("mvn -q test", "[INFO] Tests run: 5, Failures: 1, Errors: 1, Skipped: 1", (4, 2, 1)),
    ("dotnet test", "Passed!  - Failed:     0, Passed:     5, Skipped:     1, Total:     6, Dur",
     (5, 0, 1)),
    ("ctest", "80% tests passed, 1 tests failed out of 5", (5, 1, 0)),
]  # fmt: skip


@pytest.mark.parametrize(("command", "output", "expected"), CLOSINGS)
def test_closing_lines_of_known_runners_are_read(
    command: str, output: str, expected: tuple[int, int, int]
) -> None:
    assert runner_command_fault(command) == ""
    summary = read_runner_summary(f"collecting\n{output}\n", command)
    assert summary
    assert (summary.tests, summary.failed, summary.skipped) == expected
    # A runner may be started by another program, but not by another runner.
    assert read_runner_summary(output, "make test")
    assert read_runner_summary("28 passed in 0.1s", "go test ./...") is None


@pytest.mark.parametrize("output", ["28 passed", "All 28 tests passed!", "OK", "Ran 28 tests", ""])
def test_what_no_runner_writes_is_no_count(output: str) -> None:
    assert read_runner_summary(output, "make test") is None


def test_junit_is_counted_case_by_case() -> None:
    report = (
        b'<?xml version="1.0"?><testsuites><testsuite tests="99">'
        b'<testcase name="a"/><testcase name="b"><failure/></testcase>'
        b'<testcase name="c"><skipped/></testcase><testcase name="d"><error/></testcase>'
        b"</testsuite></testsuites>"
    )
    summary = read_junit(report)
    assert summary
    assert (summary.tests, summary.failed, summary.skipped, summary.failures) == (
        3,
        2,
        1,
        ("b", "d"),
    )
    assert read_junit(b"<html/>") is None
    assert read_junit(b"28 passed") is None
    bomb = b'<!DOCTYPE a [<!ENTITY b "x">]><testsuite><testcase name="&b;"/></testsuite>'
    assert (read_junit(bomb) or summary).failures != ("x",)


@pytest.mark.parametrize(
    ("output", "percent"),
    [
        ("TOTAL                 50      5    90%", 90),
        ("All files |   85.71 |    66.66 |     100 |   85.71 |", 85.71),
        ("ok  \ttea\t0.1s\tcoverage: 72.5% of statements", 72.5),
        ("TOTAL 90%\nTOTAL 10 5 50%", 50),
        ("90%", None),
    ],
)
def test_total_coverage_is_read(output: str, percent: float | None) -> None:
    assert read_runner_coverage(output) == percent
