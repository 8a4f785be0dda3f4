"""Both ends of a handoff: prepares a job's workspace, and checks its work before it counts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace

from pydantic import BaseModel, ValidationError

from activities.checkpoints import FileEntry, Files, FilesError, PathRefused, Root, diff_files
from activities.checkpoints.checkpoint_errors import quote_path_in_error
from activities.checkpoints.entry_names import name_to_bytes
from activities.checkpoints.git import is_git_folder
from activities.checkpoints.volatile_paths import without_volatile
from activities.job.done_when import unmet_condition_reason
from activities.job.remarks import AMENDED
from activities.job.snapshot import Snapshot
from activities.projects.ignored_files import without_ignored
from activities.projects.project_remote import open_linked_remote_project
from activities.projects.project_repository import (
    ProjectRepository,
    Since,
    project_git_accepts_name,
)
from activities.projects.proof_run import ProofRunner, prove_handoff
from activities.projects.runners import lacks_runner, runner_command_fault
from activities.projects.stand_ins import find_stand_ins, is_test_file
from activities.projects.tool_evidence import read_evidence, verdict_evidence_problems
from activities.text.safe_text import replace_surrogates
from config.schema.agent import ConfigError
from protocol.agent_reports import REPORT_FILES, FeatureReport, ReportKind, Routing, TesterVerdict
from protocol.handoffs import Handoff, ProjectLink
from protocol.project import BRIEF, RESULT
from protocol.project_forms import FORM_SPECS
from protocol.proof import proof_command_without_cd
from protocol.repository_link import RepositoryLink
from protocol.routing import routing_problems
from protocol.short_text import first_few, indent_list_entry, shorten_to_end, shorten_to_start
from protocol.tools import ToolRoute
from protocol.validation_errors import all_validation_errors

KEPT_BY_SYSTEM = (RESULT, *(spec.state_file for spec in FORM_SPECS.values()))
"""Files that the system writes beside a project's product; jobs cannot add them to it."""
NOT_PRODUCT = {"output": ("completion.json",)}
"""By product folder: files that every job writes there and that are no part of the product."""
BRIEF_CHARACTERS = 20_000
FINDINGS_CHARACTERS = 12_000
FINDINGS_HEADING = "## What was found wrong with this very work"
FINDINGS = "documents/findings.md"
WHOLE_BRIEF = f"documents/{BRIEF}"
MAX_REPORT_BYTES = 1_000_000
KINDS: dict[ReportKind, type[BaseModel]] = {
    "features": FeatureReport,
    "groups": Routing,
    "verdict": TesterVerdict,
}
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
ON_WORK = (
    "It runs each at the top of {folder}/ in a fresh copy of what you leave there when you call "
    "job_complete, and takes nothing over that does not pass."
)
ON_VERDICT = (
    "When you call job_complete with a verdict that says `passed`, it runs each at the top of "
    "{folder}/ in a fresh copy, also with the tests that you wrote; if one fails, it cannot pass."
)
WRITTEN_TESTS = (
    "The tests that the tester wrote to show it are {paths}. Leave them there: they are run."
)
MOST_TESTS = 40
STARTING_SECONDS = 600
"""Time limit for trying the commands of a feature list, in seconds."""
_MARKS = re.compile(rb"^(?:<{7}|>{7}) (.+?)\r?$", re.MULTILINE)


def render_handoff(root: Root, link: ProjectLink, *, first: Snapshot | None = None) -> str:
    """Render a handoff as the receiver's instructions.

    Args:
        first: The job that the receiver was forked from, whose instructions it has already, with
            the project's brief. Parts of that job's handoff are left out, unless an amendment may
            say otherwise, or a person has edited them. The task and the findings never are.
    """
    known: list[str] = []
    if first and first.link and AMENDED not in (had := first.read_text("instructions.md")):
        known = [part for part in _handoff_parts(first.link) if part in had]
    task, *others = _handoff_parts(link)
    parts = [
        task,
        *(each for each in others if each.startswith(FINDINGS_HEADING) or each not in known),
    ]
    if first:
        return "\n\n".join(parts)
    brief = _handoff_project_brief(open_linked_remote_project(root, link), link.handoff)
    if len(brief) > BRIEF_CHARACTERS:
        brief = f"{shorten_to_start(brief, BRIEF_CHARACTERS)}\nAll of it is in {WHOLE_BRIEF}."
    return "\n\n".join([*parts, brief])


def _handoff_parts(link: ProjectLink) -> list[str]:
    """Return the parts of a handoff: the task, then each with its heading."""
    handoff = link.handoff
    parts = [handoff.task.strip()]
    if handoff.inputs.findings:
        text = _number_handoff_findings(handoff.inputs.findings)
        if len(text) > FINDINGS_CHARACTERS:
            text = f"{shorten_to_start(text, FINDINGS_CHARACTERS)}\nAll of it is in {FINDINGS}."
        parts.append(f"{FINDINGS_HEADING}\n\n{text}")
    if handoff.inputs.written_tests:
        paths = [f"{link.folder}/{path}" for path in handoff.inputs.written_tests]
        parts.append(WRITTEN_TESTS.format(paths=first_few(paths, MOST_TESTS)))
    if handoff.inputs.results:
        lines = [
            f"- {shorten_to_start(indent_list_entry(text), 4000)}"
            for text in handoff.inputs.results
        ]
        parts.append("## What came before\n\n" + "\n".join(lines))
    if handoff.tests and handoff.report != "features":
        lines = [f"- {check}: `{each.command}`" for check, each in handoff.tests.items()]
        text = ON_VERDICT if handoff.report == "verdict" else ON_WORK
        lines += ["", text.format(folder=link.folder)]
        parts.append("## What the system runs itself\n\n" + "\n".join(lines))
    if handoff.postcondition or handoff.success:
        lines = [f"- {condition.line}" for condition in handoff.postcondition]
        lines += [f"- {text}" for text in handoff.success]
        parts.append("## When it is done\n\n" + "\n".join(lines))
    parts.append(
        "## The project\n\n"
        f"You are one of several agents, each at its own part. {link.folder}/ holds the project's "
        f"files as you were handed them; what you leave there is your work. In your summary say "
        f"which files changed, what was checked, what was found and what comes next, in at most "
        f"{link.summary_tokens:,} tokens."
    )
    return parts


def _handoff_project_brief(repository: ProjectRepository, handoff: Handoff) -> str:
    """Return the project's instructions."""
    if not handoff.inputs.state:
        return ""
    return (repository.read_file(handoff.inputs.state, BRIEF) or b"").decode(errors="replace")


def _number_handoff_findings(findings: list[str]) -> str:
    """Render findings verbatim, each under its own heading."""
    return "\n\n".join(f"### Finding {n}\n\n{text}" for n, text in enumerate(findings, 1))


def prepare_handoff_workspace(root: Root, snapshot: Snapshot, link: ProjectLink) -> None:
    """Put the project's files into the workspace and check the precondition.

    Raises:
        ConfigError: The precondition does not hold, so the job does not begin.
    """
    repository, inputs = open_linked_remote_project(root, link), link.handoff.inputs
    origin = repository.origin
    if origin is not None:
        snapshot.borrow_objects(repository.path)
        tree = repository.as_folder(snapshot.files.store, origin.commit).hex()
        snapshot.repository = RepositoryLink(
            owner=link.id, folder=link.folder, tree=tree, commit=origin.commit, origin=origin
        )
    files = repository.put_into(snapshot.files, inputs.commit, link.folder)
    for path in (*REPORT_FILES.values(), FINDINGS):
        # Delete the answers of an earlier job.
        if files.entry(path) is not None:
            files = files.delete(path)
    findings, brief = (
        _number_handoff_findings(inputs.findings),
        _handoff_project_brief(repository, link.handoff),
    )
    if len(findings) > FINDINGS_CHARACTERS:
        files = files.write(FINDINGS, findings.encode())
    if len(brief) > BRIEF_CHARACTERS:
        files = files.write(WHOLE_BRIEF, brief.encode())
    listed = FORM_SPECS["groups"].state_file
    if link.handoff.report == "groups" and (raw := repository.read_file(inputs.state, listed)):
        files = files.write(f"documents/{listed}", raw)
    tree = files.subfolder(link.folder).id
    snapshot.files, snapshot.link = files, link.model_copy(update={"tree": tree})
    for condition in link.handoff.precondition:
        if why := unmet_condition_reason(files, condition):
            raise ConfigError(f"handoff {link.handoff.id}: the precondition does not hold. {why}")


def handoff_problems(snapshot: Snapshot) -> list[str]:
    """Return why a project cannot take over the job's work, one sentence per reason."""
    if snapshot.link is None:
        return []
    handoff, files = snapshot.link.handoff, snapshot.files
    reasons = [
        why
        for condition in handoff.postcondition
        if (why := unmet_condition_reason(files, condition))
    ]
    if marked := _handoff_files_with_marks(snapshot, snapshot.link):
        reasons.append(f"There are marks of a merge conflict in {', '.join(marked[:10])}.")
    if unnamed := _handoff_files_git_refuses(snapshot, snapshot.link.folder):
        reasons.append(
            "Git takes no file or folder of these names; rename or delete them: "
            f"{', '.join(map(quote_path_in_error, unnamed[:10]))}."
        )
    if handoff.report:
        answer, problem = read_handoff_report(files, handoff.report)
        reasons += [problem] if problem else []
        if isinstance(answer, TesterVerdict):
            reasons += verdict_evidence_problems(handoff, answer, read_evidence(snapshot))
        if isinstance(answer, FeatureReport):
            reasons += _untested_handoff_checks(answer, handoff, snapshot.link.folder)
        if isinstance(answer, Routing) and handoff.routing:
            reasons += routing_problems(answer, handoff.routing)
    return reasons


def _untested_handoff_checks(report: FeatureReport, handoff: Handoff, folder: str) -> list[str]:
    """Return one sentence per reason why checks of features cannot be proved."""
    names_by_reason: dict[str, list[str]] = {}
    for feature in report.features:
        for check in feature.checks:
            if check in handoff.tests or (check in handoff.proof and check not in feature.tests):
                continue
            command = feature.tests.get(check)
            if command is None:
                why = (
                    "have no test command: name one for each under `tests`, such as "
                    '{"unit": "python3 -m pytest -q tests"}, to be run at the top of the repository'
                )
            elif wrong := runner_command_fault(proof_command_without_cd(command.command, folder)):
                why = f"cannot be proved by `{command.command}`: {wrong}"
            else:
                continue
            names_by_reason.setdefault(why, []).append(f"{feature.id} ({check})")
    return [
        f"These checks {why}: {first_few(named, 10)}." for why, named in names_by_reason.items()
    ]


def read_handoff_report(files: Files, kind: ReportKind) -> tuple[BaseModel | None, str]:
    """Return a job's typed report, or what is wrong with the file."""
    path = REPORT_FILES[kind]
    try:
        entry = files.entry(path)
        if entry is None or entry.kind != "file":
            return None, f"There is no file {path}, which the task asks for."
        if entry.size > MAX_REPORT_BYTES:
            return None, f"{path} has more than {MAX_REPORT_BYTES:,} bytes."
        return KINDS[kind].model_validate(json.loads(files.read(path))), ""
    except (FilesError, PathRefused) as problem:
        return None, str(problem)
    except ValidationError as error:
        # Name all errors at once: each refusal counts, and after a few the job waits for a person.
        return None, f"{path} cannot be used: {all_validation_errors(error)}."
    except (ValueError, RecursionError) as error:
        return None, f"{path} is not valid JSON ({error})."


def handoff_product_tree(
    repository: ProjectRepository, snapshot: Snapshot, folder: str, handoff: Handoff
) -> str:
    """Return the tree of a job's work, with the system's files as they were handed over."""
    # Leave out caches of test runs: they would differ after each run and cause conflicts. Keep
    # logs, since a test may read one.
    caches = [pattern for pattern in snapshot.config.shell.volatile if pattern.endswith("/**")]
    before = handoff.inputs.commit
    link, since = snapshot.link, None
    if link and link.tree and snapshot.repository:
        since = Since(before, link.tree)
        files = without_ignored(snapshot.files, folder, link.tree, caches)
    else:
        files = without_volatile(snapshot.files, caches)
    tree = repository.take_from(files, folder, since)
    system_files = {name: repository.read_file(before, name) for name in KEPT_BY_SYSTEM}
    return repository.with_files(tree, system_files | dict.fromkeys(NOT_PRODUCT.get(folder, ())))


def handoff_tree_with_new_tests(
    repository: ProjectRepository, snapshot: Snapshot
) -> tuple[str, list[str]]:
    """Return the handed-over tree with the tester's new tests, and the paths of these tests."""
    assert snapshot.link
    handoff, folder = snapshot.link.handoff, snapshot.link.folder
    tree = handoff_product_tree(repository, snapshot, folder, handoff)
    return repository.with_added(repository.tree_id(handoff.inputs.commit), tree, is_test_file)


def handoff_proof_problems(root: Root, job: str, snapshot: Snapshot) -> str:
    """Return what the system's own runs show to be wrong with a job's work; empty if nothing."""
    link = snapshot.link
    if link is None:
        return ""
    handoff, repository = link.handoff, open_linked_remote_project(root, link)
    if handoff.report == "features":
        return _handoff_start_problem(root, job, snapshot)
    if not handoff.tests:
        return ""
    if handoff.report != "verdict":
        result = prove_handoff(
            root, job, snapshot, handoff_product_tree(repository, snapshot, link.folder, handoff)
        )
        return (
            f"{' '.join(result.problems)} {MEND_WORK.format(folder=link.folder)}"
            if result.problems
            else ""
        )
    verdict, _ = read_handoff_report(snapshot.files, "verdict")
    if not isinstance(verdict, TesterVerdict) or not verdict.passed:
        return ""
    result = prove_handoff(root, job, snapshot, repository.tree_id(handoff.inputs.commit))
    if result.problems:
        return f"`passed` cannot be true. {' '.join(result.problems)} {SAY_SO}"
    tree, paths = handoff_tree_with_new_tests(repository, snapshot)
    if paths and (result := prove_handoff(root, job, snapshot, tree)).problems:
        return (
            f"With the tests that you wrote ({first_few(paths, 10)}) it does not pass. "
            f"{' '.join(result.problems)} {SAY_SO} If the tests are wrong, correct or delete them."
        )
    return ""


def add_handoff_proof_time(routes: list[ToolRoute], link: ProjectLink | None) -> list[ToolRoute]:
    """Return the job's routes, with time for the system's own runs at its end."""
    if link is None or not (link.handoff.tests or link.handoff.report == "features"):
        return routes
    for route in routes:
        if route.name == "job_complete":
            route.guarded = True
            route.seconds += 2 * link.handoff.proof_seconds + STARTING_SECONDS
    return routes


def _handoff_start_problem(root: Root, job: str, snapshot: Snapshot) -> str:
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
        ended, _ = proving.run_command(files, command.model_copy(update={"command": line}))
        if lacks_runner(ended.exit_code, ended.output, line):
            return (
                f"`{command.command}` cannot be run in the sandbox (exit code "
                f"{ended.exit_code}): its "
                "test runner is not there. Name a runner that is, such as python3 -m unittest, in "
                f"output/features.json.\n{shorten_to_end(ended.output.strip(), 400)}"
            )
    return ""


def _handoff_files_with_marks(snapshot: Snapshot, link: ProjectLink) -> list[str]:
    """Return files that still contain conflict marks.

    The system's merges name the file in their marks. Other marks, such as `<<<<<<< HEAD`, belong to
    a text about git.
    """
    files, folder = snapshot.files, link.folder
    if files.tree_entry((folder,)) is None:
        return []
    now = [entry for entry in _changed_handoff_entries(snapshot, folder) if entry.kind == "file"]
    named = {entry.path.removeprefix(f"{folder}/") for entry in now}
    if link.tree and not snapshot.repository:
        # The marked file may have been renamed since.
        handed = Files(files.store, link.tree).walk("")
        named.update(entry.path for entry in handed if entry.kind == "file")
    labels = set(map(name_to_bytes, named))
    return [
        replace_surrogates(e.path)
        for e in now
        if not labels.isdisjoint(_MARKS.findall(files.read_entry(e)))
    ]


def _changed_handoff_entries(snapshot: Snapshot, folder: str) -> Iterator[FileEntry]:
    """Yield the folder's entries, except unchanged ones of a repository."""
    files = snapshot.files
    if snapshot.repository is None:
        yield from files.walk(folder)
        return
    brought = Files(files.store, snapshot.repository.tree)
    for change in diff_files(brought, files.subfolder(folder)):
        if change.new:
            yield replace(change.new, path=f"{folder}/{change.path}")


def _handoff_files_git_refuses(snapshot: Snapshot, folder: str) -> list[str]:
    """Return files and folders whose names git refuses; a folder stands for its content."""
    files = snapshot.files
    if files.tree_entry((folder,)) is None:
        return []
    trial = files.store.git.TreeBuilder()
    unnamed: set[str] = set()
    for entry in _changed_handoff_entries(snapshot, folder):
        parts = entry.path.split("/")
        for depth in range(len(folder.split("/")), len(parts)):
            if is_git_folder(parts[depth]):
                break
            if not project_git_accepts_name(trial, parts[depth]):
                unnamed.add("/".join(parts[: depth + 1]))
                break
    return sorted(unnamed)
