"""The requirements of a workspace, and how far they cover its documents."""

from dataclasses import dataclass

from activities.checkpoints import Files
from activities.documents.pages import name_unread_pages
from activities.job.snapshot import Snapshot
from activities.requirements import requirement_files
from activities.requirements.completeness import DocumentDecisions, read_decisions
from activities.requirements.coverage import Coverage, measure_coverage
from activities.requirements.document_view import DocumentView
from activities.requirements.requirement import Requirement
from activities.requirements.requirement_files import InvalidWorkspaceFile
from activities.requirements.set_aside_rules import SetAsideRule, read_set_aside_rules
from activities.requirements.text.languages import UNKNOWN_LANGUAGE, is_language_known
from activities.requirements.versions import KeptRequirement, read_new_version
from activities.toolkit.tool_context import ToolContext
from activities.toolkit.tool_errors import ToolError
from activities.tools import workspace_documents
from config.schema.agent_sections import AgentSettings
from protocol.short_text import as_sentence, one_line

MAX_STATEMENTS = 20
MAX_NAMED = 5
"""Sentences and numbers that a refusal names."""


@dataclass(frozen=True)
class RequirementSurvey:
    requirements: list[Requirement]
    broken: list[str]
    """Problems with `final.json` files that cannot be used."""
    coverage: Coverage
    rules: list[SetAsideRule]
    badly_read: dict[str, str]
    """Problems with documents of which no complete statement can be made, by path."""
    views: dict[str, DocumentView]
    """The documents that could be read, by path."""
    kept: list[KeptRequirement]
    """Those of an earlier version of the documents that still stand there."""

    @property
    def statements(self) -> list[str]:
        """What is complete of each document and on which ground, as sentences."""
        return [
            f"{each.statement}{self._reading(each.path)}." for each in self.coverage.documents
        ] + [
            f"{path} is not complete: {why.rstrip('.')}."
            for path, why in self.badly_read.items()
            if path not in self.views
        ]

    def _reading(self, path: str) -> str:
        why = self.badly_read.get(path)
        return f"; not complete, since it was read badly: {why.rstrip('.')}" if why else ""


def survey_requirements(files: Files, job: str, settings: AgentSettings) -> RequirementSurvey:
    """Read the requirements and measure how far they cover the documents.

    Raises:
        InvalidWorkspaceFile: The rules or decisions about documents cannot be read.
    """
    requirements: list[Requirement] = []
    broken: list[str] = []
    listed = requirement_files.list_requirement_files(files)
    for name in sorted(listed, key=lambda name: (len(name), name)):
        try:
            requirements.append(
                requirement_files.read_requirement_file(files, listed[name][0], name, job)
            )
        except requirement_files.InvalidWorkspaceFile as problem:
            broken.append(f"{problem}.")
    views: dict[str, DocumentView] = {}
    decisions = read_decisions(files)
    badly_read: dict[str, str] = {}
    for path in workspace_documents.input_document_paths(files):
        try:
            reading = workspace_documents.read_workspace_document(files, path)
        except ToolError as error:
            badly_read[path] = str(error)
            continue
        views[path] = DocumentView(
            path, reading.pages, decisions.get(path, DocumentDecisions(document=path)), settings
        )
        why = " ".join(reading.quality.warnings) if reading.quality.is_unreliable else ""
        why = why or name_unread_pages(reading.pages).strip()
        if not why and not is_language_known(reading.pages):
            why = f"{UNKNOWN_LANGUAGE}."
        if why:
            badly_read[path] = why
    rules = read_set_aside_rules(files)
    version = read_new_version(files)
    kept_requirements = version.kept if version else []
    out_of_scope = {rule.document for rule in rules if rule.takes_whole_document}
    return RequirementSurvey(
        requirements,
        broken,
        measure_coverage(list(views.values()), [*requirements, *kept_requirements], rules),
        rules,
        {path: why for path, why in badly_read.items() if path not in out_of_scope},
        views,
        kept_requirements,
    )


def view_document(context: ToolContext, path: str) -> DocumentView:
    """Return a document with what was decided about it. Raises ToolError if it cannot be read."""
    path = workspace_documents.canonical_document_path(context.files, path)
    decided = read_decisions(context.files).get(path, DocumentDecisions(document=path))
    pages = workspace_documents.read_workspace_pages(context, path)
    return DocumentView(path, pages, decided, context.config.settings)


def open_coverage_lines(now: RequirementSurvey) -> list[str]:
    """Return what has to be cited, set aside or decided before the job can complete."""
    coverage = now.coverage
    lines = []
    if entries := coverage.open_entries:
        named = "; ".join(f"{path} {each.id} p.{each.page}" for path, each in entries[:MAX_NAMED])
        lines.append(
            f"{len(entries):,} numbers of the documents are neither cited nor set aside: {named}."
        )
    if uncovered := coverage.uncovered:
        lines.append(
            f"{len(uncovered):,} of {coverage.total:,} sentences that bind are neither cited nor "
            f"set aside. {coverage.unsaid}".rstrip()
        )
        named = "; ".join(
            f"{path} {each.id} p.{each.page}: {one_line(each.text, 100)}"
            for path, each in uncovered[:MAX_NAMED]
        )
        lines.append(as_sentence(named))
    lines += [
        f"Say with decide_numbers whether they are requirements, {document.path}: "
        f"{numbers.description}."
        for document in coverage.documents
        for numbers in document.undecided
    ]
    return lines


def unproved_documents(now: RequirementSurvey) -> dict[str, str]:
    """Return why documents cannot be called complete, by path: read badly, or by the sample."""
    return {
        each.path: each.sample_fault for each in now.coverage.documents if each.sample_fault
    } | now.badly_read


def completeness_notes(snapshot: Snapshot, job: str) -> list[str]:
    """Return what is complete of the documents and on which ground, for the result of a job."""
    try:
        now = survey_requirements(snapshot.files, job, snapshot.config.settings)
    except InvalidWorkspaceFile:
        return []
    return now.statements[:MAX_STATEMENTS]
