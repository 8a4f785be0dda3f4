"""What the reports of test runners say: the outcome of each test, by name.

Only what a runner writes by machine is read: its own JUnit XML, JSON or TAP, or the signed
report of `python_runner`. What a run prints counts nothing.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from lxml import etree

from activities.text.safe_text import replace_surrogates

Outcome = Literal["passed", "failed", "skipped", "expected", "deselected"]
"""`expected` is a failure that the test itself announces."""
MAX_REPORT_BYTES = 50_000_000
MAX_TESTS = 200_000
MAX_NAME = 300
_ORDER: tuple[Outcome, ...] = ("passed", "deselected", "skipped", "expected", "failed")
"""A test that is reported twice counts as the worse of both."""


@dataclass
class RunCounts:
    """The tests of one run."""

    outcomes: dict[str, Outcome] = field(default_factory=dict)
    lost: int = 0
    """Tests that were collected and have no outcome."""
    ended: bool = True
    """False if the runner did not come to its end."""
    others: set[str] = field(default_factory=set)
    """Names of what is no test, such as a file that cannot be read or the set-up of a class."""
    errors: dict[str, str] = field(default_factory=dict)
    """Errors by which tests failed, as `TypeError: …`; of Python alone."""

    def named(self, *outcomes: Outcome) -> list[str]:
        return [name for name, outcome in self.outcomes.items() if outcome in outcomes]

    @property
    def tests(self) -> int:
        """Number of tests that ran and count: neither skipped nor expected to fail."""
        return len(self.named("passed", "failed"))

    @property
    def failed_tests(self) -> list[str]:
        return [name for name in self.named("failed") if name not in self.others]

    def add(self, name: str, outcome: Outcome, *, is_test: bool = True) -> None:
        name = replace_surrogates(name)[:MAX_NAME]
        if not is_test:
            self.others.add(name)
        known = self.outcomes.get(name, "passed")
        if len(self.outcomes) < MAX_TESTS or name in self.outcomes:
            self.outcomes[name] = max(known, outcome, key=_ORDER.index)

    def add_run(self, other: RunCounts, prefix: str) -> None:
        """Add the tests of another run of the same command."""
        for name, outcome in other.outcomes.items():
            self.add(prefix + name, outcome, is_test=name not in other.others)
        self.errors |= {prefix + name: error for name, error in other.errors.items()}
        self.lost += other.lost
        self.ended = self.ended and other.ended


def read_report_data(path: Path, within: Path) -> bytes:
    """Return the content of a report; empty if there is none that could be read.

    A command may put a link, a folder or a pipe in its place.
    """
    try:
        if path.is_symlink() or not path.is_file():
            return b""
        if not path.resolve().is_relative_to(within.resolve()):
            return b""
        with path.open("rb") as file:
            data = file.read(MAX_REPORT_BYTES + 1)
    except (OSError, RuntimeError):
        return b""
    return b"" if len(data) > MAX_REPORT_BYTES else data


def read_signed_report(data: bytes, key: bytes) -> RunCounts | None:
    """Read the report of `python_runner`; None unless its signature is right."""
    signature, _, events = data.partition(b"\n")
    expected = hmac.new(key, events, hashlib.sha256).hexdigest().encode()
    if not hmac.compare_digest(signature, expected):
        return None
    counts, planned, reported, groups = RunCounts(ended=False), 0, 0, 0
    for event in _json_lines(events):
        if "end" in event:
            counts.ended = True
        elif "planned" in event:
            planned += int(event["planned"])
        elif event.get("outcome") in _ORDER:
            groups += bool(event.get("group"))
            reported += not event.get("group") and event["outcome"] != "deselected"
            counts.add(str(event.get("test")), event["outcome"], is_test=not event.get("group"))
            if error := event.get("error"):
                counts.errors[str(event.get("test"))] = str(error)
    counts.lost = 0 if groups else max(0, planned - reported)
    return counts


def _json_lines(data: bytes) -> Iterator[dict[str, Any]]:
    for line in data.splitlines():
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if isinstance(event, dict):
            yield event


def _parse_xml(data: bytes) -> etree._Element | None:
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False)
    try:
        return etree.fromstring(data, parser)
    except (etree.XMLSyntaxError, ValueError):
        return None


def read_junit(data: bytes) -> RunCounts | None:
    """Read JUnit XML; None if the data is none, or has a document type of its own."""
    root = _parse_xml(data)
    if root is None or root.tag not in ("testsuites", "testsuite"):
        return None
    if root.getroottree().docinfo.doctype:
        return None
    counts = RunCounts()
    for case in root.iter("testcase"):
        tags = {child.tag for child in case}
        outcome: Outcome = "passed"
        if tags & {"failure", "error"} or case.get("status") in ("fail", "failed"):
            outcome = "failed"
        elif "skipped" in tags or case.get("status") in ("notrun", "disabled", "skipped"):
            outcome = "skipped"
        counts.add(f"{case.get('classname') or ''}::{case.get('name') or ''}", outcome)
    return counts


def read_go_events(data: bytes) -> RunCounts | None:
    """Read what `go test -json` writes; a package that fails to build counts as failed."""
    counts, is_report, broken = RunCounts(), False, list[str]()
    words: dict[str, Outcome] = {"pass": "passed", "fail": "failed", "skip": "skipped"}
    for event in _json_lines(data):
        is_report = True
        package, test = event.get("Package") or "", event.get("Test") or ""
        outcome = words.get(str(event.get("Action")))
        if outcome and test:
            counts.add(f"{package}::{test}", outcome)
        elif outcome == "failed":
            broken.append(package)
    failed = {name.partition("::")[0] for name in counts.named("failed")}
    for package in broken:
        if package not in failed:
            counts.add(package, "failed", is_test=False)
    return counts if is_report else None


def read_jest_json(data: bytes) -> RunCounts | None:
    """Read the JSON report of Jest or Vitest."""
    report = _read_json_object(data)
    if report is None or "testResults" not in report:
        return None
    counts = RunCounts()
    words: dict[str, Outcome] = {"passed": "passed", "failed": "failed"}
    for suite in report["testResults"]:
        results = suite.get("assertionResults") or []
        # The folder of the copy differs from run to run.
        name = str(suite.get("name") or "").rpartition("/repo/")[2].rpartition("/workspace/")[2]
        if suite.get("status") == "failed" and not any(
            case.get("status") == "failed" for case in results
        ):
            counts.add(name, "failed", is_test=False)
        for case in results:
            title = case.get("fullName") or case.get("title") or ""
            counts.add(f"{name}::{title}", words.get(case.get("status"), "skipped"))
    if not report.get("success", True) and not counts.named("failed"):
        # Errors outside of all tests.
        counts.add("unhandled errors", "failed", is_test=False)
    return counts


def read_case_lists(data: bytes) -> RunCounts | None:
    """Read the JSON report of Mocha or RSpec."""
    report = _read_json_object(data)
    if report is None:
        return None
    counts = RunCounts()
    if "examples" in report:
        words: dict[str, Outcome] = {"passed": "passed", "failed": "failed"}
        for case in report["examples"]:
            outcome = words.get(case.get("status"), "skipped")
            if case.get("status") == "pending" and case.get("exception"):
                outcome = "expected"
            counts.add(str(case.get("full_description") or ""), outcome)
        if (report.get("summary") or {}).get("errors_outside_of_examples_count"):
            counts.add("errors outside of examples", "failed", is_test=False)
        return counts
    if "passes" not in report:
        return None
    groups: tuple[tuple[str, Outcome], ...] = (
        ("passes", "passed"),
        ("failures", "failed"),
        ("pending", "skipped"),
    )
    for key, outcome in groups:
        for case in report.get(key) or []:
            counts.add(str(case.get("fullTitle") or ""), outcome)
    return counts


def _read_json_object(data: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


_TAP = re.compile(r"^( *)(not )?ok +(\d+)(?: +-)? *(.*?)(?: +# *(SKIP|TODO)\b.*)?$", re.I)
_TAP_TIME = re.compile(r"(?: # time=[\d.]+m?s)?(?: \{)?$")
_TAP_TITLE = re.compile(
    r"(?:# (?!tests? |pass|fail|skip|todo|ok$|time|Looks )(?P<group>.+)|(?P<file>\S.*?) \.{2,} *)$"
)
"""What prove writes before the lines of a file, and tape before those of a group."""


def read_tap(data: bytes) -> RunCounts | None:
    """Read TAP: a test with subtests follows them, indented less, or stands before them.

    What has `type: 'suite'` is no test. A test that was cancelled is `not ok`.
    """
    text = data.decode(errors="replace")
    lines, has_subtests = (
        text.splitlines(),
        re.search(r"^ *# Subtest: |\{$", text, re.M) is not None,
    )
    counts, above, is_report = RunCounts(), dict[int, str](), False
    planned, reported, names_seen = 0, 0, Counter[str]()
    for place, printed in enumerate(lines):
        line = _TAP_TIME.sub("", printed)
        if title := re.match(r"^( *)# Subtest: (.*)$", line):
            depth = len(title[1]) // 4
            above = {level: name for level, name in above.items() if level < depth}
            above[depth] = title[2]
        elif not has_subtests and (title := _TAP_TITLE.match(line)):
            above = {-2: title["file"]} if title["file"] else {**above, -1: title["group"]}
        planned += int(plan[1]) if (plan := re.match(r"1\.\.(\d+)", line)) else 0
        counts.ended = counts.ended and not line.startswith("Bail out!")
        if not (match := _TAP.match(line)):
            is_report = is_report or line.startswith(("TAP version", "1.."))
            continue
        is_report, depth = True, len(match[1]) // 4
        reported += not depth
        if printed.endswith("{"):
            above = {level: name for level, name in above.items() if level < depth}
            above[depth] = match[4]
        block = lines[place + 1 : place + 12]
        is_suite = any("type: 'suite'" in each for each in _tap_details(block))
        outcome: Outcome = "failed" if match[2] else "passed"
        if mark := (match[5] or "").upper():
            outcome = "skipped" if mark == "SKIP" else "expected"
        if is_suite and outcome == "passed":
            continue
        names = [name for level, name in sorted(above.items()) if level < depth]
        name = " > ".join([*names, match[4] or match[3]])
        names_seen[name] += not has_subtests
        counts.add(f"{name} ({n})" if (n := names_seen[name]) > 1 else name, outcome)
    counts.lost = max(0, planned - reported)
    return counts if is_report else None


def _tap_details(lines: list[str]) -> Iterable[str]:
    if not lines or lines[0].strip() != "---":
        return
    for line in lines[1:]:
        if line.strip() == "...":
            return
        yield line


def read_cargo_log(data: bytes) -> RunCounts | None:
    """Read the log file of Rust's test harness, with a line such as `failed name` per test."""
    counts = RunCounts()
    words: dict[str, Outcome] = {"ok": "passed", "failed": "failed", "ignored": "skipped"}
    for line in data.decode(errors="replace").splitlines():
        word, _, name = line.partition(" ")
        if outcome := words.get(word.rstrip(",")):
            counts.add(name, outcome)
    return counts


def read_runner_coverage(output: str) -> float | None:
    """Return the total coverage printed last, in percent; None if there is none."""
    matches = _COVERAGE.findall(output)
    return float(next(filter(None, matches[-1]))) if matches else None


_COVERAGE = re.compile(
    r"^(?:TOTAL\b.*?|total:\s+\(statements\)\s+|All files\s*\|\s*)(\d+(?:\.\d+)?)\s*[%|]?\s*$"
    r"|^All files\s*\|\s*(\d+(?:\.\d+)?)\s*\|"
    r"|coverage: (\d+(?:\.\d+)?)% of statements",
    re.MULTILINE,
)
