"""The requirements of a workspace, and how far they cover its documents."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from activities.checkpoints import Files
from activities.documents import Page, name_unread_pages
from activities.requirements import requirement_files
from activities.requirements.coverage import Coverage, measure_coverage
from activities.requirements.requirement import Requirement
from activities.requirements.set_aside_rules import SetAsideRule, read_set_aside_rules
from activities.requirements.text.languages import UNKNOWN_LANGUAGE, is_language_known
from activities.toolkit.tool_errors import ToolError
from activities.tools.workspace_documents import input_document_paths, read_workspace_document


@dataclass(frozen=True)
class RequirementSurvey:
    """Requirements of a workspace, and how far they cover its documents."""

    requirements: list[Requirement]
    broken: list[str]
    """Problems with `final.json` files that cannot be used."""
    coverage: Coverage
    rules: list[SetAsideRule]
    badly_read: dict[str, str]
    """Problems with documents of which no complete statement can be made, by path."""


def survey_requirements(files: Files, job: str, heartbeat: Callable[[], None]) -> RequirementSurvey:
    """Read the requirements and measure how far they cover the documents.

    Raises:
        InvalidWorkspaceFile: The rules that set sentences aside cannot be read.
    """
    requirements: list[Requirement] = []
    broken: list[str] = []
    listed = requirement_files.list_requirement_files(files)
    for name in sorted(listed, key=lambda name: (len(name), name)):
        heartbeat()
        try:
            requirements.append(
                requirement_files.read_requirement_file(files, listed[name][0], name, job)
            )
        except requirement_files.InvalidWorkspaceFile as problem:
            broken.append(f"{problem}.")
    documents: dict[str, list[Page]] = {}
    badly_read: dict[str, str] = {}
    for path in input_document_paths(files):
        try:
            reading = read_workspace_document(files, path, heartbeat)
        except ToolError as error:
            badly_read[path] = str(error)
            continue
        documents[path] = reading.pages
        why = " ".join(reading.quality.warnings) if reading.quality.is_unreliable else ""
        why = why or name_unread_pages(reading.pages).strip()
        if not why and not is_language_known(reading.pages):
            why = f"{UNKNOWN_LANGUAGE}."
        if why:
            badly_read[path] = why
    rules = read_set_aside_rules(files)
    out_of_scope = {rule.document for rule in rules if rule.takes_whole_document}
    return RequirementSurvey(
        requirements,
        broken,
        measure_coverage(documents, requirements, rules, heartbeat),
        rules,
        {path: why for path, why in badly_read.items() if path not in out_of_scope},
    )
