"""A fresh copy of a product in which one test command runs, and what came of it."""

import os
import posixpath
import re
import shlex
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from activities.checkpoints import Files
from activities.commands import sandbox
from activities.commands.bubblewrap import SANDBOX_WORKSPACE
from activities.projects import runner_adapters, runner_reports
from activities.projects.command_following import MAKE, CommandFollower
from activities.projects.runner_commands import CommandRefused, RunnerStep
from activities.projects.runner_reports import RunCounts
from config.schema.shell import ShellConfig
from protocol.proof import CheckCommand

_LOCK = re.compile(
    r"[-.]lock(?:\.json|\.ya?ml|b)?$|^npm-shrinkwrap\.json$|^go\.sum$", re.IGNORECASE
)
"""Files in which package managers keep what they have installed."""


def is_lock_file(path: str) -> bool:
    return _LOCK.search(path.rpartition("/")[2]) is not None


@dataclass
class CommandRun:
    """One run of a test command."""

    exit_code: int | None = None
    output: str = ""
    trouble: str = ""
    refused: str = ""
    """Why it was not run."""
    missing: bool = False
    """Whether only a file that does not exist yet kept it from being run."""
    counts: RunCounts | None = None
    """None if no known runner reported."""
    runners: set[str] = field(default_factory=set)
    seconds: float = 0.0
    generated: list[str] = field(default_factory=list)
    """Files that were changed, and files and folders that were made; only of a run that may."""

    @property
    def lacks_runner(self) -> bool:
        """Whether the test runner itself is not installed."""
        return self.exit_code in (126, 127)

    @property
    def is_green(self) -> bool:
        """Whether all tests passed."""
        return self.exit_code == 0 and not (self.counts and self.counts.named("failed"))

    def limited(self, command: CheckCommand) -> CheckCommand:
        """Return the command with less time, for a changed product that may never end."""
        most = min(command.seconds, 30 + int(4 * self.seconds))
        return command.model_copy(update={"seconds": most})


@dataclass
class ProductCopy:
    """A fresh copy of a product, in which a command runs."""

    shell: ShellConfig
    folder: str
    """Path of the product in agents' workspaces."""
    product: Files
    path: Path
    layer: dict[str, Path]
    command: CheckCommand
    mutation: str = ""
    """Name under which changed functions ask whether a test is running."""
    generated: Sequence[str] | None = ()
    """Files that what runs before the tests may change; None for any, which are reported."""

    def __post_init__(self) -> None:
        self.end = time.monotonic() + self.command.seconds
        self.seen_at = SANDBOX_WORKSPACE if self.shell.sandbox == "bubblewrap" else str(self.path)
        self.top = f"{self.seen_at}/{self.folder}"

    def run(self, line: str) -> sandbox.CommandResult:
        seconds = max(1.0, self.end - time.monotonic())
        ended = sandbox.run_sandboxed_command(line, self.path, self.shell, seconds, self.layer)
        if "did not end within" in ended.trouble:
            ended = replace(ended, trouble=f"it did not end within {self.command.seconds:g} s")
        return ended

    def show_make(self, folder: str, arguments: list[str]) -> sandbox.CommandResult:
        """Return what make would run, without running it."""
        words = ["make", "-n", "--no-print-directory", *arguments]
        words.append(f"MAKE=: {MAKE}")
        return self.run(f"cd {shlex.quote(f'{self.top}/{folder}')} && {shlex.join(words)}")

    def run_runners(self) -> CommandRun:
        """Follow the command and run what it starts, in order.

        Raises:
            CommandRefused: It cannot be followed, or what it prepares changes the product.
        """
        follower = CommandFollower(self.product, self.show_make, self.command.by_person)
        ran = CommandRun(exit_code=0)
        prepared = False
        for step in follower.follow(self.command.command):
            if step.runner and prepared:
                self._refuse_changed_product()
                prepared = False
            prepared = prepared or not step.runner
            self._run_step(step, ran)
            if ran.trouble or ran.exit_code:
                break
        if ran.counts is None and ran.exit_code == 0 and not ran.trouble:
            ran.counts = RunCounts(ended=False)
        if self.generated is None:
            ran.generated = [*self._changed_files(), *self._new_paths()]
        return ran

    def _run_step(self, step: RunnerStep, ran: CommandRun) -> None:
        report = runner_adapters.new_report_folder(self.path, self.folder, self.seen_at)
        if step.runner:
            runner_adapters.remove_old_reports(step, report)
        ended = self.run(runner_adapters.start_line(step, report, self.mutation))
        counts, text = None, ""
        if step.runner:
            ran.runners.add(step.runner)
            counts, text = runner_adapters.read_step_report(step, report)
            if counts is None and ended.exit_code == 0:
                counts = RunCounts(ended=False)
        ran.output += text + ended.output
        ran.exit_code, ran.trouble = ended.exit_code, ended.trouble
        if counts is not None:
            ran.counts = ran.counts or RunCounts()
            ran.counts.add_run(counts, f"{step.folder}/" if step.folder else "")

    def _refuse_changed_product(self) -> None:
        """Refuse a preparation that changed files of the product."""
        if self.generated is None:
            return
        if path := next((p for p in self._changed_files() if p not in self.generated), ""):
            raise CommandRefused(
                f"what it runs before the tests changes {path}: tests are run on the files as "
                "they were handed over"
            )

    def _changed_files(self) -> Iterator[str]:
        """Yield the product's files that are not what they were; locks of packages may be."""
        top = self.path / self.folder
        for entry in self.product.walk():
            if entry.kind != "file" or is_lock_file(entry.path):
                continue
            data = runner_reports.read_report_data(top / entry.path, self.path)
            if len(data) != entry.size or data != self.product.read_entry(entry):
                yield entry.path

    def _new_paths(self) -> Iterator[str]:
        """Yield the files and folders that the product does not have, without what is in these."""
        top = self.path / self.folder
        for place, folders, files in os.walk(top):
            inside = os.path.relpath(place, top).removeprefix(".").lstrip("/")
            new = [
                name
                for name in (*folders, *files)
                if self.product.tree_entry(tuple(filter(None, [*inside.split("/"), name]))) is None
            ]
            folders[:] = [name for name in folders if name not in new]
            yield from (posixpath.join(inside, name) for name in new if name.isprintable())

    def run_by_exit_code(self) -> CommandRun:
        """Run a command whose exit code a person accepted; a report that it writes is counted."""
        path = self.path / self.folder / self.command.report
        if self.command.report:
            try:
                if path.is_dir() or not path.parent.resolve().is_relative_to(self.path.resolve()):
                    raise CommandRefused(
                        f"{self.command.report} cannot be a report: it is a folder"
                    )
                # A report that came with the product is from an earlier run.
                path.unlink(missing_ok=True)
            except (OSError, RuntimeError) as problem:
                raise CommandRefused(
                    f"{self.command.report} cannot be a report ({problem})"
                ) from None
        text = f"cd {shlex.quote(self.folder)} && {self.command.command}"
        shell = "bash --noprofile --norc -o pipefail" if "|" in self.command.command else "sh"
        ended = self.run(f"exec {shell} -c {shlex.quote(text)}")
        ran = CommandRun(ended.exit_code, ended.output, ended.trouble)
        if self.command.report:
            data = runner_reports.read_report_data(path, self.path)
            ran.counts = runner_reports.read_junit(data) if data else None
        return ran
