"""What the reports of test runners say: the outcome of each test, by name.

Only what a runner writes by machine is read: its own JUnit XML, JSON or TAP, or the signed
report of `python_runner`. What a run prints counts nothing.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
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

    def named(self, *outcomes: Outcome) -> list[str]:
        return [name for name, outcome in self.outcomes.items() if outcome in outcomes]

    @property
    def tests(self) -> int:
        """Number of tests that ran and count: neither skipped nor expected to fail."""
        return len(self.named("passed", "failed"))

    def add(self, name: str, outcome: Outcome) -> None:
        name = replace_surrogates(name)[:MAX_NAME]
        known = self.outcomes.get(name, "passed")
        if len(self.outcomes) < MAX_TESTS or name in self.outcomes:
            self.outcomes[name] = max(known, outcome, key=_ORDER.index)

    def add_run(self, other: RunCounts, prefix: str) -> None:
        """Add the tests of another run of the same command."""
        for name, outcome in other.outcomes.items():
            self.add(prefix + name, outcome)
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
    counts, planned, seen, groups = RunCounts(ended=False), 0, 0, 0
    for event in _json_lines(events):
        if "end" in event:
            counts.ended = True
        elif "planned" in event:
            planned += int(event["planned"])
        elif event.get("outcome") in _ORDER:
            groups += bool(event.get("group"))
            seen += not event.get("group") and event["outcome"] != "deselected"
            counts.add(str(event.get("test")), event["outcome"])
    counts.lost = 0 if groups else max(0, planned - seen)
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
    counts, found, broken = RunCounts(), False, list[str]()
    words: dict[str, Outcome] = {"pass": "passed", "fail": "failed", "skip": "skipped"}
    for event in _json_lines(data):
        found = True
        package, test = event.get("Package") or "", event.get("Test") or ""
        outcome = words.get(str(event.get("Action")))
        if outcome and test:
            counts.add(f"{package}::{test}", outcome)
        elif outcome == "failed":
            broken.append(package)
    failed = {name.partition("::")[0] for name in counts.named("failed")}
    for package in broken:
        if package not in failed:
            counts.add(package, "failed")
    return counts if found else None


def read_jest_json(data: bytes) -> RunCounts | None:
    """Read the JSON report of Jest or Vitest."""
    found = _read_json_object(data)
    if found is None or "testResults" not in found:
        return None
    counts = RunCounts()
    words: dict[str, Outcome] = {"passed": "passed", "failed": "failed"}
    for suite in found["testResults"]:
        results = suite.get("assertionResults") or []
        # The folder of the copy differs from run to run.
        name = str(suite.get("name") or "").rpartition("/repo/")[2].rpartition("/workspace/")[2]
        if suite.get("status") == "failed" and not any(
            case.get("status") == "failed" for case in results
        ):
            counts.add(name, "failed")
        for case in results:
            title = case.get("fullName") or case.get("title") or ""
            counts.add(f"{name}::{title}", words.get(case.get("status"), "skipped"))
    if not found.get("success", True) and not counts.named("failed"):
        # Errors outside of all tests.
        counts.add("unhandled errors", "failed")
    return counts


def read_case_lists(data: bytes) -> RunCounts | None:
    """Read the JSON report of Mocha or RSpec."""
    found = _read_json_object(data)
    if found is None:
        return None
    counts = RunCounts()
    if "examples" in found:
        words: dict[str, Outcome] = {"passed": "passed", "failed": "failed"}
        for case in found["examples"]:
            outcome = words.get(case.get("status"), "skipped")
            if case.get("status") == "pending" and case.get("exception"):
                outcome = "expected"
            counts.add(str(case.get("full_description") or ""), outcome)
        if (found.get("summary") or {}).get("errors_outside_of_examples_count"):
            counts.add("errors outside of examples", "failed")
        return counts
    if "passes" not in found:
        return None
    groups: tuple[tuple[str, Outcome], ...] = (
        ("passes", "passed"),
        ("failures", "failed"),
        ("pending", "skipped"),
    )
    for key, outcome in groups:
        for case in found.get(key) or []:
            counts.add(str(case.get("fullTitle") or ""), outcome)
    return counts


def _read_json_object(data: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


_TAP = re.compile(r"^( *)(not )?ok +(\d+)(?: +-)? *(.*?)(?: +# *(SKIP|TODO)\b.*)?$", re.I)


def read_tap(data: bytes) -> RunCounts | None:
    """Read TAP as Node's runner writes it: a test with subtests follows them, indented less.

    What has `type: 'suite'` is no test. A test that was cancelled is `not ok`.
    """
    text = data.decode(errors="replace")
    counts, above, found = RunCounts(), dict[int, str](), False
    lines = text.splitlines()
    for place, line in enumerate(lines):
        if title := re.match(r"^( *)# Subtest: (.*)$", line):
            depth = len(title[1]) // 4
            above = {level: name for level, name in above.items() if level < depth}
            above[depth] = title[2]
        if not (match := _TAP.match(line)):
            found = found or line.startswith(("TAP version", "1.."))
            continue
        found, depth = True, len(match[1]) // 4
        block = lines[place + 1 : place + 12]
        is_suite = any("type: 'suite'" in each for each in _tap_details(block))
        outcome: Outcome = "failed" if match[2] else "passed"
        if mark := (match[5] or "").upper():
            outcome = "skipped" if mark == "SKIP" else "expected"
        if is_suite and outcome == "passed":
            continue
        names = [name for level, name in sorted(above.items()) if level < depth]
        counts.add(" > ".join([*names, match[4] or match[3]]), outcome)
    return counts if found else None


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
