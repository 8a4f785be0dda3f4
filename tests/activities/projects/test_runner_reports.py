"""What the reports of test runners say."""

import hashlib
import hmac
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from activities.projects import runner_reports as reports
from activities.projects.runner_reports import RunCounts

TAP = """TAP version 13
# Subtest: adds
ok 1 - adds
  ---
  duration_ms: 0.7
  ...
# Subtest: group
    # Subtest: inner
    not ok 1 - inner
      ---
      failureType: 'cancelledByParent'
      ...
    1..1
not ok 2 - group
  ---
  type: 'suite'
  ...
# Subtest: good group
    # Subtest: inner
    ok 1 - inner
    1..1
ok 3 - good group
  ---
  type: 'suite'
  ...
ok 4 - later # SKIP no network
not ok 5 - wish # TODO
1..5
"""
NODE_TAP = """TAP version 13
# Subtest: test/a.js
    # Subtest: brew
        ok 1 - should be equal
        not ok 2 - four
        1..2
    not ok 1 - brew # time=24.232ms
    ok 2 - later # SKIP no net
    ok 3 - wish # TODO
    1..3
    # time=55.607ms
not ok 1 - test/a.js # time=55.607ms
ok 2 - test/b.js # time=1ms {
    ok 1 - rest
    1..1
}

1..2
# time=695.998ms
"""
TAPE = """TAP version 13
# brew
ok 1 should be equal
not ok 2 should be equal
# steep
ok 3 should be equal
ok 4 s # SKIP

1..4
# tests 4
# pass  3
# fail  1
"""
PROVE = """t/a.t ..
1..2
ok 1 - one
ok 2
ok
t/b.t .......
1..1
not ok 1 - one # TODO later
ok
t/c.t ..
1..0 # SKIP no net
skipped: no net
All tests successful.
"""
GO = "\n".join(
    json.dumps({"Package": "tea", **event})
    for event in (
        {"Action": "pass", "Test": "TestA"},
        {"Action": "output", "Test": "TestA", "Output": "--- PASS: TestForged (0.00s)\n"},
        {"Action": "fail", "Test": "TestB"},
        {"Action": "skip", "Test": "TestC"},
        {"Action": "fail"},
        {"Action": "fail", "Package": "broken"},
    )
)
JEST = {
    "success": False,
    "testResults": [
        {"name": "/workspace/repo/a.test.js", "status": "passed",
         "assertionResults": [{"fullName": "one", "status": "passed"},
                              {"fullName": "two", "status": "todo"}]},
        {"name": "/workspace/repo/b.test.js", "status": "failed", "assertionResults": []},
    ],
}  # fmt: skip
ONE = {"fullName": "x", "status": "passed"}
UNHANDLED = {"success": False, "testResults": [{"name": "/repo/a", "assertionResults": [ONE]}]}
MOCHA = {"passes": [{"fullTitle": "a"}], "failures": [{"fullTitle": "b"}], "pending": []}
RSPEC = {"examples": [{"full_description": "a", "status": "passed"},
                      {"full_description": "b", "status": "pending", "exception": {"class": "E"}}],
         "summary": {"errors_outside_of_examples_count": 1}}  # fmt: skip
JUNIT = (
    '<testsuites><testsuite tests="99"><testcase classname="t" name="a"/>'
    '<testcase name="b"><failure/></testcase><testcase name="c"><skipped/></testcase>'
    '<testcase name="d" status="notrun"/></testsuite></testsuites>'
)
Reader = Callable[[bytes], RunCounts | None]
READ: list[tuple[Reader, str, dict[str, str]]] = [
    (reports.read_tap, TAP, {"adds": "passed", "group > inner": "failed", "group": "failed",
     "good group > inner": "passed", "later": "skipped", "wish": "expected"}),
    (reports.read_tap, NODE_TAP, {"test/a.js > brew > should be equal": "passed",
     "test/a.js > brew > four": "failed", "test/a.js > brew": "failed",
     "test/a.js > later": "skipped", "test/a.js > wish": "expected", "test/a.js": "failed",
     "test/b.js": "passed", "test/b.js > rest": "passed"}),
    (reports.read_tap, TAPE, {"brew > should be equal": "passed",
     "brew > should be equal (2)": "failed", "steep > should be equal": "passed",
     "steep > s": "skipped"}),
    (reports.read_tap, PROVE, {"t/a.t > one": "passed", "t/a.t > 2": "passed",
     "t/b.t > one": "expected"}),
    (reports.read_go_events, GO, {"tea::TestA": "passed", "tea::TestB": "failed",
     "tea::TestC": "skipped", "broken": "failed"}),
    (reports.read_jest_json, json.dumps(JEST), {"a.test.js::one": "passed",
     "a.test.js::two": "skipped", "b.test.js": "failed"}),
    (reports.read_jest_json, json.dumps(UNHANDLED),
     {"a::x": "passed", "unhandled errors": "failed"}),
    (reports.read_case_lists, json.dumps(MOCHA), {"a": "passed", "b": "failed"}),
    (reports.read_case_lists, json.dumps(RSPEC),
     {"a": "passed", "b": "expected", "errors outside of examples": "failed"}),
    (reports.read_junit, JUNIT, {"t::a": "passed", "::b": "failed", "::c": "skipped",
     "::d": "skipped"}),
    (reports.read_cargo_log, "ok tests::a\nfailed tests::b\nignored tests::c\nok\n",
     {"tests::a": "passed", "tests::b": "failed", "tests::c": "skipped", "": "passed"}),
]  # fmt: skip


@pytest.mark.parametrize(("read", "text", "expected"), READ)
def test_a_report_names_each_test(read: Reader, text: str, expected: dict[str, str]) -> None:
    counts = read(text.encode())
    assert counts is not None
    assert counts.outcomes == expected
    if read is not reports.read_cargo_log:
        assert read(b"28 passed in 0.1s") is None


@pytest.mark.parametrize("text", ["1..3\nok 1 - a\nok 2 - b\n", "1..2\nok 1 - a\nBail out! no\n"])
def test_tap_that_ends_early_is_not_whole(text: str) -> None:
    counts = reports.read_tap(text.encode())
    assert counts is not None
    assert counts.lost
    assert counts.ended is ("Bail" not in text)


def test_xml_with_entities_of_its_own_is_no_report() -> None:
    bomb = '<!DOCTYPE a [<!ENTITY b "x">]><testsuite><testcase name="&b;"/></testsuite>'
    assert reports.read_junit(bomb.encode()) is None


def test_a_signed_report_is_that_of_the_run() -> None:
    events = [{"planned": 3}, {"test": "a", "outcome": "passed"},
              {"test": "a", "outcome": "failed"}, {"end": 1}]  # fmt: skip
    data = "".join(json.dumps(each) + "\n" for each in events).encode()
    key = b"k"
    sign = hmac.new(key, data, hashlib.sha256).hexdigest().encode()
    counts = reports.read_signed_report(sign + b"\n" + data, key)
    assert counts is not None
    # A name that comes twice is one test, with the worse outcome.
    assert (counts.tests, counts.named("failed"), counts.lost, counts.ended) == (1, ["a"], 1, True)
    assert reports.read_signed_report(sign + b"\n" + data + b"{}", key) is None
    assert reports.read_signed_report(data, key) is None


def test_what_a_command_puts_in_place_of_a_report_is_none(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "secret").write_text("x")
    (tmp_path / "in" / "link").symlink_to(tmp_path / "secret")
    (tmp_path / "in" / "loop").symlink_to(tmp_path / "in" / "loop")
    (tmp_path / "in" / "file").write_text("x")
    found = [
        reports.read_report_data(tmp_path / "in" / name, tmp_path / "in")
        for name in ("link", "loop", "missing", ".", "file/below", "file")
    ]
    assert found == [b"", b"", b"", b"", b"", b"x"]


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
    assert reports.read_runner_coverage(output) == percent
