"""What the requirements of a job mean at its turns: store, coverage, new versions."""

from collections.abc import Sequence

from sqlalchemy import Connection

from activities.checkpoints import Root
from activities.job.deliverables import is_named_unresolved
from activities.job.snapshot import Snapshot
from activities.requirements import requirement_survey, store_sync
from activities.requirements.graph import check_selected_graph_url
from activities.requirements.graph.interface import GraphUnavailableError
from activities.requirements.requirement_files import InvalidWorkspaceFile
from activities.requirements.versions import begin_new_version
from activities.runtime.activity_info import activity_job_id
from activities.toolkit.agent_tools import agent_has_tool
from activities.toolkit.job_extensions import EXTENSIONS, JobExtension
from config.schema.agent import ConfigError
from protocol.endings import GateFacts, Outcome
from protocol.short_text import one_line

MAX_NAMED = 30
"""Uncovered sentences and documents shown; `collect_requirements` lists all."""


class RequirementsExtension(JobExtension):
    def check_environment(self) -> None:
        try:
            check_selected_graph_url()
        except GraphUnavailableError as error:
            raise ConfigError(str(error)) from None

    def begin_job(self, root: Root, snapshot: Snapshot) -> list[str]:
        return begin_new_version(root, snapshot, activity_job_id())

    def begin_fork(self, root: Root, snapshot: Snapshot, parent: str) -> list[str]:
        keeps = agent_has_tool(snapshot.config, "add_requirement")
        return store_sync.update_store_after_fork(root, snapshot, parent) if keeps else []

    def replace_jobs(self, root: Root, snapshot: Snapshot, earlier: Sequence[str]) -> list[str]:
        keeps = earlier and agent_has_tool(snapshot.config, "add_requirement")
        return store_sync.update_store_after_replacement(root, snapshot, earlier) if keeps else []

    def follow_rewind(self, root: Root, snapshot: Snapshot) -> list[str]:
        keeps = agent_has_tool(snapshot.config, "add_requirement")
        return store_sync.update_store_after_rewind(root, snapshot) if keeps else []

    def add_store_facts(self, root: Root, snapshot: Snapshot, facts: GateFacts) -> None:
        store_sync.check_store_before_completion(root, snapshot, facts)

    def add_completion_facts(
        self, snapshot: Snapshot, unresolved: Sequence[str], facts: GateFacts
    ) -> None:
        if not agent_has_tool(snapshot.config, "set_sentences_aside"):
            return
        try:
            now = requirement_survey.survey_requirements(
                snapshot.files, activity_job_id(), snapshot.config.settings
            )
        except InvalidWorkspaceFile as problem:
            facts.uncovered = [f"{problem}."]
            return
        facts.uncovered = requirement_survey.open_coverage_lines(now)
        facts.badly_read = [
            f"{path}: {one_line(why, 300).rstrip('.')}"
            for path, why in requirement_survey.unproved_documents(now).items()
            if not is_named_unresolved(path, path, unresolved)
        ][:MAX_NAMED]

    def completion_notes(self, snapshot: Snapshot) -> list[str]:
        if not agent_has_tool(snapshot.config, "set_sentences_aside"):
            return []
        return requirement_survey.completeness_notes(snapshot, activity_job_id())

    def close_job(self, root: Root, snapshot: Snapshot, outcome: Outcome) -> list[str]:
        return store_sync.release_store_at_end(root, snapshot, outcome)

    def forget_job(self, connection: Connection, job: str) -> None:
        store_sync.forget_requirements(connection, job)


EXTENSIONS.append(RequirementsExtension())
