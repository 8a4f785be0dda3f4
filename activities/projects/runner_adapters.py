"""How the system starts each known test runner, and where that runner writes its report.

A report goes into a folder beside the product, which each run has anew.
"""

import json
import posixpath
import re
import secrets
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from activities.projects import runner_reports
from activities.projects.known_runners import KNOWN_RUNNERS
from activities.projects.runner_commands import RunnerStep
from activities.projects.runner_reports import RunCounts

PYTHON_RUNNERS = ("pytest", "unittest")
PYTHON_SOURCE = Path(__file__).with_name("python_runner.py")
_PYTEST_PYTHON = (
    'p=$(command -v pytest) && i=$(sed -n "1s/^#! *//p;q" "$p"); '
    'case "$i" in *python*) ;; *) i=python3 ;; esac; exec $i '
)
"""Starts the Python of the program `pytest`, or the first on PATH if it is no script of one."""
_CARGO_RUNNER = 'b=$(basename "$1"); exec "$@" --logfile "$(mktemp "{place}/${{b%-*}}.XXXXXX")"\n'
_OF_MAVEN = ("**/surefire-reports/TEST-*.xml", "**/failsafe-reports/TEST-*.xml")
"""Where Maven writes; no option moves it."""


@dataclass(frozen=True)
class ReportFolder:
    """The folder of one run's report."""

    path: Path
    """On the host."""
    seen: str
    """In the sandbox."""
    product: Path
    """The copy of the product, on the host."""
    product_seen: str
    key: bytes
    """Signs the report of a Python runner."""

    def file(self, name: str) -> str:
        return f"{self.seen}/{name}"


def start_line(step: RunnerStep, report: ReportFolder, mutation: str = "") -> str:
    """Return the shell line that starts a step; its report goes into the folder."""
    if step.runner in PYTHON_RUNNERS:
        line = _start_python(step, report, mutation)
    elif step.runner:
        line = _start_other(step, report)
    else:
        line = shlex.join([*step.launcher, *step.words])
    folder = posixpath.join(report.product_seen, step.folder)
    variables = {**step.variables, "PYTHONDONTWRITEBYTECODE": "1"}
    if step.runner == "vitest":
        variables["CI"] = "1"
    setting = " ".join(f"{name}={shlex.quote(value)}" for name, value in variables.items())
    return f"cd {shlex.quote(folder)} && export {setting} && {line}"


def _start_python(step: RunnerStep, report: ReportFolder, mutation: str) -> str:
    launcher, options = list(step.launcher), None
    if "coverage" in launcher:
        place = launcher.index("coverage")
        launcher, options = launcher[:place], launcher[place + 1 :]
    bare = launcher[-1:] in (["pytest"], ["py.test"])
    here = posixpath.join(report.product_seen, step.folder)
    path = [] if bare else [here]
    if step.runner == "unittest" and step.words[:1] and step.words[0].endswith(".py"):
        path.insert(0, posixpath.join(here, posixpath.dirname(step.words[0])))
    variable = step.variables.get("PYTHONPATH", "")
    path += [posixpath.normpath(posixpath.join(here, each)) for each in variable.split(":") if each]
    arguments = list(step.words)
    if step.runner == "pytest":
        # Neither a failing test of the system's own nor a module that needs what is not installed
        # must end the run.
        arguments = ["-p", "no:cacheprovider", *arguments]
        arguments += ["--maxfail=0", "--continue-on-collection-errors"]
    order = {
        "key": report.key.hex(),
        "runner": step.runner,
        "arguments": arguments,
        "path": path,
        "mutation": mutation,
    }
    (report.path / "order.json").write_text(json.dumps(order))
    (report.path / "run.py").write_bytes(PYTHON_SOURCE.read_bytes())
    isolated = ["-I", "-B"]
    if options is not None:
        isolated += ["-m", "coverage", "run", *options]
    script = shlex.join([*isolated, report.file("run.py"), report.seen])
    if bare and len(launcher) == 1:
        return f"{_PYTEST_PYTHON}{script}"
    return f"{shlex.join([*launcher[:-1], 'python3' if bare else launcher[-1]])} {script}"


def _start_other(step: RunnerStep, report: ReportFolder) -> str:
    words, name, known = list(step.words), step.runner, KNOWN_RUNNERS[step.runner]
    program, rest, out = words[0], words[1:], report.file
    if name == "node":
        rest.remove("--test")
        reporter = ["--test-reporter=spec", "--test-reporter-destination=stdout"]
        reporter += ["--test-reporter=tap", f"--test-reporter-destination={out('report')}"]
        words = [program, "--test", *reporter, *rest]
    elif name == "go":
        words = [program, "test", "-json", "-count=1", *rest[1:]]
        return f"{shlex.join(words)} > {shlex.quote(out('report'))}"
    elif known.prints_with is not None:
        command_words = (
            words
            if name == "tape"
            else [program, *known.prints_with.split(), *_without_reporters(rest)]
        )
        return f"{_join_patterns([*step.launcher, *command_words])} > {shlex.quote(out('report'))}"
    elif name == "cargo":
        (report.path / "run.sh").write_text(_CARGO_RUNNER.format(place=report.seen))
        runner = f"target.'cfg(all())'.runner=['sh','{out('run.sh')}']"
        words = [program, rest[0], "--config", runner, *rest[1:]]
    elif name == "maven":
        words = ["mvn", *rest]
    else:
        words = _without_reporters(words)
        words += [each.format(out("report")) for each in known.report_options.split()]
        if name == "vitest" and not {"run", "--run"} & set(words):
            words.insert(1, "run")
    return shlex.join([*step.launcher, *words])


def _join_patterns(words: list[str]) -> str:
    """Return words as a shell line in which patterns of paths stay what they are."""
    return " ".join(w if re.fullmatch(r"[\w./*?-]+", w) else shlex.quote(w) for w in words)


def _without_reporters(words: list[str]) -> list[str]:
    """Leave out how a runner of JavaScript is to print, and whether its first failure ends it."""
    others, place = list[str](), 0
    while place < len(words):
        word = words[place]
        if _PRINTING.match(word) and "=" not in word:
            place += 1
        elif not _PRINTING.match(word) and not re.fullmatch(r"-b|--bail(?:=.*)?", word):
            others.append(word)
        place += 1
    return others


_PRINTING = re.compile(r"(?:-R|-O|--reporters?|--reporter-options?)(?:=.*)?$")
_READERS: dict[str, Callable[[bytes], RunCounts | None]] = {
    "tap": runner_reports.read_tap,
    "go": runner_reports.read_go_events,
    "cargo": runner_reports.read_cargo_log,
    "jest": runner_reports.read_jest_json,
    "case lists": runner_reports.read_case_lists,
    "junit": runner_reports.read_junit,
}


def remove_old_reports(step: RunnerStep, report: ReportFolder) -> None:
    """Delete reports that came with the product, which are from an earlier run."""
    for path in _reports_in_product(step, report):
        path.unlink(missing_ok=True)


def _reports_in_product(step: RunnerStep, report: ReportFolder) -> list[Path]:
    patterns = _OF_MAVEN if step.runner == "maven" else ()
    return [path for each in patterns for path in report.product.glob(each) if path.is_file()]


def read_step_report(step: RunnerStep, report: ReportFolder) -> tuple[RunCounts | None, str]:
    """Return the counts of a step's runner, None without a report, and what it would print."""

    def read(path: Path) -> bytes:
        return runner_reports.read_report_data(path, report.path.parent)

    if step.runner in PYTHON_RUNNERS:
        data = read(report.path / "report.jsonl")
        return (runner_reports.read_signed_report(data, report.key) if data else None), ""
    paths = [report.path / "report", *_reports_in_product(step, report)]
    if step.runner == "cargo":
        paths = [each for each in sorted(report.path.iterdir()) if each.name.count(".") == 1]
        paths = [each for each in paths if each.name != "run.sh"]
    known = KNOWN_RUNNERS[step.runner]
    total: RunCounts | None = None
    text = ""
    for path in paths:
        data = read(path)
        counts = _READERS[known.report](data) if data or step.runner == "cargo" else None
        if counts is None:
            continue
        total = total or RunCounts()
        prefix = f"{path.name.partition('.')[0]}::" if step.runner == "cargo" else ""
        total.add_run(counts, prefix)
        if step.runner == "go":
            text += _go_text(data)
        elif known.prints_with is not None:
            text += data.decode(errors="replace")
    return total, text


def _go_text(data: bytes) -> str:
    lines = []
    for line in data.splitlines():
        try:
            event = json.loads(line)
        except ValueError:
            lines.append(line.decode(errors="replace") + "\n")
            continue
        if isinstance(event, dict):
            lines.append(str(event.get("Output") or ""))
    return "".join(lines)


def new_report_folder(private: Path, folder: str, seen_at: str) -> ReportFolder:
    """Create the folder of a step's report beside the product."""
    path = private / f"report-{secrets.token_hex(8)}"
    path.mkdir()
    return ReportFolder(
        path,
        f"{seen_at}/{path.name}",
        private / folder,
        f"{seen_at}/{folder}",
        secrets.token_bytes(32),
    )
