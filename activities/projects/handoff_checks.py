"""Whether a job leaves what its handoff asks for; the system's own runs are in `handoff_proof`."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace

from pydantic import BaseModel, ValidationError

from activities.checkpoints import FileEntry, Files, FilesError, PathRefused, diff_files
from activities.checkpoints.checkpoint_errors import quote_path_in_error
from activities.checkpoints.entry_names import is_dot_git_name
from activities.job.deliverables import is_named_unresolved
from activities.job.done_when import unmet_condition_reason
from activities.job.snapshot import Snapshot
from activities.projects.merge_conflicts import MARKS
from activities.projects.project_repository import project_git_accepts_name
from activities.projects.runner_commands import runner_command_fault
from activities.projects.tool_evidence import read_evidence, verdict_evidence_problems
from activities.text.safe_text import replace_surrogates
from protocol.agent_reports import REPORT_FILES, FeatureReport, ReportKind, Routing, TesterVerdict
from protocol.handoffs import Handoff, ProjectLink
from protocol.proof import proof_command_without_cd
from protocol.routing import routing_problems
from protocol.short_text import first_few
from protocol.validation_errors import all_validation_errors

MAX_REPORT_BYTES = 1_000_000
KINDS: dict[ReportKind, type[BaseModel]] = {
    "features": FeatureReport,
    "groups": Routing,
    "verdict": TesterVerdict,
}


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


def given_up_entries(handoff: Handoff, unresolved: Sequence[str]) -> list[str]:
    """Return the statements by which a coder says that a check cannot be passed, or that its
    feature cannot be made: these begin with the feature's id.
    """
    if handoff.report:
        return []
    return [
        entry
        for entry in unresolved
        if any(is_named_unresolved(check, check, [entry]) for check in handoff.tests)
        or (
            entry.partition(":")[0].strip(" `") == handoff.unit
            and is_named_unresolved(handoff.unit, handoff.unit, [entry])
        )
    ]


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


def _handoff_files_with_marks(snapshot: Snapshot, link: ProjectLink) -> list[str]:
    """Return files that still contain conflict marks."""
    files, folder = snapshot.files, link.folder
    if files.tree_entry((folder,)) is None:
        return []
    return [
        replace_surrogates(entry.path)
        for entry in _changed_handoff_entries(snapshot, folder)
        if entry.kind == "file" and MARKS.search(files.read_entry(entry))
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
            if is_dot_git_name(parts[depth]):
                break
            if not project_git_accepts_name(trial, parts[depth]):
                unnamed.add("/".join(parts[: depth + 1]))
                break
    return sorted(unnamed)


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
