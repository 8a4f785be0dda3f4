"""The system's own run of a feature's checks on the tree that is handed over.

Each command is followed to the test runners that it starts, and the system starts these itself in
the sandbox, in a fresh copy of that tree. Then it tries whether the tests can fail: with failing
tests beside them and other expected values, and with functions that return other values. Commands
accepted earlier are run again as well.
"""

import hashlib
import json
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, partial

from pydantic import Field

from activities.checkpoints import Files, Root
from activities.checkpoints.sharded_tree import FOLDER, TreeEntry
from activities.commands import sandbox
from activities.commands.private_folder import private_folder
from activities.commands.sealed_files import sealed_folders, shows_output
from activities.commands.setup_layer import layer_folders
from activities.job.result_cache import ResultCache
from activities.projects import runner_commands, runner_reports, stand_ins
from activities.projects.change_review import ChangeReview
from activities.projects.fitted_tests import OlderTests
from activities.projects.lost_tests import MOST_NAMES, Baseline, find_lost_tests
from activities.projects.product_copy import CommandRun, ProductCopy
from activities.projects.runner_commands import CommandRefused
from activities.projects.runner_reports import RunCounts
from activities.projects.suite_probes import (
    find_unfailing_tests,
    find_unnoticed_returns,
)
from activities.projects.tests_by_name import (
    TestKey,
    endings_of,
    is_test_file,
    python_tests,
    test_key,
)
from activities.redaction.secrets import redact
from activities.text.safe_text import replace_surrogates
from config.schema.shell import ShellConfig
from config.schema.work_checks import Sealed
from protocol.data_model import Data
from protocol.handoffs import Handoff
from protocol.proof import AcceptedRun, Check, CheckCommand, Proof
from protocol.short_text import count_noun, first_few, shorten_to_end

END = 800
"""Characters kept and shown of the end of the output."""
NO_REPORT = (
    "the runner ended without its report: something in the product or its tests ended the process"
)
FITTED = "pass only as this work changed them"


class ProofResult(Data):
    """Result of running the checks of a handoff."""

    proofs: list[Proof] = Field(default_factory=list)
    problems: list[str] = Field(default_factory=list)
    """One paragraph per problem; empty when everything is proved."""
    failed: dict[str, list[str]] = Field(default_factory=dict)
    """Tests that failed in the first runs, with all their cases, by command."""


@dataclass(frozen=True)
class ProofRunner:
    """Runs commands on products, for one job or project."""

    root: Root
    job: str
    shell: ShellConfig
    folder: str
    """Path of the product in agents' workspaces."""
    cache: ResultCache | None = None
    """Keeps which tests of a tree passed."""
    earlier: Sequence[Files] = ()
    """The work that the job goes on from, whose tests stay."""
    refused: Sequence[Baseline] = ()
    """Earlier runs for the same feature, with the tests that failed in them."""
    sealed: tuple[Sealed, ...] = ()
    """Files that the runs may read and the agent may not."""
    generated: Sequence[str] | None = ()
    """As of `ProductCopy`."""

    def run_checks(
        self,
        product: Files,
        handoff: Handoff,
        before: Files | None,
        unresolved: Sequence[str] = (),
    ) -> ProofResult:
        """Run every check that has a command, and the commands accepted earlier.

        Args:
            before: The product as last accepted; for a tester, as it was handed over.
            unresolved: Statements of the job; a test that one names may be gone.

        Raises:
            OSError: The machine failed, not a command.
        """
        result = ProofResult(problems=stand_ins.find_stand_ins(product, before))
        if result.problems:
            return result
        accepted_runs = {each.command: each for each in handoff.accepted}
        green: list[tuple[CheckCommand, CommandRun]] = []
        shown: list[tuple[JudgedRun, Proof]] = []
        judging = partial(
            JudgedRun, self, product, before, is_tester=bool(handoff.report), may_weaken=False
        )
        for check, command in handoff.tests.items():
            judged = judging(command, handoff.unit)
            run = judged.judge(check, accepted_runs.get(command.command), unresolved)
            result.proofs.append(run)
            shown.append((judged, run))
            if judged.ran.counts:
                keys = set(map(test_key, judged.ran.counts.failed_tests))
                cases = [name for name in judged.ran.counts.outcomes if test_key(name) in keys]
                result.failed[command.command] = cases
            if run.passed:
                green.append((command, judged.ran))
            else:
                result.problems.append(self.describe_failure(run))
        own_commands = {command.command for command in handoff.tests.values()}
        for accepted in handoff.accepted:
            if accepted.command not in own_commands and not result.problems:
                judged = judging(accepted.check)
                result.problems += judged.still_holds(accepted, unresolved)
                shown += [(judged, run) for run in result.proofs[-1:]]
        if not result.problems and (
            why := find_unnoticed_returns(self.run_command, product, before, green)
        ):
            result.problems.append(why)
            for run in result.proofs:
                run.passed, run.why = False, run.why or "it notices no change of what is returned"
        best = max((run.coverage or 0 for run in result.proofs), default=0)
        if handoff.coverage and result.proofs and not result.problems and best < handoff.coverage:
            result.problems.append(
                f"A coverage of at least {handoff.coverage:g} % is asked for; the runs print "
                f"{f'{best:g} %' if best else 'none, so have one of the commands print it'}."
            )
        for judged, run in shown if not result.problems else ():
            judged.show_fitted_tests(run)
        return result

    def run_command(self, product: Files, command: CheckCommand, mutation: str = "") -> CommandRun:
        """Follow a command to its runners and run them in a fresh copy."""
        layout = product
        if self.folder:
            layout = Files.empty(product.store).with_tree_entry(
                (self.folder,), TreeEntry(FOLDER, bytes.fromhex(product.id))
            )
        begin = time.monotonic()
        with private_folder(layout, self.root, self.job) as private:
            try:
                layer = layer_folders(layout, self.root, self.job, self.shell)
                sealed = self.sealed if command.by_person else ()
                shown = {**layer, **sealed_folders(sealed)}
                copy = ProductCopy(
                    *(self.shell, self.folder, product, private.path, shown, command, mutation),
                    self.generated,
                )
                ran = copy.run_by_exit_code() if command.exit_code_only else copy.run_runners()
            except sandbox.SandboxUnavailable as problem:
                return CommandRun(trouble=f"it could not be run. {problem}")
            except CommandRefused as refused:
                return CommandRun(refused=str(refused), missing=refused.missing)
        ran.seconds = time.monotonic() - begin
        if not shows_output(sealed) and not (ran.trouble or ran.lacks_runner):
            failed = ran.counts.named("failed") if ran.counts else []
            ran.output = f"failed: {first_few(failed, 50)}" if failed else ""
        return ran

    def passing_tests(
        self, product: Files, command: CheckCommand, ran: CommandRun | None = None
    ) -> list[str]:
        """Return the names of the tests that pass in a product as it was accepted.

        Args:
            ran: A run of the command on it, if there was one.
        """
        if not any(is_test_file(entry.path) for entry in product.walk()):
            return []
        content = "\n".join((product.id, command.model_dump_json(), self.shell.model_dump_json()))
        key = f"passing-{hashlib.sha256(content.encode()).hexdigest()}"
        if self.cache and (data := self.cache.find(key)) is not None:
            with suppress(ValueError):
                return list(map(str, json.loads(data)))
        ran = ran or self.run_command(product, command)
        names = ran.counts.named("passed") if ran.counts else []
        if self.cache and not ran.trouble:
            self.cache.put(key, json.dumps(names).encode())
        return names

    def describe_failure(self, run: Proof) -> str:
        """Describe a failed run for whoever has to fix it."""
        text = (
            f"The system ran `{run.ran}` at the top of {self.folder}/ for the check {run.check}: "
            f"{run.why}."
        )
        if run.exit_code is None and not run.end:
            text = f"`{run.ran}` cannot prove the check {run.check}: {run.why}."
        if not run.end:
            return text
        return f"{text} Its output {'ends' if run.cut else 'is'}:\n{run.end}\n"


@dataclass
class JudgedRun:
    """A run of one check, and what it proves."""

    runner: ProofRunner
    product: Files
    before: Files | None
    command: CheckCommand
    unit: str = ""
    """The feature that the tests are about."""
    ran: CommandRun = field(default_factory=CommandRun)
    known_failures: frozenset[str] = frozenset()
    """Tests that failed before the work: they may go on failing."""
    is_tester: bool = False
    """Whether the tests of the product are not its own to answer for."""
    may_weaken: bool = True
    """Whether tests may compare less: a person sees it then."""
    probed: list[CommandRun] = field(default_factory=list)
    """Runs in which some tests had to fail."""

    def judge(self, check: Check, accepted: AcceptedRun | None, unresolved: Sequence[str]) -> Proof:
        """Run the command and the probes of its tests."""
        command = self.command
        run = Proof(check=check, ran=command.command, passed=False)
        if not command.exit_code_only:
            run.why = runner_commands.runner_command_fault(
                command.command, by_person=command.by_person
            )
        if run.why:
            return run
        self.ran = self.runner.run_command(self.product, command)
        _record_proof_outcome(run, self.ran)
        counts = self.ran.counts
        if counts and self.runner.cache:
            # The next job on this product is asked for the tests that pass in it.
            self.runner.passing_tests(self.product, command, self.ran)
        if self.known_failures and counts and counts.ended and not counts.lost and counts.tests:
            new = set(counts.named("failed")) - self.known_failures
            run.why = "" if self.ran.exit_code == 1 and not new else run.why
        if not run.why and counts is not None:
            run.why = self._what_counts_lack(run, counts, accepted, unresolved)
        run.passed = not run.why
        return run

    def still_holds(self, accepted: AcceptedRun, unresolved: Sequence[str]) -> Iterator[str]:
        """Run a command again that was accepted and yield why it no longer passes."""
        run = Proof(check="unit", ran=accepted.command, passed=False)
        self.ran = self.runner.run_command(self.product, self.command)
        _record_proof_outcome(run, self.ran)
        excused = 0
        if not run.why and self.ran.counts:
            run.why, excused = self._lost_tests(run, self.ran.counts, unresolved)
        run.why = run.why or _fewer_tests_in_proof_run(run, accepted, excused)
        if run.why:
            yield (
                f"The feature {accepted.feature} was accepted and holds no longer. "
                f"{self.runner.describe_failure(run)}"
            )

    def _what_counts_lack(
        self,
        run: Proof,
        counts: RunCounts,
        accepted: AcceptedRun | None,
        unresolved: Sequence[str],
    ) -> str:
        """Return why the tests that ran prove nothing, or less than before; else empty."""
        if counts.tests < self.command.min_tests:
            count = count_noun(counts.tests, "test")
            return f"it ran {count}, and {self.command.min_tests} are asked for"
        changed = stand_ins.changed_deciders(self.product, self.before, self.ran.runners)
        if changed:
            run.shown.append(f"changed by the feature: {first_few(changed, MOST_NAMES)}")
        if wide := ChangeReview(self.product, self.before, self._changed_files()).wide_tolerances():
            run.shown.append(f"accepts what is far off: {first_few(wide, MOST_NAMES)}")
        if not self.command.by_person:
            if "pytest" in self.ran.runners and (
                fault := stand_ins.settings_fault(self.product, self.before)
            ):
                return fault
            if out := counts.named("deselected"):
                return f"tests are left out by the product itself: {first_few(out, MOST_NAMES)}"
            if not_run := self._test_files_not_run(counts):
                return f"it runs none of the tests in {first_few(not_run, MOST_NAMES)}"
        quiet = counts.named("skipped", "expected")
        if len(quiet) > (accepted.skipped + accepted.expected if accepted else 0):
            run.shown.append(f"skipped or expected to fail: {first_few(quiet, MOST_NAMES)}")
        lost, excused = self._lost_tests(run, counts, unresolved)
        known = set(map(test_key, self.earlier[0].names)) if self.earlier else set[TestKey]()
        fresh = {name for name in counts.outcomes if test_key(name) not in known}
        if known and fresh and fresh <= set(quiet):
            return (
                f"all tests that are new are skipped or expected to fail: "
                f"{first_few(sorted(fresh), MOST_NAMES)}; have them run and pass"
            )
        if not lost and accepted:
            lost = _proof_regression_reason(run, accepted, self.unit, excused)
        if lost or (self.is_tester and self.before and self.before.id == self.product.id):
            return lost
        if not endings_of(self.ran.runners):
            run.shown.append("whether its tests can fail was not tried")
            return ""
        return find_unfailing_tests(self._probe, self.product, self.before, self.command, self.ran)

    def _probe(self, product: Files, command: CheckCommand, mutation: str) -> CommandRun:
        ran = self.runner.run_command(product, command, mutation)
        self.probed.append(ran)
        return ran

    def shaken_tests(self) -> set[str]:
        """Return older tests of Python that failed beside those that had to, as they were."""
        if not self.before or not self.earlier:
            return set()
        counts = [ran.counts for ran in self.probed if ran.counts]
        failed = {name for each in counts for name in each.named("failed")}
        then, now = python_tests(self.before), python_tests(self.product)
        return {
            name
            for name in failed.intersection(self.earlier[0].names)
            if (old := then.get(key := test_key(name))) and key in now and now[key].body == old.body
        }

    def show_fitted_tests(self, run: Proof) -> list[str]:
        """Name the older tests that pass only as the work changed them, and return them."""
        counts = self.ran.counts
        if self.before is None or counts is None or not self.earlier:
            return []
        command = self.ran.limited(self.command)
        older = OlderTests(self.product, self.before, self.earlier[0].names)
        if fitted := older.fitted(
            lambda product: self.runner.run_command(product, command).counts, counts
        ):
            run.shown.append(f"{FITTED}: {first_few(fitted, MOST_NAMES)}")
        return fitted

    def _changed_files(self) -> list[str]:
        known = {(each.path, each.id) for each in self.before.walk()} if self.before else set()
        return [each.path for each in self.product.walk() if (each.path, each.id) not in known]

    @cached_property
    def earlier(self) -> list[Baseline]:
        """The accepted product and the work that a coder goes on from, with what passed in them."""
        products = [] if self.is_tester else [self.before, *self.runner.earlier]
        return [
            Baseline(each, self.runner.passing_tests(each, self.command))
            for each in products
            if each is not None and each.id != self.product.id
        ]

    def _lost_tests(
        self, run: Proof, counts: RunCounts, unresolved: Sequence[str]
    ) -> tuple[str, int]:
        """Return which tests are lost, and how many may be by a statement of the job."""
        command = self.command.command
        refused = [each for each in self.runner.refused if each.refused == command]
        baselines = (*self.earlier, *refused)
        lost = find_lost_tests(
            self.product, counts, baselines, unresolved, weaker=not self.may_weaken
        )
        shown = (
            ("changed after it failed", lost.changed),
            ("gone or weaker, by a statement of the job", lost.excused),
        )
        run.shown += [f"{text}: {first_few(names, MOST_NAMES)}" for text, names in shown if names]
        return lost.why, len(lost.excused)

    def _test_files_not_run(self, counts: RunCounts) -> list[str]:
        """Return test files of the feature that a Python runner should have found and did not."""
        if not self.ran.runners or self.ran.runners - {"pytest", "unittest"}:
            return []
        words = self.command.command.split()
        folders = tuple(f"{word.strip('/')}/" for word in words if "/" in word or "test" in word)
        stems = {test_key(name)[0] for name in counts.outcomes}
        accepted = python_tests(self.before) if self.before else {}
        defined = {key: each.path for key, each in python_tests(self.product).items()}
        return sorted(
            {
                path
                for key, path in defined.items()
                if key not in accepted
                and key[0] not in stems
                and key[0].startswith("test_")
                and path.startswith(folders)
            }
        )


def _proof_regression_reason(run: Proof, accepted: AcceptedRun, unit: str, excused: int) -> str:
    """Return how a run proves less than the accepted run of the same command; else empty."""
    if why := _fewer_tests_in_proof_run(run, accepted, excused):
        return why
    if accepted.feature != unit and run.tests == accepted.tests:
        return (
            f"it ran {count_noun(accepted.tests, 'test')} before this feature was begun as "
            "well, so that none is of this feature: write tests of it where the command finds them"
        )
    return ""


def _fewer_tests_in_proof_run(run: Proof, accepted: AcceptedRun, excused: int) -> str:
    tests = run.tests or 0
    if tests + excused < accepted.tests:
        return (
            f"it ran {count_noun(tests, 'test')}, and {accepted.tests} before: put back what was "
            "deleted or is skipped"
        )
    if run.skipped > accepted.skipped:
        return f"{run.skipped} tests are skipped, and {accepted.skipped} before: have them run"
    return ""


def _record_proof_outcome(run: Proof, ran: CommandRun) -> None:
    """Record how a command ended."""
    text = redact(replace_surrogates(ran.output)).strip()
    run.end = shorten_to_end(text, END)
    run.cut = run.end != text
    run.exit_code = ran.exit_code
    run.coverage = runner_reports.read_runner_coverage(ran.output)
    counts = ran.counts
    run.exit_code_only = counts is None and ran.exit_code == 0
    if counts:
        run.tests, run.failed = counts.tests, len(counts.named("failed"))
        run.skipped, run.expected = len(counts.named("skipped")), len(counts.named("expected"))
    run.why = ran.refused or ran.trouble
    if run.why:
        return
    if ran.lacks_runner:
        run.why = f"exit code {ran.exit_code}: the test runner is not there"
    elif counts and not counts.ended:
        run.why = NO_REPORT
    elif counts and not counts.tests and not ran.exit_code:
        run.why = "it found no tests to run"
        if counted := [f"{n} {word}" for n, word in ((run.skipped, "skipped"),
                    (run.expected, "expected to fail")) if n]:  # fmt: skip
            run.why += f" ({', '.join(counted)})"
    elif ran.exit_code:
        run.why = f"exit code {ran.exit_code}"
    elif counts and run.failed:
        run.why = f"it ended with 0 although {count_noun(run.failed, 'test')} failed"
    elif counts and counts.lost:
        run.why = f"{count_noun(counts.lost, 'test')} that it found were not run"
