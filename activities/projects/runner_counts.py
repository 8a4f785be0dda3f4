"""How many tests a run executed, and what they covered.

Counts come from JUnit XML where the runner writes it, else from the summary line of a known runner.
All other output is ignored.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

from lxml import etree

from activities.projects.runner_commands import INSPECTION_PROGRAMS, readable_runner_commands

MAX_XML = 50_000_000


@dataclass(frozen=True)
class RunCounts:
    """Test counts of one run."""

    tests: int
    """Tests that ran; skipped ones are excluded."""
    failed: int = 0
    skipped: int = 0
    failures: tuple[str, ...] = ()
    """Names of failed tests, where known."""
    runner: str = ""
    """Runner that reported the counts, such as `pytest`; empty if unknown."""


def read_junit(data: bytes) -> RunCounts | None:
    """Return the counts of a JUnit XML report; None if the data is not a report."""
    if len(data) > MAX_XML:
        return None
    try:
        parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False)
        root = etree.fromstring(data, parser)
    except etree.XMLSyntaxError:
        return None
    if root.tag not in ("testsuites", "testsuite"):
        return None
    tests = skipped = 0
    failures: list[str] = []
    for case in root.iter("testcase"):
        tags = {child.tag for child in case}
        if "skipped" in tags:
            skipped += 1
            continue
        tests += 1
        if tags & {"failure", "error"}:
            failures.append(str(case.get("name") or ""))
    return RunCounts(tests, len(failures), skipped, tuple(failures))


def read_runner_summary(output: str, command: str) -> RunCounts | None:
    """Return the counts in the last summary line of the command's runner; None without one."""
    results = []
    for name in _runners_of(command):
        position, counts = SUMMARY_READERS[name](output)
        if counts:
            results.append((position, replace(counts, runner=name)))
    return max(results, key=lambda each: each[0])[1] if results else None


def is_python(command: str) -> bool:
    """Return whether the command starts only Python's runners."""
    return set(_runners_of(command)) <= {"pytest", "unittest"}


def _runners_of(command: str) -> Collection[str]:
    """Return runners whose summary line may appear: those the command starts, else all."""
    runners: set[str] = set()
    for words in readable_runner_commands(command):
        program = words[0].rpartition("/")[2].rstrip("0123456789.")
        if program in INSPECTION_PROGRAMS:
            continue
        if program not in _STARTS:
            return SUMMARY_READERS.keys()
        runners |= _STARTS[program]
    return runners or SUMMARY_READERS.keys()


_OF_PYTHON = frozenset({"pytest", "unittest"})
_OF_NODE = frozenset({"node", "jest", "mocha"})
_STARTS = {
    **dict.fromkeys(("python", "pytest", "py.test", "coverage", "uv", "poetry"), _OF_PYTHON),
    **dict.fromkeys(("node", "npx", "jest", "vitest", "mocha"), _OF_NODE),
    **{name: frozenset({name}) for name in ("go", "cargo", "rspec", "dotnet", "ctest")},
    **dict.fromkeys(("mvn", "phpunit"), frozenset({"surefire"})),
}
"""Runners that each program can start, where known."""


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
CountReader = Callable[[str], tuple[int, RunCounts | None]]
NO_COUNTS: tuple[int, RunCounts | None] = (-1, None)


def _last_runner_match(pattern: str, output: str) -> re.Match[str] | None:
    matches = list(re.finditer(pattern, output, re.MULTILINE | re.IGNORECASE))
    return matches[-1] if matches else None


def _first_runner_number(pattern: str, text: str) -> int:
    match = re.search(pattern, text, re.IGNORECASE)
    return int(match[1]) if match else 0


def _pytest_counts(output: str) -> tuple[int, RunCounts | None]:
    line = _last_runner_match(
        r"^=*\s*(?:no tests ran|(?:\d+ (?:passed|failed|errors?|skipped|deselected|xfailed|xpassed"
        r"|warnings?|reruns?)(?:, )?)+) in \d[\d.:]*s?.*$",
        output,
    )
    if line is None:
        return NO_COUNTS
    ran = [
        _first_runner_number(rf"(\d+) {word}\b", line[0])
        for word in ("passed", "xfailed", "xpassed")
    ]
    failed = _first_runner_number(r"(\d+) failed", line[0]) + _first_runner_number(
        r"(\d+) errors?", line[0]
    )
    skipped = _first_runner_number(r"(\d+) skipped", line[0])
    return line.start(), RunCounts(sum(ran) + failed, failed, skipped)


def _unittest_counts(output: str) -> tuple[int, RunCounts | None]:
    ran = _last_runner_match(
        r"^Ran (\d+) tests? in [\d.]+s\s*^\s*(OK|FAILED|NO TESTS RAN)\b(.*)$", output
    )
    if ran is None:
        return NO_COUNTS
    skipped = _first_runner_number(r"skipped=(\d+)", ran[3])
    failed = sum(
        _first_runner_number(rf"\b{word}=(\d+)", ran[3])
        for word in ("failures", "errors", "unexpected successes")
    )
    names = re.findall(r"^(?:FAIL|ERROR): (\w+)", output, re.MULTILINE)
    return ran.start(), RunCounts(int(ran[1]) - skipped, failed, skipped, tuple(names))


def _go_counts(output: str) -> tuple[int, RunCounts | None]:
    matches = list(re.finditer(r"^\s*--- (PASS|FAIL|SKIP): (\S+)", output, re.MULTILINE))
    if not matches:
        return NO_COUNTS
    failures = tuple(each[2] for each in matches if each[1] == "FAIL")
    skipped = sum(each[1] == "SKIP" for each in matches)
    return matches[-1].start(), RunCounts(len(matches) - skipped, len(failures), skipped, failures)


def _cargo_counts(output: str) -> tuple[int, RunCounts | None]:
    matches = list(
        re.finditer(
            r"^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored", output, re.MULTILINE
        )
    )
    if not matches:
        return NO_COUNTS
    passed, failed, skipped = (sum(int(each[n]) for each in matches) for n in (1, 2, 3))
    return matches[-1].start(), RunCounts(passed + failed, failed, skipped)


def _node_test_counts(output: str) -> tuple[int, RunCounts | None]:
    head = _last_runner_match(r"^(?:#|\u2139) tests (\d+)\s*$", output)
    if head is None:
        return NO_COUNTS
    rest = output[head.start() :]
    failed = _node_runner_number(rest, "fail")
    skipped = _node_runner_number(rest, "skipped") + _node_runner_number(rest, "todo")
    return head.start(), RunCounts(int(head[1]) - skipped, failed, skipped)


def _node_runner_number(text: str, word: str) -> int:
    match = re.search(rf"^(?:#|\u2139) {word} (\d+)\s*$", text, re.MULTILINE)
    return int(match[1]) if match else 0


def _jest_counts(output: str) -> tuple[int, RunCounts | None]:
    """Read the summary of Jest or Vitest."""
    line = _last_runner_match(r"^\s*Tests:?\s+(?=.*\d+ (?:passed|failed|skipped|todo)).*$", output)
    if line is None:
        return NO_COUNTS
    failed, passed = (
        _first_runner_number(rf"(\d+) {word}", line[0]) for word in ("failed", "passed")
    )
    skipped = _first_runner_number(r"(\d+) skipped", line[0]) + _first_runner_number(
        r"(\d+) todo", line[0]
    )
    return line.start(), RunCounts(passed + failed, failed, skipped)


def _mocha_counts(output: str) -> tuple[int, RunCounts | None]:
    line = _last_runner_match(r"^\s*(\d+) passing\b.*$", output)
    if line is None:
        return NO_COUNTS
    rest = output[line.start() :]
    failed = int(match[1]) if (match := re.search(r"^\s*(\d+) failing", rest, re.MULTILINE)) else 0
    skipped = int(match[1]) if (match := re.search(r"^\s*(\d+) pending", rest, re.MULTILINE)) else 0
    return line.start(), RunCounts(int(line[1]) + failed, failed, skipped)


def _rspec_counts(output: str) -> tuple[int, RunCounts | None]:
    line = _last_runner_match(r"^(\d+) examples?, (\d+) failures?(?:, (\d+) pending)?", output)
    if line is None:
        return NO_COUNTS
    skipped = int(line[3] or 0)
    return line.start(), RunCounts(int(line[1]) - skipped, int(line[2]), skipped)


def _surefire_counts(output: str) -> tuple[int, RunCounts | None]:
    """Read the summary of Maven or PHPUnit."""
    line = _last_runner_match(r"^.*\bTests(?: run)?: (\d+), .*$|^OK \((\d+) tests?, .*$", output)
    if line is None:
        return NO_COUNTS
    failed = _first_runner_number(r"Failures: (\d+)", line[0]) + _first_runner_number(
        r"Errors: (\d+)", line[0]
    )
    skipped = _first_runner_number(r"Skipped: (\d+)", line[0])
    return line.start(), RunCounts(int(line[1] or line[2]) - skipped, failed, skipped)


def _dotnet_counts(output: str) -> tuple[int, RunCounts | None]:
    line = _last_runner_match(
        r"Failed:\s+(\d+), Passed:\s+(\d+), Skipped:\s+(\d+), Total:\s+\d+", output
    )
    if line is None:
        return NO_COUNTS
    failed, passed, skipped = (int(line[n]) for n in (1, 2, 3))
    return line.start(), RunCounts(passed + failed, failed, skipped)


def _ctest_counts(output: str) -> tuple[int, RunCounts | None]:
    line = _last_runner_match(r"^\d+% tests passed, (\d+) tests? failed out of (\d+)", output)
    if line is None:
        return NO_COUNTS
    return line.start(), RunCounts(int(line[2]), int(line[1]))


SUMMARY_READERS: dict[str, CountReader] = {
    "pytest": _pytest_counts,
    "unittest": _unittest_counts,
    "go": _go_counts,
    "cargo": _cargo_counts,
    "node": _node_test_counts,
    "jest": _jest_counts,
    "mocha": _mocha_counts,
    "rspec": _rspec_counts,
    "surefire": _surefire_counts,
    "dotnet": _dotnet_counts,
    "ctest": _ctest_counts,
}
