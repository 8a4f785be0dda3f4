"""The system's own run of a feature's checks on the tree that is handed over.

Each command runs in the sandbox in a fresh copy of that tree. With a Python runner it runs again
with a failing test added to each test file; a run that does not report the failure proves nothing.
Commands accepted earlier are run again as well.
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
from activities.checkpoints.sharded_tree import FOLDER, TreeEntry
from activities.commands import sandbox
from activities.commands.private_folder import private_folder
from activities.commands.setup_layer import layer_folders
from activities.job.result_cache import ResultCache
from activities.job.snapshot import Snapshot
from activities.projects import runner_commands, runner_counts
from activities.projects.project_remote import open_linked_remote_project
from activities.projects.runner_counts import RunCounts
from activities.projects.stand_ins import (
    FUNCTION,
    changed_test_definitions,
    find_stand_ins,
    renames_pytest_functions,
    with_failing_stand_in_tests,
)
from activities.redaction.secrets import redact
from activities.text.safe_text import replace_surrogates
from config.schema.shell import ShellConfig
from protocol.data_model import Data
from protocol.handoffs import Handoff
from protocol.proof import AcceptedRun, Check, CheckCommand, Proof
from protocol.short_text import count_noun, shorten_to_end

END = 800
"""Characters kept and shown of the end of the output."""
NOT_SEEN = (
    "a test of the system's own, which fails, was put beside the others and the run does not show "
    "it as failed, so that it shows nothing of them either"
)
UNCOUNTED = (
    "it cannot be seen how many tests were run: start the runner itself, such as python3 -m "
    "pytest, or name in `report` the JUnit XML file that it writes"
)


class ProofResult(Data):
    """Result of running the checks of a handoff."""

    proofs: list[Proof] = Field(default_factory=list)
    problems: list[str] = Field(default_factory=list)
    """One paragraph per problem; empty when everything is proved."""


@dataclass(frozen=True)
class ProofRunner:
    """Runs commands on products, for one job or project."""

    root: Root
    job: str
    shell: ShellConfig
    folder: str
    """Path of the product in agents' workspaces."""

    def run_checks(self, product: Files, handoff: Handoff, before: Files | None) -> ProofResult:
        """Run every check that has a command, and the commands accepted earlier.

        Args:
            before: The product as last accepted.

        Raises:
            OSError: The machine failed, not a command.
        """
        result = ProofResult(problems=find_stand_ins(product, before))
        if result.problems:
            return result
        accepted_runs = {each.command: each for each in handoff.accepted}
        for check, command in handoff.tests.items():
            run = self.run_check(product, check, command, before)
            if not run.why:
                run.why = proof_regression_reason(run, accepted_runs.get(command.command), handoff)
                run.passed = not run.why
            result.proofs.append(run)
            if not run.passed:
                result.problems.append(self.describe_failure(run))
        own_commands = {command.command for command in handoff.tests.values()}
        for accepted in handoff.accepted:
            if accepted.command not in own_commands and not result.problems:
                result.problems += self._still_holds(product, accepted)
        best = max((run.coverage or 0 for run in result.proofs), default=0)
        if handoff.coverage and result.proofs and not result.problems and best < handoff.coverage:
            result.problems.append(
                f"A coverage of at least {handoff.coverage:g} % is asked for; the runs print "
                f"{f'{best:g} %' if best else 'none, so have one of the commands print it'}."
            )
        return result

    def run_check(
        self, product: Files, check: Check, command: CheckCommand, before: Files | None
    ) -> Proof:
        """Run one check and decide whether the run proves anything."""
        run = Proof(check=check, ran=command.command, passed=False)
        run.why = runner_commands.runner_command_fault(command.command)
        if not run.why and (changed := changed_test_definitions(command.command, before, product)):
            counted_by_python = runner_counts.is_python(command.command)
            if not counted_by_python and not with_failing_stand_in_tests(product, "t")[1]:
                run.why = (
                    f"{', '.join(changed)} decides what it runs, and is not as it was accepted: "
                    "put it back"
                )
        if run.why:
            return run
        ended, counts = self.run_command(product, command)
        _record_proof_outcome(run, ended, counts)
        if not run.why and counts and counts.tests < command.min_tests:
            count = count_noun(counts.tests, "test")
            run.why = f"it ran {count}, and {command.min_tests} are asked for"
        if not run.why and counts:
            run.why = self._failing_test_problem(product, command, counts)
        run.passed = not run.why
        return run

    def run_command(
        self, product: Files, command: CheckCommand
    ) -> tuple[sandbox.CommandResult, RunCounts | None]:
        """Run a command in a fresh copy; also return its test counts, None if unknown."""
        layout = Files.empty(product.store).with_tree_entry(
            (self.folder,), TreeEntry(FOLDER, bytes.fromhex(product.id))
        )
        with private_folder(layout, self.root, self.job) as private:
            reports = private.path / f"report-{secrets.token_hex(8)}"
            reports.mkdir()
            report_path = private.path / self.folder / command.report if command.report else None
            if report_path and report_path.parent.resolve().is_relative_to(private.path.resolve()):
                # A report inside the repository is from an earlier run.
                report_path.unlink(missing_ok=True)
            seen_at = (
                sandbox.SANDBOX_WORKSPACE
                if self.shell.sandbox == "bubblewrap"
                else str(private.path)
            )
            line = _proof_shell_line(
                command.command, self.folder, f"{seen_at}/{reports.name}/junit.xml"
            )
            try:
                layer = layer_folders(layout, self.root, self.job, self.shell)
                ended = sandbox.run_sandboxed_command(
                    line, private.path, self.shell, command.seconds, layer
                )
            except sandbox.SandboxUnavailable as problem:
                return sandbox.CommandResult(None, "", 0, f"it could not be run. {problem}"), None
            counts = None
            if data := _read_proof_report_file(reports / "junit.xml", private.path):
                counts = runner_counts.read_junit(data)
                counts = replace(counts, runner="pytest") if counts else None
            elif report_path and (data := _read_proof_report_file(report_path, private.path)):
                counts = runner_counts.read_junit(data)
        return ended, counts or runner_counts.read_runner_summary(ended.output, command.command)

    def _failing_test_problem(
        self, product: Files, command: CheckCommand, counts: RunCounts
    ) -> str:
        """Return why the run fails to report an added failing test; empty if it reports it."""
        if counts.runner not in ("pytest", "unittest"):
            return ""
        name = f"test_{secrets.token_hex(4)}"
        failing, count = with_failing_stand_in_tests(product, name)
        if not count:
            return "it says that tests were run, and no file of the repository has any"
        ended, failing_counts = self.run_command(failing, command)
        if ended.trouble:
            return f"run once more, {ended.trouble}"
        if ended.exit_code == 0 or failing_counts is None or not failing_counts.failed:
            return NOT_SEEN
        expected = {name}
        if (
            failing_counts.runner == "pytest"
            and failing_counts.failures
            and not renames_pytest_functions(product)
        ):
            expected.add(name + FUNCTION)
        named = (
            expected <= set(failing_counts.failures)
            if failing_counts.failures
            else name in ended.output
        )
        return "" if named else NOT_SEEN

    def _still_holds(self, product: Files, accepted: AcceptedRun) -> Iterator[str]:
        """Run an accepted command again and yield why it no longer passes."""
        command = CheckCommand(
            command=accepted.command, seconds=accepted.seconds, report=accepted.report
        )
        run = Proof(check="unit", ran=accepted.command, passed=False)
        ended, counts = self.run_command(product, command)
        _record_proof_outcome(run, ended, counts)
        run.why = run.why or _fewer_tests_in_proof_run(run, accepted)
        if run.why:
            yield (
                f"The feature {accepted.feature} was accepted and holds no longer. "
                f"{self.describe_failure(run)}"
            )

    def describe_failure(self, run: Proof) -> str:
        """Describe a failed run for whoever has to fix it."""
        text = (
            f"The system ran `{run.ran}` at the top of {self.folder}/ for the check {run.check}: "
            f"{run.why}."
        )
        if not run.end:
            return text
        return f"{text} Its output {'ends' if run.cut else 'is'}:\n{run.end}\n"


def proof_regression_reason(run: Proof, accepted: AcceptedRun | None, handoff: Handoff) -> str:
    """Return how a run proves less than the accepted run of the same command; else empty."""
    if accepted is None:
        return ""
    if why := _fewer_tests_in_proof_run(run, accepted):
        return why
    unit = handoff.id.rsplit("-", 2)[0]
    if accepted.feature != unit and run.tests == accepted.tests:
        return (
            f"it ran {count_noun(accepted.tests, 'test')} before this feature was begun as "
            "well, "
            "so that none "
            "is of this feature: write tests of it where the command finds them"
        )
    return ""


def _fewer_tests_in_proof_run(run: Proof, accepted: AcceptedRun) -> str:
    tests = run.tests or 0
    if tests < accepted.tests:
        return (
            f"it ran {count_noun(tests, 'test')}, and {accepted.tests} before: put back what "
            "was "
            "deleted or is "
            "skipped, or another test in its place"
        )
    if run.skipped > accepted.skipped:
        return f"{run.skipped} tests are skipped, and {accepted.skipped} before: have them run"
    return ""


def _record_proof_outcome(
    run: Proof, ended: sandbox.CommandResult, counts: RunCounts | None
) -> None:
    """Record how a command ended."""
    text = redact(replace_surrogates(ended.output)).strip()
    run.end = shorten_to_end(text, END)
    run.cut = run.end != text
    run.exit_code = ended.exit_code
    run.coverage = runner_counts.read_runner_coverage(ended.output)
    if counts:
        run.tests, run.failed, run.skipped = counts.tests, counts.failed, counts.skipped
    if ended.trouble:
        run.why = ended.trouble
    elif runner_commands.lacks_runner(ended.exit_code, ended.output, run.ran):
        run.why = f"exit code {ended.exit_code}: the test runner is not there"
    elif ended.exit_code:
        run.why = f"exit code {ended.exit_code}"
    elif counts is None:
        run.why = UNCOUNTED
    elif counts.failed:
        run.why = f"it ended with 0 although {count_noun(counts.failed, 'test')} failed"
    elif not counts.tests:
        run.why = "it found no tests to run"


def _proof_shell_line(command: str, folder: str, report: str) -> str:
    """Return the sandbox's shell line; if a pipe is used, any failing part fails it."""
    variables = {"PYTEST_ADDOPTS": f"--junitxml={report}", "GOFLAGS": "-v"}
    variables["PYTHONDONTWRITEBYTECODE"] = "1"
    setting = " ".join(f"{name}={shlex.quote(value)}" for name, value in variables.items())
    text = f"cd {shlex.quote(folder)} && export {setting} && {command}"
    shell = "bash --noprofile --norc -o pipefail" if "|" in command else "sh"
    return f"exec {shell} -c {shlex.quote(text)}"


def _read_proof_report_file(path: Path, within: Path) -> bytes | None:
    """Read a report that a command wrote; None if missing or outside `within`."""
    try:
        if not path.resolve().is_relative_to(within.resolve()):
            return None
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(fd, "rb") as file:
            return file.read(runner_counts.MAX_XML + 1)
    except OSError:
        return None


# For jobs


def prove_handoff(root: Root, job: str, snapshot: Snapshot, product: str) -> ProofResult:
    """Run the checks of a job's handoff on a tree of the project's repository.

    A passing result is cached for this handoff and tree, so the project need not run it again.
    Failed and interrupted runs are not cached.
    """
    link = snapshot.link
    if link is None or not link.handoff.tests:
        return ProofResult()
    handoff = link.handoff
    repository = open_linked_remote_project(root, link)
    cache, key = ResultCache(repository.path), _proof_key(snapshot, handoff, product)
    if (data := cache.find(key)) is not None:
        with suppress(ValueError):
            return ProofResult.model_validate_json(data)
    store = snapshot.files.store
    base = handoff.inputs.base or handoff.inputs.commit
    before = repository.files_of(store, repository.tree_id(base))
    proving = ProofRunner(root, job, snapshot.config.shell, link.folder)
    result = proving.run_checks(repository.files_of(store, product), handoff, before)
    for run in result.proofs:
        run.asked_by = handoff.id
        run.phase, run.step = snapshot.state.phase.number, snapshot.state.step
    if not result.problems:
        cache.put(key, result.model_dump_json().encode())
    return result


def _proof_key(snapshot: Snapshot, handoff: Handoff, product: str) -> str:
    handoff_json = handoff.model_dump_json(include={"id", "tests", "accepted", "coverage"})
    shell = snapshot.config.shell.model_dump_json()
    content = "\n".join((handoff_json, product, shell))
    return f"proof-{hashlib.sha256(content.encode()).hexdigest()}"
