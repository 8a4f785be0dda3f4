"""The system's own run of a feature's checks on the tree that is handed over.

Each command is followed to the test runners that it starts, and the system starts these itself in
the sandbox, in a fresh copy of that tree. Then it tries whether the tests can fail: with failing
tests beside them and other expected values, and with functions that return other values. Commands
accepted earlier are run again as well.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property

from pydantic import Field

from activities.checkpoints import Files, Root
from activities.checkpoints.sharded_tree import FOLDER, TreeEntry
from activities.commands import sandbox
from activities.commands.private_folder import private_folder
from activities.commands.sealed_files import sealed_folders, shows_output
from activities.commands.setup_layer import layer_folders
from activities.job.result_cache import ResultCache
from activities.job.snapshot import Snapshot
from activities.job.unresolved import is_named_unresolved
from activities.projects import runner_commands, runner_reports, stand_ins
from activities.projects.product_copy import CommandRun, ProductCopy
from activities.projects.project_remote import open_linked_remote_project
from activities.projects.runner_commands import CommandRefused
from activities.projects.runner_reports import RunCounts
from activities.projects.suite_probes import (
    Challenge,
    TestKey,
    challenge_tests,
    change_returned_values,
    is_test_file,
    python_test_keys,
    source_texts,
    test_key,
)
from activities.redaction.secrets import redact
from activities.text.safe_text import replace_surrogates
from config.schema.agent_sections import Sealed
from config.schema.shell import ShellConfig
from protocol.data_model import Data
from protocol.handoffs import Handoff
from protocol.proof import AcceptedRun, Check, CheckCommand, Proof
from protocol.short_text import count_noun, first_few, shorten_to_end

END = 800
"""Characters kept and shown of the end of the output."""
MOST_FAILED = 2000
MOST_NAMES = 6
"""Most tests that a reason names."""
NOT_SEEN = (
    "a test of the system's own, which fails, was put beside the others and the run does not show "
    "it as failed, so that it shows nothing of them either"
)
UNNOTICED = "compares with a constant that the system changed, and passed as before"
NO_REPORT = (
    "the runner ended without its report: something in the product or its tests ended the process"
)


class ProofResult(Data):
    """Result of running the checks of a handoff."""

    proofs: list[Proof] = Field(default_factory=list)
    problems: list[str] = Field(default_factory=list)
    """One paragraph per problem; empty when everything is proved."""
    failed_names: list[str] = Field(default_factory=list)
    """Tests that failed in the first runs."""


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
    failed: frozenset[str] = frozenset()
    """Tests that failed in earlier runs for the same feature."""
    sealed: tuple[Sealed, ...] = ()
    """Files that the runs may read and the agent may not."""

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
        for check, command in handoff.tests.items():
            judged = JudgedRun(self, product, before, handoff, command)
            run = judged.judge(check, accepted_runs.get(command.command), unresolved)
            result.proofs.append(run)
            if judged.ran.counts:
                result.failed_names += judged.ran.counts.named("failed")
            if run.passed:
                green.append((command, judged.ran))
            else:
                result.problems.append(self.describe_failure(run))
        own_commands = {command.command for command in handoff.tests.values()}
        for accepted in handoff.accepted:
            if accepted.command not in own_commands and not result.problems:
                result.problems += self._still_holds(product, accepted)
        if not result.problems and (why := self._unnoticed_returns(product, before, green)):
            result.problems.append(why)
            for run in result.proofs:
                run.passed, run.why = False, run.why or "it notices no change of what is returned"
        best = max((run.coverage or 0 for run in result.proofs), default=0)
        if handoff.coverage and result.proofs and not result.problems and best < handoff.coverage:
            result.problems.append(
                f"A coverage of at least {handoff.coverage:g} % is asked for; the runs print "
                f"{f'{best:g} %' if best else 'none, so have one of the commands print it'}."
            )
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
                    self.shell, self.folder, product, private.path, shown, command, mutation
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

    def _unnoticed_returns(
        self,
        product: Files,
        before: Files | None,
        green: list[tuple[CheckCommand, CommandRun]],
    ) -> str:
        """Return which functions may return anything without a test that fails; else empty."""
        runs = [(c, ran) for c, ran in green if stand_ins.endings_of(ran.runners)]
        endings = stand_ins.endings_of({each for _, ran in runs for each in ran.runners})
        name = new_probe_name()
        challenge = change_returned_values(product, before, endings, name)
        if not challenge.names or not runs:
            return ""
        # For Python, second, functions that are only called when modules are imported.
        tries = [(challenge.product, name)] if ".py" in endings else []
        tries.append((challenge.product, ""))
        tries += [(product.write(path, text.encode()), "") for path, text in challenge.parts]
        was_built = False
        for place, (changed, mutation) in enumerate(tries):
            if was_built and place == len(tries) - len(challenge.parts):
                break
            for command, ran in runs:
                probed = self.run_command(changed, ran.limited(command), mutation)
                known = set(ran.counts.outcomes if ran.counts else ())
                outcomes = probed.counts.outcomes.keys() if probed.counts else set[str]()
                failed = set(probed.counts.named("failed") if probed.counts else ())
                if not probed.is_green and (mutation or known & failed or probed.trouble):
                    return ""
                was_built = was_built or bool(known & outcomes)
        if not was_built:
            # What was changed could not be built, which says nothing of the tests.
            return ""
        passed = [each for _, ran in runs if ran.counts for each in ran.counts.named("passed")]
        return (
            f"The system changed what the feature's code returns "
            f"({first_few(challenge.names, MOST_NAMES)}), and each test passed as before: "
            f"{first_few(passed, MOST_NAMES)}. None of them looks at it: call it in a test, and "
            "compare what it returns with the right value."
        )

    def _still_holds(self, product: Files, accepted: AcceptedRun) -> Iterator[str]:
        """Run an accepted command again and yield why it no longer passes."""
        command = CheckCommand(
            command=accepted.command,
            seconds=accepted.seconds,
            report=accepted.report,
            by_person=accepted.by_person,
        )
        run = Proof(check="unit", ran=accepted.command, passed=False)
        _record_proof_outcome(run, self.run_command(product, command))
        run.why = run.why or _fewer_tests_in_proof_run(run, accepted, 0)
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
        if run.exit_code is None and not run.end:
            text = f"`{run.ran}` cannot prove the check {run.check}: {run.why}."
        if not run.end:
            return text
        return f"{text} Its output {'ends' if run.cut else 'is'}:\n{run.end}\n"


def new_probe_name() -> str:
    """Return a name for tests and values of the system's own that occurs nowhere else."""
    return f"test_{secrets.token_hex(6)}"


@dataclass
class JudgedRun:
    """A run of one check, and what it proves."""

    runner: ProofRunner
    product: Files
    before: Files | None
    handoff: Handoff
    command: CheckCommand
    ran: CommandRun = field(default_factory=CommandRun)
    known_failures: frozenset[str] = frozenset()
    """Tests that failed before the work: they may go on failing."""

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
        if self.known_failures and counts and counts.ended and not counts.lost and counts.tests:
            new = set(counts.named("failed")) - self.known_failures
            run.why = "" if self.ran.exit_code == 1 and not new else run.why
        if not run.why and counts is not None:
            run.why = self._what_counts_lack(run, counts, accepted, unresolved)
        run.passed = not run.why
        return run

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
        if not self.command.by_person:
            if "pytest" in self.ran.runners and (
                fault := stand_ins.settings_fault(self.product, self.before)
            ):
                return fault
            if out := counts.named("deselected"):
                return f"tests are left out by the product itself: {first_few(out, MOST_NAMES)}"
            if not_run := self._test_files_not_run(counts):
                return f"it runs none of the tests in {first_few(not_run, MOST_NAMES)}"
        if quiet := counts.named("skipped", "expected"):
            run.shown.append(f"skipped or expected to fail: {first_few(quiet, MOST_NAMES)}")
        if hidden := [n for n in quiet if n in self.runner.failed and not _names(n, unresolved)]:
            return (
                f"tests that failed when the system ran them are now skipped or expected to fail: "
                f"{first_few(hidden, MOST_NAMES)}; mend what they show"
            )
        fresh = {n for n in counts.outcomes if test_key(n) not in set(map(test_key, self.known))}
        if self.known and fresh and fresh <= set(quiet):
            return (
                f"all tests that are new are skipped or expected to fail: "
                f"{first_few(sorted(fresh), MOST_NAMES)}; have them run and pass"
            )
        gone, excused = self._gone_tests(counts, unresolved)
        if excused:
            run.shown.append(f"gone, by a statement of the job: {first_few(excused, MOST_NAMES)}")
        if gone:
            return (
                f"tests that were there before this job are gone, skipped or expected to fail: "
                f"{first_few(gone, MOST_NAMES)}; put them back (one that has to go is named in "
                "`unresolved`, with the reason)"
            )
        if accepted and (why := proof_regression_reason(run, accepted, self.handoff, len(excused))):
            return why
        return self._unfailing_tests(run, counts)

    @cached_property
    def known(self) -> list[str]:
        """The tests that passed before the work of a coder."""
        before = self.before
        if before is None or before.id == self.product.id or self.handoff.report:
            return []
        return self.runner.passing_tests(before, self.command)

    def _gone_tests(
        self, counts: RunCounts, unresolved: Sequence[str]
    ) -> tuple[list[str], list[str]]:
        """Return tests of the accepted product that did not run, and those that may be gone."""
        if self.before is None or self.handoff.report:
            return [], []
        ran = counts.named("passed", "failed")
        known = self.known
        # Names of cases may have a time or an address, so that as many are asked for.
        few = Counter(map(test_key, known)) - Counter(map(test_key, ran))
        missing = [name for name in known if name not in set(ran) and test_key(name) in few]
        # Those that did not pass, and those of other commands.
        defined = python_test_keys(self.product)
        seen = {test_key(name) for name in known} | defined.keys()
        missing += [
            "::".join(filter(None, (path, *key[1:])))
            for key, path in python_test_keys(self.before).items()
            if key not in seen
        ]
        gone, excused = list[str](), list[str]()
        for name in missing:
            (excused if _names(name, unresolved) else gone).append(name)
        return gone, excused

    def _test_files_not_run(self, counts: RunCounts) -> list[str]:
        """Return test files of the feature that a Python runner should have found and did not."""
        if not self.ran.runners or self.ran.runners - {"pytest", "unittest"}:
            return []
        words = self.command.command.split()
        folders = [word.strip("/") for word in words if "/" in word or "test" in word]
        stems = {test_key(name)[0] for name in counts.outcomes}
        accepted = {(each.path, each.id) for each in self.before.walk()} if self.before else set()
        return [
            entry.path
            for entry, text in source_texts(self.product, (".py",))
            if (entry.path, entry.id) not in accepted
            and any(entry.path.startswith(f"{folder}/") for folder in folders)
            and entry.path.rpartition("/")[2].startswith("test_")
            and entry.path.rpartition("/")[2].removesuffix(".py") not in stems
            and re.search(r"^\s*(?:async )?def test", text, re.MULTILINE)
        ]

    def _unfailing_tests(self, run: Proof, counts: RunCounts) -> str:
        """Return how tests pass that have to fail; empty if they fail."""
        endings = stand_ins.endings_of(self.ran.runners)
        is_handed_on = self.before is not None and self.before.id == self.product.id
        if is_handed_on and self.handoff.report:
            return ""
        if not endings:
            run.shown.append("whether its tests can fail was not tried")
            return ""
        is_python = ".py" in endings
        name = new_probe_name()
        challenge = challenge_tests(self.product, self.before, endings, name)
        if not challenge.planted:
            return (
                "it says that tests were run, and no file of the repository has any"
                if is_python
                else ""
            )
        why = self._challenged(challenge, self.ran.limited(self.command), counts, name)
        if why and UNNOTICED not in why:
            # With another value a test may wait for ever, end the run or not compile.
            planted = challenge_tests(self.product, self.product, endings, name)
            why = self._challenged(planted, self.command, counts, name)
        return why

    def _challenged(
        self, challenge: Challenge, command: CheckCommand, counts: RunCounts, name: str
    ) -> str:
        """Run a changed product and return which tests do not fail that have to."""
        ran = self.runner.run_command(challenge.product, command)
        if ran.trouble:
            return f"run once more, {ran.trouble}"
        if ran.counts is None or ran.exit_code == 0:
            return NOT_SEEN
        return _unseen_failures(counts, ran.counts, challenge.planted, challenge.changed, name)


def _names(test: str, unresolved: Sequence[str]) -> bool:
    """Return whether a statement of the job names a test, with a reason."""
    return is_named_unresolved(test_key(test)[2], test, unresolved)


def _unseen_failures(
    counts: RunCounts,
    probed: RunCounts,
    planted: dict[TestKey, str],
    changed: dict[TestKey, str],
    name: str,
) -> str:
    """Return which planted or changed tests a run does not show as failed; empty if none."""
    passed = {test_key(each) for each in counts.named("passed")}
    failed = {test_key(each) for each in probed.named("failed")}
    if not any(key[0] for key in planted):
        return _unseen_by_title(counts, probed, changed, name)
    scopes = {key[:2] for key in passed}
    if not any(key in failed for key in planted):
        return NOT_SEEN
    # A class that inherits runs the planted tests of its base under its own name.
    unseen = [key for key in planted if key[:2] in scopes and key not in failed]
    if unseen:
        first = "::".join(filter(None, unseen[0][:2]))
        kind = unseen[0][2].removeprefix(name).strip("_")
        return f"{NOT_SEEN} (in {first}, one that fails by {kind or 'raise'})"
    still = {test_key(each) for each in probed.named("passed")}
    unnoticed = [key for key in changed if key in passed and key in still and key not in failed]
    if unnoticed:
        names = ["::".join(filter(None, key)) for key in unnoticed]
        return (
            f"{first_few(names, MOST_NAMES)}: each {UNNOTICED}; a test has to fail when what it "
            "expects is not what it gets"
        )
    return ""


def _unseen_by_title(
    counts: RunCounts, probed: RunCounts, changed: dict[TestKey, str], name: str
) -> str:
    failed = probed.named("failed")
    if not any(name in each for each in failed):
        known = counts.outcomes.keys() & probed.outcomes.keys()
        # What the system changed may not compile, which says nothing of the tests.
        return NOT_SEEN if known else ""
    still = set(counts.named("passed")) & set(probed.named("passed"))
    titles = []
    for _, _, title in changed:
        of_test = re.compile(rf"(?:^|[ :/>]){re.escape(title)}$")
        if any(map(of_test.search, still)) and not any(map(of_test.search, failed)):
            titles.append(title)
    return f"{first_few(titles, MOST_NAMES)}: each {UNNOTICED}" if titles else ""


def proof_regression_reason(
    run: Proof, accepted: AcceptedRun, handoff: Handoff, excused: int = 0
) -> str:
    """Return how a run proves less than the accepted run of the same command; else empty."""
    if why := _fewer_tests_in_proof_run(run, accepted, excused):
        return why
    unit = handoff.id.rsplit("-", 2)[0]
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
        if told := [f"{n} {word}" for n, word in ((run.skipped, "skipped"),
                    (run.expected, "expected to fail")) if n]:  # fmt: skip
            run.why += f" ({', '.join(told)})"
    elif ran.exit_code:
        run.why = f"exit code {ran.exit_code}"
    elif counts and run.failed:
        run.why = f"it ended with 0 although {count_noun(run.failed, 'test')} failed"
    elif counts and counts.lost:
        run.why = f"{count_noun(counts.lost, 'test')} that it found were not run"


# For jobs


def prove_handoff(
    root: Root, job: str, snapshot: Snapshot, product: str, unresolved: Sequence[str] = ()
) -> ProofResult:
    """Run the checks of a job's handoff on a tree of the project's repository.

    Args:
        unresolved: What the job lists as unresolved; a test that an entry names may be gone.

    A passing result is cached for this handoff and tree, so the project need not run it again.
    Failed and interrupted runs are not cached.
    """
    link = snapshot.link
    if link is None or not link.handoff.tests:
        return ProofResult()
    handoff = link.handoff
    repository = open_linked_remote_project(root, link)
    cache = ResultCache(repository.path)
    key = _proof_key(snapshot, handoff, product, unresolved)
    if (data := cache.find(key)) is not None:
        with suppress(ValueError):
            return ProofResult.model_validate_json(data)
    store = snapshot.files.store
    # What a coder handed over was tried at its own gate; a tester answers for its own tests.
    handed = handoff.inputs.commit
    base = handed if handoff.report else handoff.inputs.base or handed
    before = repository.files_of(store, repository.tree_id(base))
    seen = f"failed-{hashlib.sha256(handoff.id.rpartition('-')[0].encode()).hexdigest()}"
    failed = frozenset(json.loads(cache.find(seen) or b"[]"))
    config = snapshot.config
    proving = ProofRunner(root, job, config.shell, link.folder, cache, failed, tuple(config.sealed))
    files = repository.files_of(store, product)
    result = proving.run_checks(files, handoff, before, unresolved)
    if new := failed.union(result.failed_names) - failed:
        cache.put(seen, json.dumps(sorted(failed | new)[:MOST_FAILED]).encode())
    for run in result.proofs:
        run.asked_by = handoff.id
        run.phase, run.step = snapshot.state.phase.number, snapshot.state.step
    if not result.problems:
        cache.put(key, result.model_dump_json().encode())
    return result


def _proof_key(
    snapshot: Snapshot, handoff: Handoff, product: str, unresolved: Sequence[str]
) -> str:
    handoff_json = handoff.model_dump_json(include={"id", "tests", "accepted", "coverage"})
    shell = snapshot.config.shell.model_dump_json()
    shell += "".join(each.model_dump_json() for each in snapshot.config.sealed)
    content = "\n".join((handoff_json, product, shell, *unresolved))
    return f"proof-{hashlib.sha256(content.encode()).hexdigest()}"
