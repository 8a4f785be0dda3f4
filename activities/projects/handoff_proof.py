"""What the system's own runs show of a job's work."""

from collections.abc import Sequence

from activities.checkpoints import FilesError, Root
from activities.job.snapshot import Snapshot
from activities.projects.handoff_checks import read_handoff_report
from activities.projects.handoff_runs import prove_tree
from activities.projects.product_copy import is_lock_file
from activities.projects.product_tree import (
    handoff_product_tree,
    handoff_tree_with_new_tests,
    restore_written_tests,
)
from activities.projects.project_remote import open_linked_remote_project
from activities.projects.proof_run import ProofRunner
from activities.projects.stand_ins import find_stand_ins
from activities.projects.tool_evidence import read_evidence
from protocol.agent_reports import FeatureReport, TesterVerdict
from protocol.handoffs import ProjectLink
from protocol.proof import proof_command_without_cd
from protocol.short_text import first_few, shorten_to_end
from protocol.tools import ToolRoute

MEND_WORK = (
    "Mend it{how}. Then call job_complete again; the system runs the tests itself. If it cannot be "
    "done, an entry in `unresolved` that names the check (`{check}: …`) and says why ends the job, "
    "and a person decides."
)
BY_LIST = (
    ": files in {folder}/ can be edited in every phase; for what takes commands that this phase "
    "does not have, hand over a list with todo_write"
)
AS_WRITTEN = (
    "It ran {paths} as the tester wrote them: put them back, and mend what they show; one that is "
    "wrong is named in `unresolved`, with the reason. "
)
EDITED = (
    "What is tested stays as it was handed over, and what you changed in it is not taken over: put "
    "{paths} back (`git show HEAD:PATH` has them), and make what was wrong there a finding; tests "
    "of your own go into new files. "
)
SAY_SO = (
    "Write into output/verdict.json that it did not pass, with this as a finding, and call "
    "job_complete again."
)
OWN_TESTS = (
    "With the tests that you wrote ({paths}) it does not pass; they run on the files as handed to "
    "you"
)
CORRECT = (
    "Correct a test that is wrong; one that has to go is named in `unresolved`, with the reason."
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
        tree, restored = restore_written_tests(repository, handoff, tree, unresolved)
        result = prove_tree(root, job, snapshot, tree, unresolved)
        if not result.problems:
            return ""
        check = next((run.check for run in result.proofs if not run.passed), "unit")
        how = "" if snapshot.state.phase.ends_job else BY_LIST.format(folder=link.folder)
        mend = MEND_WORK.format(how=how, check=check)
        as_written = AS_WRITTEN.format(paths=first_few(restored, 10)) if restored else ""
        return f"{' '.join(result.problems)} {as_written}{mend}"
    verdict, _ = read_handoff_report(snapshot.files, "verdict")
    if not isinstance(verdict, TesterVerdict) or not verdict.passed:
        return ""
    edits = edited_product_problem(root, job, snapshot)
    handed = repository.tree_id(handoff.inputs.commit)
    result = prove_tree(root, job, snapshot, handed, unresolved, is_own=False)
    if result.problems:
        return f"{edits}`passed` cannot be true. {' '.join(result.problems)} {SAY_SO}"
    tree, paths, left_out = handoff_tree_with_new_tests(repository, snapshot)
    result = prove_tree(root, job, snapshot, tree, unresolved)
    if not result.problems:
        return edits
    own_tests = OWN_TESTS.format(paths=first_few(paths, 10) or "none")
    without = f", without {first_few(left_out, 10)}" if left_out else ""
    return f"{edits}{own_tests}{without}. {' '.join(result.problems)} {SAY_SO} {CORRECT}"


def edited_product_problem(root: Root, job: str, snapshot: Snapshot) -> str:
    """Return which files under test a tester changed, as a refusal; empty if none.

    What the tests' own runs change does not count.
    """
    link = snapshot.link
    altered = read_evidence(snapshot).altered if link else []
    edited = [path for path in altered if not is_lock_file(path)]
    if link is None or not edited:
        return ""
    repository = open_linked_remote_project(root, link)
    tree = repository.tree_id(link.handoff.inputs.commit)
    files = repository.files_of(snapshot.files.store, tree)
    runner = ProofRunner(root, job, snapshot.config.shell, link.folder, generated=None)
    for command in link.handoff.tests.values():
        ran = {f"{link.folder}/{path}" for path in runner.run_command(files, command).generated}
        edited = [path for path in edited if path not in ran]
    return EDITED.format(paths=first_few(edited, 10)) if edited else ""


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
