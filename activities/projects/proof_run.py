"""The system's own run of a feature's checks, on the very tree that is handed over.

Each command is run in the sandbox in a fresh copy of that tree and nothing else. Where the runner
is Python's it is run once more with a test that fails put into each file of tests: a run that does
not say so was no test. What was accepted before is run again as well.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import shlex
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import Field

from activities.checkpoints import Files, Root
from activities.checkpoints.sharded_tree import FOLDER, Raw
from activities.commands import sandbox
from activities.commands.private import private_folder
from activities.job.kept_results import KeptResults
from activities.job.snapshot import Snapshot
from activities.projects import runners
from activities.projects.repository import Repository, repository_path
from activities.projects.runners import Counts
from activities.projects.stand_ins import (
    FUNCTION,
    changed_definitions,
    renames_tests,
    stand_ins,
    with_failing_tests,
)
from activities.redaction.secrets import redact
from activities.text.plain import plain
from config.schema.shell import ShellConfig
from protocol.handoffs import Handoff
from protocol.proof import AcceptedRun, Check, CheckCommand, Proof
from protocol.state import Data
from protocol.text import end_of

END = 800
"""Characters of the output's end that are kept, and shown."""
NOT_SEEN = (
    "a test of the system's own, which fails, was put beside the others and the run does not show "
    "it as failed, so that it shows nothing of them either"
)
UNCOUNTED = (
    "it cannot be seen how many tests were run: start the runner itself, such as python3 -m "
    "pytest, or name in `report` the JUnit XML file that it writes"
)


class Proved(Data):
    """What came of running the checks of a handoff."""

    proofs: list[Proof] = Field(default_factory=list)
    problems: list[str] = Field(default_factory=list)
    """What is wrong, a paragraph each; empty when everything is proved."""


@dataclass(frozen=True)
class Proving:
    """Runs commands on products, for one job or project."""

    root: Root
    job: str
    shell: ShellConfig
    folder: str
    """Where agents see the product."""

    def prove(self, product: Files, handoff: Handoff, before: Files | None) -> Proved:
        """Run every check that has a command, and what was accepted before.

        Args:
            before: The product as it was last accepted.

        Raises OSError: the machine failed, not a command.
        """
        made = Proved(problems=stand_ins(product, before))
        if made.problems:
            return made
        held = {each.command: each for each in handoff.accepted}
        for check, command in handoff.tests.items():
            run = self.check(product, check, command, before)
            if not run.why:
                run.why = lost(run, held.get(command.command), handoff)
                run.passed = not run.why
            made.proofs.append(run)
            if not run.passed:
                made.problems.append(self.describe_failure(run))
        own = {command.command for command in handoff.tests.values()}
        for accepted in handoff.accepted:
            if accepted.command not in own and not made.problems:
                made.problems += self._still_holds(product, accepted)
        best = max((run.coverage or 0 for run in made.proofs), default=0)
        if handoff.coverage and made.proofs and not made.problems and best < handoff.coverage:
            made.problems.append(
                f"A coverage of at least {handoff.coverage:g} % is asked for; the runs print "
                f"{f'{best:g} %' if best else 'none, so have one of the commands print it'}."
            )
        return made

    def check(
        self, product: Files, check: Check, command: CheckCommand, before: Files | None
    ) -> Proof:
        """Run one check, and whether it proves something by itself."""
        run = Proof(check=check, ran=command.command, passed=False)
        run.why = runners.fault(command.command)
        if not run.why and (changed := changed_definitions(command.command, before, product)):
            counted_by_python = runners.is_python(command.command)
            if not counted_by_python and not with_failing_tests(product, "t")[1]:
                run.why = (
                    f"{', '.join(changed)} decides what it runs, and is not as it was accepted: "
                    "put it back"
                )
        if run.why:
            return run
        ended, counts = self.run(product, command)
        _note(run, ended, counts)
        if not run.why and counts and counts.tests < command.min_tests:
            run.why = f"it ran {_tests(counts.tests)}, and {command.min_tests} are asked for"
        if not run.why and counts:
            run.why = self._not_failing(product, command, counts)
        run.passed = not run.why
        return run

    def run(self, product: Files, command: CheckCommand) -> tuple[sandbox.Ended, Counts | None]:
        """Run a command in a fresh copy, and how many tests it ran."""
        layout = Files.empty(product.store).with_raw(
            (self.folder,), Raw(FOLDER, bytes.fromhex(product.id))
        )
        with private_folder(layout, self.root, self.job) as private:
            reports = private.path / f"report-{secrets.token_hex(8)}"
            reports.mkdir()
            own = private.path / self.folder / command.report if command.report else None
            if own and own.parent.resolve().is_relative_to(private.path.resolve()):
                # One that lies in the repository is of an earlier run.
                own.unlink(missing_ok=True)
            seen_at = sandbox.INSIDE if self.shell.sandbox == "bubblewrap" else str(private.path)
            line = _line(command.command, self.folder, f"{seen_at}/{reports.name}/junit.xml")
            try:
                ended = sandbox.run(line, private.path, self.shell, command.seconds)
            except sandbox.NoSandbox as problem:
                return sandbox.Ended(None, "", 0, f"it could not be run. {problem}"), None
            counts = None
            if data := _file(reports / "junit.xml", private.path):
                counts = runners.read_junit(data)
                counts = replace(counts, runner="pytest") if counts else None
            elif own and (data := _file(own, private.path)):
                counts = runners.read_junit(data)
        return ended, counts or runners.read_closing(ended.output, command.command)

    def _not_failing(self, product: Files, command: CheckCommand, counts: Counts) -> str:
        """Why the run shows nothing, since a test that must fail does not."""
        if counts.runner not in ("pytest", "unittest"):
            return ""
        name = f"test_{secrets.token_hex(4)}"
        failing, count = with_failing_tests(product, name)
        if not count:
            return "it says that tests were run, and no file of the repository has any"
        ended, seen = self.run(failing, command)
        if ended.trouble:
            return f"run once more, {ended.trouble}"
        if ended.code == 0 or seen is None or not seen.failed:
            return NOT_SEEN
        wanted = {name}
        if seen.runner == "pytest" and seen.failures and not renames_tests(product):
            wanted.add(name + FUNCTION)
        named = wanted <= set(seen.failures) if seen.failures else name in ended.output
        return "" if named else NOT_SEEN

    def _still_holds(self, product: Files, accepted: AcceptedRun) -> Iterator[str]:
        """Why what was accepted before is so no longer."""
        command = CheckCommand(
            command=accepted.command, seconds=accepted.seconds, report=accepted.report
        )
        run = Proof(check="unit", ran=accepted.command, passed=False)
        ended, counts = self.run(product, command)
        _note(run, ended, counts)
        run.why = run.why or _fewer(run, accepted)
        if run.why:
            yield (
                f"The feature {accepted.feature} was accepted and holds no longer. "
                f"{self.describe_failure(run)}"
            )

    def describe_failure(self, run: Proof) -> str:
        """What is wrong with a run, for whoever has to mend it."""
        text = (
            f"The system ran `{run.ran}` at the top of {self.folder}/ for the check {run.check}: "
            f"{run.why}."
        )
        if not run.end:
            return text
        return f"{text} Its output {'ends' if run.cut else 'is'}:\n{run.end}\n"


def lost(run: Proof, accepted: AcceptedRun | None, handoff: Handoff) -> str:
    """What a run shows less than the same command did before."""
    if accepted is None:
        return ""
    if why := _fewer(run, accepted):
        return why
    unit = handoff.id.rsplit("-", 2)[0]
    if accepted.feature != unit and run.tests == accepted.tests:
        return (
            f"it ran {_tests(accepted.tests)} before this feature was begun as well, so that none "
            "is of this feature: write tests of it where the command finds them"
        )
    return ""


def _fewer(run: Proof, accepted: AcceptedRun) -> str:
    tests = run.tests or 0
    if tests < accepted.tests:
        return (
            f"it ran {_tests(tests)}, and {accepted.tests} before: put back what was deleted or is "
            "skipped, or another test in its place"
        )
    if run.skipped > accepted.skipped:
        return f"{run.skipped} tests are skipped, and {accepted.skipped} before: have them run"
    return ""


def _note(run: Proof, ended: sandbox.Ended, counts: Counts | None) -> None:
    """Take in how a command ended."""
    text = redact(plain(ended.output)).strip()
    run.end = end_of(text, END)
    run.cut = run.end != text
    run.exit_code = ended.code
    run.coverage = runners.read_coverage(ended.output)
    if counts:
        run.tests, run.failed, run.skipped = counts.tests, counts.failed, counts.skipped
    if ended.trouble:
        run.why = ended.trouble
    elif runners.lacks_runner(ended.code, ended.output, run.ran):
        run.why = f"exit code {ended.code}: the test runner is not there"
    elif ended.code:
        run.why = f"exit code {ended.code}"
    elif counts is None:
        run.why = UNCOUNTED
    elif counts.failed:
        run.why = f"it ended with 0 although {_tests(counts.failed)} failed"
    elif not counts.tests:
        run.why = "it found no tests to run"


def _tests(count: int) -> str:
    return f"{count} test{'' if count == 1 else 's'}"


def _line(command: str, folder: str, report: str) -> str:
    """What the sandbox's shell is given. With a pipe any part that fails counts."""
    told = {"PYTEST_ADDOPTS": f"--junitxml={report}", "GOFLAGS": "-v"}
    told["PYTHONDONTWRITEBYTECODE"] = "1"
    setting = " ".join(f"{name}={shlex.quote(value)}" for name, value in told.items())
    text = f"cd {shlex.quote(folder)} && export {setting} && {command}"
    shell = "bash --noprofile --norc -o pipefail" if "|" in command else "sh"
    return f"exec {shell} -c {shlex.quote(text)}"


def _file(path: Path, within: Path) -> bytes | None:
    """What a command left in a file, if it is one and lies within."""
    try:
        if not path.resolve().is_relative_to(within.resolve()):
            return None
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(fd, "rb") as file:
            return file.read(runners.MOST_XML + 1)
    except OSError:
        return None


# For jobs


def proved(root: Root, job: str, snapshot: Snapshot, product: str) -> Proved:
    """What the checks of a job's handoff come to on a tree of the project's repository.

    One that passed is kept for this handoff and this tree, so that the project need not run it
    again; a run that was interrupted, or failed, is made anew.
    """
    link = snapshot.link
    if link is None or not link.handoff.tests:
        return Proved()
    handoff = link.handoff
    repository = Repository(repository_path(root, link.id))
    kept, key = KeptResults(repository.path), _key(snapshot, handoff, product)
    if (data := kept.find(key)) is not None:
        with suppress(ValueError):
            return Proved.model_validate_json(data)
    store = snapshot.files.store
    base = handoff.inputs.base or handoff.inputs.commit
    before = repository.files_of(store, repository.tree_id(base))
    proving = Proving(root, job, snapshot.config.shell, link.folder)
    made = proving.prove(repository.files_of(store, product), handoff, before)
    for run in made.proofs:
        run.asked_by = handoff.id
        run.phase, run.step = snapshot.state.phase.number, snapshot.state.step
    if not made.problems:
        kept.keep(key, made.model_dump_json().encode())
    return made


def _key(snapshot: Snapshot, handoff: Handoff, product: str) -> str:
    asked = handoff.model_dump_json(include={"id", "tests", "accepted", "coverage"})
    shell = snapshot.config.shell.model_dump_json()
    whole = "\n".join((asked, product, shell))
    return f"proof-{hashlib.sha256(whole.encode()).hexdigest()}"
