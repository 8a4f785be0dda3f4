"""A job that is ready for its first checkpoint, and what new jobs and forks prepare alike."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from temporalio.exceptions import ApplicationError

from activities.checkpoints import (
    Checkpoints,
    Files,
    FilesError,
    PathRefused,
    Root,
    open_checkpoints,
)
from activities.guards.signed_approvals import check_starter_known
from activities.job.input_documents import InputDocument, read_input_documents
from activities.job.result_cache import ResultCache
from activities.job.snapshot import Snapshot
from activities.job.typed_result import SCHEMA_FILE, typed_result_schema_page
from activities.preparation.agent_resolution import check_approvals
from activities.preparation.checkpoint_ownership import claim_ownership, refuse_unusable_id
from activities.projects.handoff import render_handoff
from activities.projects.project_remote import push_start_to_project_remote
from activities.projects.project_repository import ProjectRepository, project_repository_path
from activities.runtime.activity_info import activity_job_id
from activities.toolkit.registry import Tool
from config.schema.agent import AgentConfig, ConfigError
from protocol.notices import Notice
from protocol.notification_requests import Notifying
from protocol.prepare_requests import PrepareRequest


@dataclass(frozen=True)
class PreparedJob:
    snapshot: Snapshot
    tools: list[Tool]
    last_page: str = ""
    """Archive page of the previous phase, if there is one."""
    story: str = ""
    notices: list[str | Notice] = field(default_factory=list)
    """Messages for people, such as what the job has to do without."""
    notifying: Notifying | None = None


def job_instructions(root: Root, request: PrepareRequest, first: Snapshot | None = None) -> str:
    """Return the job's instructions; for a project's job the handoff, after `first` in a fork."""
    if request.project is None:
        return request.instructions
    return render_handoff(root, request.project, first=first)


def read_start_documents(
    root: Root,
    request: PrepareRequest,
    config: AgentConfig,
    sources: list[str],
    used_names: Sequence[str] = (),
) -> list[InputDocument]:
    """Read the documents of a start; the jobs of a project share a cache of their texts."""
    project = request.project
    return read_input_documents(
        root,
        sources,
        config.limits.file_bytes,
        used_names,
        ResultCache(project_repository_path(root, project.id)) if project else None,
        config.workspace.remote,
        can_view=config.has_vision,
    )


def claim_checkpoints(root: Root, request: PrepareRequest, config: AgentConfig) -> Checkpoints:
    # A start that is refused leaves its id free.
    check_approvals(config)
    check_starter_known(config, request.by)
    refuse_unusable_id(root)
    checkpoints = open_checkpoints(root, activity_job_id(), create=True)
    claim_ownership(
        root,
        checkpoints.path,
        request.chain,
        project=request.project.id if request.project else "",
        keep_days=config.keep_days,
        remote=config.workspace.remote,
    )
    return checkpoints


def push_start_history(root: Root, owner: str, remote: str) -> list[str]:
    """Push the history that a job begins from; gives a note where it stays on this host."""
    try:
        push_start_to_project_remote(
            ProjectRepository(project_repository_path(root, owner)), owner, remote
        )
    except ApplicationError as error:
        # Checkpoints have the files, so the job itself can go on elsewhere.
        return [f"its history is on this host only. {error.message}"]
    return []


def write_tool_pages(files: Files, config: AgentConfig, tools: list[Tool]) -> Files:
    for folder in config.folders:
        files = files.make_folder(folder)
    if files.entry("tools"):
        files = files.delete("tools")
    for entry in tools:
        files = files.write(f"tools/{entry.name}.md", entry.page.encode())
    if config.result_schema is not None:
        files = files.write(SCHEMA_FILE, typed_result_schema_page(config))
    return files


@contextmanager
def report_refused_files(config: AgentConfig) -> Iterator[None]:
    """Report files that a workspace refuses as mistakes in the start or in the configuration."""
    try:
        yield
    except (FilesError, PathRefused) as error:
        raise ConfigError(f"agent {config.name}: the workspace cannot be made. {error}") from None
