"""Runs the verifiers of an agent under the rules of proof.

A verifier that leads to a known test runner is run by the system's own start of it: no tests are a
failure, and so are tests that cannot fail. Any other one counts by its exit code; files that decide
it must be as they were when the job began.
"""

import posixpath
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch

from activities.checkpoints import Files, Root
from activities.commands.check_commands import CheckRunner, Finding, simple_commands
from activities.projects import stand_ins
from activities.projects.command_following import MAKEFILES
from activities.projects.known_runners import KNOWN_RUNNERS
from activities.projects.lost_tests import MOST_NAMES
from activities.projects.proof_run import JudgedRun, ProofRunner
from activities.projects.runner_commands import (
    CommandRefused,
    runner_command_fault,
    split_runner_commands,
)
from config.schema.agent import AgentConfig
from config.schema.work_checks import Verifier
from protocol.proof import CheckCommand
from protocol.short_text import first_few

MAKES = ("make", "gmake")
INTERPRETERS = ("sh", "bash", "dash", "python", "python3", "node", "ruby", "perl", ".", "source")


@dataclass(frozen=True)
class VerifierRunner:
    """Runs the verifiers of one job."""

    root: Root
    job: str
    config: AgentConfig
    start: Files | None
    """The workspace when the job began; None if it is unknown."""

    def run_verifier(self, files: Files, verifier: Verifier, *, ends_job: bool) -> Finding | None:
        """Return why it does not pass; None if it does.

        Args:
            ends_job: Whether the job ends with it: tests that passed at its start are missed then.

        Raises:
            OSError: The machine failed, not the command.
        """
        if changed := self._changed_frozen(files, verifier):
            return Finding(
                f"It counts for nothing while files that decide it are not as they were when the "
                f"job began: put back {first_few(changed, MOST_NAMES)}."
            )
        command = verifier.command
        if not runner_command_fault(command, by_person=True):
            return self._run_tests(files, verifier, ends_job)
        checks = CheckRunner(self.root, self.job, self.config, by_person=True)
        return checks.run_check(files, command, verifier.seconds)

    def _run_tests(self, files: Files, verifier: Verifier, ends_job: bool) -> Finding | None:
        command = CheckCommand(command=verifier.command, seconds=verifier.seconds, by_person=True)
        proving = ProofRunner(
            self.root, self.job, self.config.shell, "", sealed=tuple(self.config.sealed)
        )
        judged = JudgedRun(proving, files, self.start, command, is_tester=not ends_job)
        run = judged.judge("unit", None, ())
        if judged.ran.refused:
            # It leads to no known runner: its exit code counts.
            checks = CheckRunner(self.root, self.job, self.config, by_person=True)
            return checks.run_check(files, verifier.command, verifier.seconds)
        if judged.ran.counts and (problems := stand_ins.find_stand_ins(files, self.start)):
            return Finding(" ".join(problems))
        if run.passed:
            return None
        undecided = bool(judged.ran.trouble) or judged.ran.lacks_runner
        if judged.ran.lacks_runner:
            run.why += ", which says that a program could not be run"
        printed = f" and printed:\n{run.end}" if run.end else "."
        return Finding(f"It failed ({run.why}){printed}", decided=not undecided)

    def _changed_frozen(self, files: Files, verifier: Verifier) -> list[str]:
        """Return the frozen files that are not as they were at the start."""
        start = self.start
        if start is None:
            return []
        if verifier.frozen is not None:
            patterns = verifier.frozen
            return sorted({path for path in _differing(start, files)
                           if any(fnmatch(path, each) for each in patterns)})  # fmt: skip
        named = set(files_named(verifier.command))
        runners = runners_named(verifier.command)
        if not runners:
            return sorted(named.intersection(_differing(start, files)))
        deciding = set(stand_ins.changed_deciders(files, start, runners, shared=False))
        return sorted(path for path in deciding if start.entry(path) is not None)


def _differing(start: Files, now: Files) -> Iterator[str]:
    before = {each.path: each.id for each in start.walk() if each.kind != "folder"}
    after = {each.path: each.id for each in now.walk() if each.kind != "folder"}
    for path in before.keys() | after.keys():
        if before.get(path) != after.get(path):
            yield path


def runners_named(command: str) -> set[str]:
    """Return the test runners that a command names by its own words."""
    try:
        parts = split_runner_commands(command)
    except CommandRefused:
        return set()
    words = {word.rpartition("/")[2] for part in parts for word in part}
    return KNOWN_RUNNERS.keys() & words


def files_named(command: str) -> list[str]:
    """Return the files of the workspace that a command runs: programs, scripts and makefiles.

    What it only reads may well be the job's work, as in `grep -q tea output/tea.md`.
    """
    try:
        parts = split_runner_commands(command)
    except CommandRefused:
        parts = simple_commands(command)
    folder, paths = "", list[str]()
    for words in parts:
        if words[0] == "cd" and len(words) == 2:
            folder = posixpath.normpath(posixpath.join(folder, words[1]))
            continue
        paths += [posixpath.join(folder, name) for name in MAKEFILES if words[0] in MAKES]
        program = words[0]
        if program.rpartition("/")[2] in INTERPRETERS:
            program = next((word for word in words[1:] if not word.startswith("-")), "")
        is_path = "/" in program or program.endswith((".sh", ".py", ".js", ".rb", ".pl"))
        if is_path and not program.startswith(("/", "~")) and "*" not in program:
            paths.append(posixpath.normpath(posixpath.join(folder, program)))
    return paths
