"""The commands that proved a job's work, run again in the sandbox on its checkpoints."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from activities.checkpoints import Checkpoints, LogEntry, Root
from activities.commands import sandbox
from activities.commands.check_commands import CheckRunner
from activities.job.done_when import unmet_condition_reason
from activities.job.snapshot import Snapshot
from activities.phases.phase_tags import job_start_files
from activities.projects.verifier_runs import VerifierRunner
from cli.evidence.claims import Claim
from config.schema.agent import AgentConfig
from config.schema.shell import ShellConfig
from protocol.todo_list import Todo

NOT_ASKED = "--run runs it again"
MAX_REASON = 500


@dataclass(frozen=True)
class CommandRuns:
    """Whether commands may be run again here, and what they lack in comparison with the job."""

    checks: CheckRunner | None
    why_not: str = NOT_ASKED
    """Why no command can be run; only without `checks`."""
    lacks: str = ""
    """What the job's commands had and those here have not."""

    @classmethod
    def prepare(cls, root: Root, job: str, config: AgentConfig, *, asked: bool) -> "CommandRuns":
        """Return what runs the commands of an archive, whose configuration is not trusted.

        They are always confined, and have neither network nor variables of this machine.
        """
        if not asked:
            return cls(None)
        confined = {"sandbox": "bubblewrap", "network": False, "environment": {}}
        shell = config.shell.model_copy(update=confined)
        try:
            sandbox.check_sandbox(shell)
        except sandbox.SandboxUnavailable as problem:
            return cls(None, _one_line(str(problem)))
        runner = CheckRunner(root, job, config.model_copy(update={"shell": shell}))
        return cls(runner, lacks=_withheld(config.shell))

    def note_failure(self, claim: Claim, what: str, why: str, *, decided: bool = True) -> None:
        """Record a failure, which proves nothing if the command had more in the job."""
        text = f"{what}: {_one_line(why)}"
        if self.lacks:
            claim.unchecked.append(f"{text} (in the job it had {self.lacks}, here it has none)")
        elif decided:
            claim.found.append(text)
        else:
            claim.unchecked.append(text)


@dataclass(frozen=True)
class DoneTodo:
    """A todo that was completed within its phase, and the checkpoint before that."""

    phase: int
    todo: Todo
    before: Snapshot


def check_done_when(store: Checkpoints, chain: Sequence[LogEntry], runs: CommandRuns) -> Claim:
    """Check the conditions of todos again, on the trees on which they held."""
    claim = Claim(
        "todos",
        "every todo with done_when met it when it was completed",
        "the tree before its completion" + (", and the commands' own runs" if runs.checks else ""),
    )
    holding = 0
    for done in _done_todos(store, chain):
        condition = done.todo.done_when
        where = f"phase {done.phase}, todo {done.todo.id}"
        if condition is None:
            continue
        if condition.command and runs.checks is None:
            claim.unchecked.append(f"{where}: {condition.line}; {runs.why_not}")
        elif why := unmet_condition_reason(done.before.files, condition, runs.checks):
            if condition.command:
                runs.note_failure(claim, where, why)
            else:
                claim.found.append(f"{where}: {_one_line(why)}")
        else:
            holding += 1
    if holding:
        claim.seen = f"{holding} conditions hold"
    elif not claim.found and not claim.unchecked:
        claim.unchecked.append("no todo that was completed within a phase had one")
    return claim


def check_verifiers(newest: Snapshot, runs: CommandRuns, *, completed: bool) -> Claim:
    """Run the verifiers again on the last checkpoint of a completed job, by the gate's rules."""
    claim = Claim(
        "verifiers",
        "the commands that had to succeed before the job could end succeed",
        "their run here, in the sandbox, on the last checkpoint",
    )
    if newest.link and newest.link.handoff.tests:
        claim.unchecked.append("the project's own checks: they need its repository")
    verifiers = newest.config.verifiers
    if not completed:
        claim.unchecked.append("the job has not completed, so that nothing says that they succeed")
    elif not verifiers:
        claim.unchecked.append("the configuration names none")
    elif runs.checks is None:
        claim.unchecked.append(f"{', '.join(each.name for each in verifiers)}; {runs.why_not}")
    else:
        passed, checks = list[str](), runs.checks
        start = job_start_files(newest.checkpoints)
        runner = VerifierRunner(checks.root, checks.job, checks.config, start)
        for verifier in verifiers:
            finding = runner.run_verifier(newest.files, verifier, ends_job=True)
            if finding is None:
                passed.append(verifier.name)
            else:
                runs.note_failure(claim, verifier.name, finding.text, decided=finding.decided)
        claim.seen = f"{', '.join(passed)} succeeded" if passed else ""
    return claim


def _withheld(shell: ShellConfig) -> str:
    had = {"network": shell.network, "variables of the worker": shell.environment}
    return " and ".join(name for name, value in had.items() if value)


def _done_todos(store: Checkpoints, chain: Sequence[LogEntry]) -> Iterator[DoneTodo]:
    """Yield the todos that were completed within their phase; a gate checks the last of each."""
    before: Snapshot | None = None
    for entry in reversed(chain):
        after = Snapshot.load(store, entry.id)
        if before and before.state.phase.number == after.state.phase.number:
            open_ids = {todo.id for todo in before.state.phase.todos if not todo.done}
            for todo in after.state.phase.todos:
                if todo.done and todo.needed and todo.id in open_ids:
                    yield DoneTodo(after.state.phase.number, todo, before)
        before = after


def _one_line(text: str) -> str:
    return " ".join(text.split())[:MAX_REASON]
