"""Proves the work of a job on a repository by the repository's own tests.

They were run on the untouched tree before the first model call (`start_tests`). At the end they are
run on what would be published, under the rules of `proof_run`; new tests also on the old code,
where they have to fail.
"""

import hashlib
import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

from pydantic import Field

from activities.checkpoints import Files, FilesError, Root
from activities.job.deliverables import is_named_unresolved
from activities.job.result_cache import ResultCache
from activities.job.snapshot import Snapshot
from activities.projects import stand_ins
from activities.projects.change_review import ChangeReview
from activities.projects.lost_tests import MOST_NAMES
from activities.projects.product_reach import ProductReach
from activities.projects.project_repository import ProjectRepository
from activities.projects.proof_run import JudgedRun, ProofRunner
from activities.projects.repository_tests import find_test_command
from activities.projects.runner_reports import RunCounts
from activities.projects.seen_failures import SeenFailures
from activities.projects.start_tests import NO_COMMAND, check_command, proof_runner
from activities.projects.tests_by_name import (
    changed_tests,
    is_test_file,
    test_key,
)
from activities.projects.word_tests import look_at_words_alone
from config.schema.work_checks import RepositoryTests
from protocol.data_model import Data
from protocol.proof import AcceptedRun, Proof
from protocol.repository_link import StartTests
from protocol.short_text import first_few, one_line
from protocol.tools import ToolRoute

MOST_CHANGED = 60
MOST_RUNS = 2
"""Most runs of the tests on the work, if some fail."""
MOST_FLAKY = 20
"""Most tests that may have failed by chance."""
NEW_TEST = "new test"
"""Name under which a job says in `unresolved` why no new test shows its change."""
_NO_CODE = re.compile(
    r"\.(?:md|rst|txt|adoc|html?|css|svg|png|jpe?g|gif|ya?ml|toml|cfg|ini|json|lock|csv|tsv|po|in)$"
    r"|(?:^|/)(?:docs?|licenses?|\.github)/|(?:^|/)[A-Z_.]+$"
)
"""Files whose change no test has to show: documents, settings and data."""
_LEFT_BEHIND = re.compile(r"\.(?:orig|rej|bak|old|swp|tmp|log|pyc|pyo)$|~$|(?:^|/)\.coverage$")
"""Files that tools and editors leave behind."""

_LACKS_NAME = re.compile(r"(?:Attribute|Name|Import|ModuleNotFound|Type)Error\b|not loaded")
_NAMED = re.compile(r"(?:['\"`]|undefined: )([\w.]+)")
"""Errors of a test that uses what is not there, and how they name it."""


class WorkProof(Data):
    """What the system's own runs show of a job's work."""

    line: str = ""
    """`pytest -q: 460 passed, 4 more, 4 failing without the change`; empty if nothing was run."""
    changed: list[str] = Field(default_factory=list)
    problem: str = ""
    """Why the job may not end, for the model."""
    doubts: list[str] = Field(default_factory=list)
    """What a person is to decide on before it is pushed, one sentence each."""


def add_work_proof_time(routes: list[ToolRoute], snapshot: Snapshot) -> list[ToolRoute]:
    """Return the job's routes, with time for the system's own runs at its end."""
    if snapshot.repository and snapshot.repository.tests and snapshot.config.tests:
        route = next(route for route in routes if route.name == "job_complete")
        route.guarded = True
        # The work, two runs more with it and one without, two runs that have to fail, two with the
        # tests as they were, three with the new tests on the old code, one with code that raises.
        route.seconds += (3 * MOST_RUNS + 9) * (snapshot.config.tests.seconds + 30)
    return routes


def known_work_proof(
    snapshot: Snapshot, repository: ProjectRepository, tree: str, call: dict[str, object]
) -> WorkProof:
    """Return what the runs at a job's end showed; nothing is run.

    Args:
        repository: The job's git repository.
        tree: Its tree with what would be published.
        call: Arguments of `job_complete`.
    """
    link = snapshot.repository
    assert link is not None
    proof = WorkProof()
    key = _work_key(snapshot, tree, call)
    if (data := ResultCache(repository.path).find(key)) is not None:
        with suppress(ValueError):
            proof = WorkProof.model_validate_json(data)
    elif link.tests and tree != repository.tree_id(link.commit):
        proof.doubts = ["Nothing was proved: the tests were not run on this work."]
    proof.changed = [each.line for each in _changed_files(repository, link.commit, tree)]
    proof.changed = proof.changed[:MOST_CHANGED]
    return proof


def prove_work(
    root: Root,
    snapshot: Snapshot,
    repository: ProjectRepository,
    tree: str,
    call: dict[str, object],
) -> WorkProof:
    """Run the tests on a job's work; a result without problems is kept. As `known_work_proof`."""
    link, rules = snapshot.repository, snapshot.config.tests
    known = known_work_proof(snapshot, repository, tree, call)
    if link is None or link.tests is None or rules is None or known.line or not known.changed:
        return known
    store = snapshot.files.store
    published = repository.tree_id(link.published or link.commit)
    work = _Work(
        proof_runner(root, snapshot),
        snapshot,
        rules,
        link.tests,
        repository.files_of(store, repository.tree_id(link.commit)),
        repository.files_of(store, tree),
        repository.files_of(store, published),
        _changed_files(repository, link.commit, tree),
        call,
    )
    try:
        proof = work.prove()
    except FilesError as problem:
        return WorkProof(problem=f"The tests cannot be run: {problem}")
    proof.changed = known.changed
    if not proof.problem:
        ResultCache(repository.path).put(
            _work_key(snapshot, tree, call), proof.model_dump_json().encode()
        )
    return proof


def _work_key(snapshot: Snapshot, tree: str, call: dict[str, object]) -> str:
    link, config = snapshot.repository, snapshot.config
    said = [call.get(name) or "" for name in ("summary", "notes", "deliverables", "unresolved")]
    rules = config.tests.model_dump_json() if config.tests else ""
    parts = (tree, link.commit if link else "", rules, config.shell.model_dump_json(), repr(said))
    return f"work-{hashlib.sha256(chr(0).join(parts).encode()).hexdigest()}"


@dataclass(frozen=True)
class ChangedFile:
    """A file in which the work differs from the start."""

    path: str
    is_new: bool
    is_gone: bool
    added: int
    removed: int

    @property
    def line(self) -> str:
        counts = [f"+{self.added}"] if self.added or not self.removed else []
        counts += [f"-{self.removed}"] if self.removed else []
        kind = " (new)" if self.is_new else " (deleted)" if self.is_gone else ""
        return f"{' '.join(counts)} {self.path}{kind}"


def _changed_files(repository: ProjectRepository, commit: str, tree: str) -> list[ChangedFile]:
    return [
        ChangedFile(
            patch.delta.new_file.path,
            patch.delta.status_char() == "A",
            patch.delta.status_char() == "D",
            *patch.line_stats[1:],
        )
        for patch in repository.diff_from(commit, tree)
        if patch is not None
    ]


@dataclass(frozen=True)
class _Work:
    """The work of a job, and what it is compared with."""

    runner: ProofRunner
    snapshot: Snapshot
    rules: RepositoryTests
    start: StartTests
    before: Files
    product: Files
    published: Files
    """What a fork builds on; else as `before`."""
    changes: Sequence[ChangedFile]
    call: dict[str, object]

    @property
    def unresolved(self) -> list[str]:
        listed = self.call.get("unresolved")
        return list(map(str, listed)) if isinstance(listed, list) else []

    def prove(self) -> WorkProof:
        if unnamed := self._unnamed_files():
            return WorkProof(
                problem=f"These new files are in no deliverable: {first_few(unnamed, 20)}. Name "
                "those that belong to the change in `deliverables`, and delete the others."
            )
        if replaced := stand_ins.find_stand_ins(self.product, self.before):
            return WorkProof(problem=" ".join(replaced))
        command = self.start.command or find_test_command(self.product)
        if not command:
            return WorkProof(doubts=[f"Nothing was proved: {NO_COMMAND}."])
        judged, run = self._judge(command)
        if self.start.why and judged.ran.counts is None:
            return WorkProof(doubts=[f"Nothing was proved: {run.why}, as at the start."])
        fitted = judged.show_fitted_tests(run) if run.passed else []
        doubts = [f"{one_line(each, 300)}." for each in run.shown]
        if unsteady := self.failures.tests.unexplained:
            names = first_few(sorted(unsteady), MOST_NAMES)
            doubts.append(f"Fails in some runs with this work and in none without it: {names}.")
        reviewed = self._reviewed(command, fitted)
        doubts += [f"{text}: {first_few(names, 10)}." for text, names in reviewed if names]
        showing = 0
        if run.passed:
            run.why, showing = self._unshown_change(judged, doubts)
        if run.why:
            failed = judged.ran.counts.named("failed") if judged.ran.counts else []
            new = sorted(set(failed) - set(self.start.failed))
            named = f" New failures: {first_few(new, 10)}." if new and self.start.failed else ""
            return WorkProof(problem=f"{self.runner.describe_failure(run)}{named}")
        more = (run.tests or 0) - self.start.passed - len(self.start.failed)
        counts = [f"{(run.tests or 0) - run.failed} passed"]
        counts += [f"{more} more" if more > 0 else ""] if not self.start.why else []
        words = {
            "failing without the change": showing,
            "failed before as well": run.failed,
            "skipped": run.skipped,
        }
        counts += [f"{number} {word}" for word, number in words.items() if number]
        return WorkProof(line=f"{command}: {', '.join(filter(None, counts))}", doubts=doubts)

    def _judge(self, command: str) -> tuple[JudgedRun, Proof]:
        """Run the tests; if a few fail, once more, and on the untouched tree at that time.

        Tests that measure time fail on a busy machine, whatever the work is. So one that passes in
        one of the runs refuses nothing, and one that fails without the work as well does not count.
        """
        accepted = AcceptedRun(
            command=command,
            tests=self.start.passed + len(self.start.failed),
            skipped=self.start.skipped,
            expected=self.start.expected,
        )
        known, failures = frozenset(self.start.failed), self.failures
        for runs_left in reversed(range(MOST_RUNS)):
            judged = JudgedRun(
                self.runner,
                self.product,
                self.before,
                check_command(command, self.rules),
                known_failures=known,
            )
            run = judged.judge("unit", None if self.start.why else accepted, self.unresolved)
            counts = judged.ran.counts
            failures.add(counts, with_work=True)
            failed = len(counts.named("failed")) if counts else 0
            if not runs_left or run.passed or not counts or not 0 < failed <= MOST_FLAKY:
                break
            self._run_untouched(judged)
            known |= {*counts.named("passed"), *failures.tests.without}
        for _ in range(MOST_RUNS if run.passed and judged.shaken_tests() else 0):
            if not failures.tests.unexplained:
                again = self.runner.run_command(self.product, judged.command)
                failures.add(again.counts, with_work=True)
        if run.passed and failures.tests.unexplained:
            self._run_untouched(judged)
        return judged, run

    def _run_untouched(self, judged: JudgedRun) -> None:
        untouched = self.runner.run_command(self.before, judged.command).counts
        self.failures.add(untouched, with_work=False)

    @cached_property
    def failures(self) -> SeenFailures:
        """The failures of this work in all runs, also those of earlier calls."""
        how = (
            self.start.command,
            self.rules.model_dump_json(),
            self.runner.shell.model_dump_json(),
        )
        seen = SeenFailures(self.runner.cache, "\n".join((self.product.id, self.before.id, *how)))
        seen.tests.without.update(self.start.failed)
        return seen

    @cached_property
    def review(self) -> ChangeReview:
        return ChangeReview(self.product, self.before, [each.path for each in self.changes])

    @cached_property
    def tests(self) -> list[str]:
        """The changed files that belong to the tests and to nothing else."""
        used = self.review.used_as_code()
        return [each for each in self.review.paths if is_test_file(each) and each not in used]

    def _reviewed(self, command: str, fitted: Sequence[str]) -> list[tuple[str, list[str]]]:
        """Return what people have to look at, each with what was found.

        Args:
            fitted: Tests of which they are told already that they were changed.
        """
        review, issue = self.review, self.snapshot.read_text("instructions.md")
        reach = ProductReach(review, self.tests, issue, command)
        return [
            ("Tests that were there say something else", self._rewritten_tests(fitted)),
            ("Named like tests, and used by the product", sorted(review.used_as_code())),
            ("Changed lines compare with values of the tests", review.special_cases(self.tests)),
            ("Data has values of the tests", review.answers_in_data(self.tests, issue)),
            ("Tests replace parts of the product", review.replaced_parts(self.tests)),
            ("New modules have the names of others", reach.taken_names(self.start.failed)),
            ("Code changes modules that are not its own", reach.changed_modules()),
            ("Code looks at tests, or for what only new tests set", reach.looks_at_tests()),
        ]

    def _unnamed_files(self) -> list[str]:
        """Return new files that the job neither names nor has as tests, and what tools left."""
        link = self.snapshot.repository
        listed = self.call.get("deliverables")
        named = [str(each).strip("/") for each in listed] if isinstance(listed, list) else []
        folder = link.folder if link else ""
        named = [each.removeprefix(f"{folder}/") for each in named if each != folder]
        statement = f"{self.call.get('summary', '')} {self.call.get('notes', '')}"
        return [
            each.path
            for each in self.changes
            if each.is_new
            and self.published.entry(each.path) is None
            and (
                (_LEFT_BEHIND.search(each.path) and not is_test_file(each.path))
                or not (
                    (each.path in self.tests and self.review.serves_tests(each.path))
                    or any(f"{each.path}/".startswith(f"{name}/") for name in named)
                    or each.path in statement
                )
            )
        ]

    def _rewritten_tests(self, fitted: Sequence[str]) -> list[str]:
        """Return tests that were there and were changed: whether they ask for less, people see."""
        test_ids = {entry.id for path in self.tests if (entry := self.product.entry(path))}
        told = set(map(test_key, fitted))
        return [
            name
            for each in self.changes
            if not each.is_new and is_test_file(each.path) and (each.removed or each.is_gone)
            if not (
                each.is_gone and (entry := self.before.entry(each.path)) and entry.id in test_ids
            )
            for name in changed_tests(self.before, self.product, each.path)
            if test_key(_as_reported(name)) not in told
        ]

    def _unshown_change(self, judged: JudgedRun, doubts: list[str]) -> tuple[str, int]:
        """Return why no test shows the change of the code, empty if one does or none has to; and
        how many do.
        """
        changed = [each for each in self.review.code() if each not in self.tests]
        code = [each for each in changed if not _NO_CODE.search(each)]
        if not code:
            doubts.append("No code was changed, so that no test shows the change.")
            return "", 0
        if red := self._tests_of_change(judged):
            doubts += self._lacking_names(red) or self._tests_of_words(judged, red)
            return "", len(red)
        if is_named_unresolved(NEW_TEST, NEW_TEST, self.unresolved):
            doubts.append("No test shows the change; the job says why in what is unresolved.")
            return "", 0
        tried = (
            f"the tests in {first_few(self.tests, MOST_NAMES)} pass on the old code as well"
            if self.tests
            else "no test was added or changed"
        )
        return (
            f"all tests pass, and none shows the change of {first_few(code, MOST_NAMES)}: {tried}. "
            "Write one that fails without the change; where there can be none, an entry in "
            f"`unresolved` that begins with `{NEW_TEST}:` and says why is shown to a person"
        ), 0

    def _lacking_names(self, red: Mapping[str, str]) -> list[str]:
        """Return that tests fail on the old code only for names that it has not, if that is so.

        Of a name that the instructions give, nothing else can be shown.
        """
        if not all(map(_LACKS_NAME.match, red.values())):
            return []
        names = self.review.new_names(" ".join(_NAMED.findall(" ".join(red.values()))))
        if not names or self.review.new_names(self.snapshot.read_text("instructions.md")) & names:
            return []
        return [
            "The new tests fail on the old code only since it has no "
            f"{first_few(sorted(names), MOST_NAMES)}: none shows what it did wrong."
        ]

    def _tests_of_words(self, judged: JudgedRun, red: Collection[str]) -> list[str]:
        """Return that tests run nothing of the change, if that is so. As `_lacking_names`."""
        command = judged.ran.limited(judged.command)
        if self.review.new_names(self.snapshot.read_text("instructions.md")) or not (
            look_at_words_alone(
                *(red, self.product, self.before),
                lambda product: judged.runner.run_command(product, command).counts,
            )
        ):
            return []
        names = first_few(sorted(red), MOST_NAMES)
        return [f"The new tests look at words of the code and run nothing of the change: {names}."]

    def _tests_of_change(self, judged: JudgedRun) -> dict[str, str]:
        """Return the tests that pass now and did not on the old code with the new tests, each with
        its error there.
        """
        counts, command = judged.ran.counts, judged.command
        if counts is None:
            return {}
        old = self.before
        for path in self.tests:
            if (entry := self.product.entry(path)) is None:
                old = old.delete(path)
            elif entry.kind == "file":
                data = self.product.read_entry(entry)
                old = old.write(path, data, executable=entry.executable)
        passed, red = counts.named("passed"), set(self.start.failed)
        known = red.union(judged.runner.passing_tests(self.before, command))
        fresh = [name for name in passed if name not in known]
        if fresh and old.id == self.before.id:
            # Tests within the code itself, as in Rust, are not known by their files, and cannot be
            # tried without it.
            earlier = judged.runner.run_command(self.before, command).counts or RunCounts()
            return {name: "" for name in fresh if earlier.outcomes.get(name) != "passed"}

        def failing(names: Collection[str], *, missing: bool = False) -> dict[str, str]:
            ran = judged.runner.run_command(old, command) if names else None
            run_counts = ran.counts if ran and ran.counts else RunCounts()
            others = " ".join([ran.output, *run_counts.errors.values()]) if ran else ""
            errors = {name: run_counts.errors.get(name, "") for name in run_counts.named("failed")}
            lost = dict.fromkeys(names if missing else (), f"not loaded: {others}")
            errors |= {name: why for name, why in lost.items() if name not in run_counts.outcomes}
            return {name: errors[name] for name in names if name in errors}

        # A test that was there may fail by chance, but hardly twice.
        others = known if old.id != self.before.id else red
        return failing(fresh, missing=True) or failing(failing([n for n in passed if n in others]))


def _as_reported(name: str) -> str:
    """Return `tests/test_tea.py::Tea::test_none` of `tests/test_tea.py::Tea.test_none`."""
    path, _, inside = name.partition("::")
    return f"{path}::{inside.replace('.', '::')}"
