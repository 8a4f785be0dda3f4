"""What the system's own runs show of a job's work."""

from __future__ import annotations

from collections.abc import Sequence

from activities.checkpoints import FilesError, Root
from activities.job.snapshot import Snapshot
from activities.projects.handoff_checks import read_handoff_report
from activities.projects.product_tree import handoff_product_tree, handoff_tree_with_new_tests
from activities.projects.project_remote import open_linked_remote_project
from activities.projects.proof_run import ProofResult, ProofRunner, prove_handoff
from activities.projects.stand_ins import find_stand_ins
from protocol.agent_reports import FeatureReport, TesterVerdict
from protocol.handoffs import ProjectLink
from protocol.proof import proof_command_without_cd
from protocol.short_text import first_few, shorten_to_end
from protocol.tools import ToolRoute

MEND_WORK = (
    "Mend it: files in {folder}/ can be edited in every phase, and todo_write hands over a list "
    "for what takes commands. Then call job_complete again; the system runs the tests itself. If "
    "it cannot be done, an entry in `unresolved` that names the check and says why ends the job, "
    "and the feature goes back."
)
SAY_SO = (
    "Write into output/verdict.json that it did not pass, with this as a finding, and call "
    "job_complete again."
)
STARTING_SECONDS = 600
"""Time limit for trying the commands of a feature list, in seconds."""


def handoff_proof_problems(
    root: Root, job: str, snapshot: Snapshot, unresolved: Sequence[str] = ()
) -> str:
    """Return what the system's own runs show to be wrong with a job's work; empty if nothing.

    Args:
        unresolved: What the job lists as unresolved.
    """
    link = snapshot.link
    if link is None:
        return ""
    handoff, repository = link.handoff, open_linked_remote_project(root, link)
    if handoff.report == "features":
        return _feature_command_problem(root, job, snapshot)
    if not handoff.tests:
        return ""
    if handoff.report != "verdict":
        tree = handoff_product_tree(repository, snapshot, link.folder, handoff)
        result = prove_tree(root, job, snapshot, tree, unresolved)
        return (
            f"{' '.join(result.problems)} {MEND_WORK.format(folder=link.folder)}"
            if result.problems
            else ""
        )
    verdict, _ = read_handoff_report(snapshot.files, "verdict")
    if not isinstance(verdict, TesterVerdict) or not verdict.passed:
        return ""
    result = prove_tree(root, job, snapshot, repository.tree_id(handoff.inputs.commit))
    if result.problems:
        return f"`passed` cannot be true. {' '.join(result.problems)} {SAY_SO}"
    tree, paths = handoff_tree_with_new_tests(repository, snapshot)
    if paths and (result := prove_tree(root, job, snapshot, tree)).problems:
        return (
            f"With the tests that you wrote ({first_few(paths, 10)}) it does not pass. "
            f"{' '.join(result.problems)} {SAY_SO} They run on the files as handed to "
            "you: what you changed beside new tests does not count. Correct a test that is wrong."
        )
    return ""


def prove_tree(
    root: Root, job: str, snapshot: Snapshot, tree: str, unresolved: Sequence[str] = ()
) -> ProofResult:
    """Run the checks of a job's handoff on a tree; a file that an agent chose is no broken disk."""
    try:
        return prove_handoff(root, job, snapshot, tree, unresolved)
    except FilesError as problem:
        return ProofResult(problems=[f"The checks cannot be run: {problem}"])


def add_handoff_proof_time(routes: list[ToolRoute], link: ProjectLink | None) -> list[ToolRoute]:
    """Return the job's routes, with time for the system's own runs at its end."""
    if link is None or not (link.handoff.tests or link.handoff.report == "features"):
        return routes
    for route in routes:
        if route.name == "job_complete":
            route.guarded = True
            route.seconds += 2 * link.handoff.proof_seconds + STARTING_SECONDS
    return routes


def _feature_command_problem(root: Root, job: str, snapshot: Snapshot) -> str:
    """Return why the commands of a feature list cannot run here; empty if they can."""
    link = snapshot.link
    report, _ = read_handoff_report(snapshot.files, "features")
    if link is None or not isinstance(report, FeatureReport):
        return ""
    repository = open_linked_remote_project(root, link)
    tree = handoff_product_tree(repository, snapshot, link.folder, link.handoff)
    files = repository.files_of(snapshot.files.store, tree)
    base = repository.tree_id(link.handoff.inputs.base or link.handoff.inputs.commit)
    if replaced := find_stand_ins(files, repository.files_of(snapshot.files.store, base)):
        return f"{' '.join(replaced)} The tests of the features could show nothing."
    proving = ProofRunner(root, job, snapshot.config.shell, link.folder)
    proposed = {
        each.command: each
        for feature in report.features
        for check, each in feature.tests.items()
        if check not in link.handoff.tests
    }
    for command in proposed.values():
        line = proof_command_without_cd(command.command, link.folder)
        try:
            run = proving.run_command(
                files,
                command.model_copy(
                    update={"command": line, "exit_code_only": False, "by_person": False}
                ),
            )
        except FilesError as problem:
            return f"`{command.command}` cannot be run: {problem}"
        if run.refused and not run.missing:
            return f"`{command.command}` proves nothing: {run.refused}. Name another command."
        if run.lacks_runner:
            return (
                f"`{command.command}` cannot be run in the sandbox (exit code "
                f"{run.exit_code}): its "
                "test runner is not there. Name a runner that is, such as python3 -m unittest, in "
                f"output/features.json.\n{shorten_to_end(run.output.strip(), 400)}"
            )
    return ""
