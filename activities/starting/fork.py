"""A job that continues from the start of a phase of another, with amended instructions.

The new job copies that checkpoint and its history into its own repository, so the first job may
continue or be removed. The phase at the fork is archived unchanged, and a strategic phase follows.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, get_args

from pydantic import ValidationError
from temporalio.client import Client, WorkflowQueryFailedError
from temporalio.service import RPCError, RPCStatusCode

from activities.checkpoints import (
    CheckpointMissing,
    Checkpoints,
    Root,
    copy_checkpoint,
    open_checkpoints,
)
from activities.checkpoints.forgotten_records import find_forgotten_record
from activities.checkpoints.remote import remote_owner
from activities.checkpoints.remote_fetch import fetch_remote_checkpoints
from activities.checkpoints.repository_owner import read_owner
from activities.documents.input_documents import InputDocument, read_input_documents
from activities.job.activity_context import activity_job_id
from activities.job.plan_and_todo_files import list_under_heading, parse_plan
from activities.job.remarks import AMENDED
from activities.job.snapshot import Snapshot
from activities.job.typed_result import check_result_schema
from activities.job.workspace_summary import with_workspace_summary
from activities.notifications.recipients import resolve_recipients
from activities.phases.archive import FORKED, archive_page, archive_phase
from activities.phases.orientation import last_archive_page
from activities.phases.phase_tags import phase_tag, phase_tag_commits
from activities.phases.predefined_todos import (
    STRATEGIC_NAMES,
    begin_configured_list,
    predefined_todos,
)
from activities.projects.handoff import prepare_handoff_workspace
from activities.projects.project_remote import open_remote_project
from activities.projects.project_repository import project_repository_path
from activities.repository.workspace_repository import share_repository_with_fork
from activities.starting.agent_models import choose_agent_models
from activities.starting.agent_resolution import resolve_agent_tools, resolve_server_tools
from activities.starting.agent_skills import read_agent_skills
from activities.starting.prepared_job import (
    PreparedJob,
    claim_checkpoints,
    job_instructions,
    project_cache,
    push_start_history,
    report_refused_files,
    write_tool_pages,
)
from activities.starting.repository_ownership import check_remote_ownership
from config.agent_files import amend_agent_config
from config.schema.agent import AgentConfig, ConfigError
from config.schema.workspace import Workspace
from protocol.endings import COMPLETION_FILE, Outcome
from protocol.job_state import JobState
from protocol.payloads import Fork
from protocol.phase import Phase, Purpose
from protocol.prepare_requests import PrepareRequest
from protocol.publishing import Publish
from protocol.repository_link import EarlierStart, RepositoryLink
from protocol.scope_ledger import scope_from_texts, scope_size_fault

OF_ITS_OWN = (
    "This job works by itself: it is a fork of a job of project {project}, which takes nothing "
    "over from it."
)

MAX_NAMED = 10
QUERY_TIMEOUT = timedelta(seconds=5)


@dataclass(frozen=True)
class ForkOrigin:
    """The checkpoint that a fork begins from."""

    checkpoints: Checkpoints
    starts: dict[int, str]
    """Start checkpoints of the first job's phases, by number."""
    snapshot: Snapshot
    phase: int
    ended: bool = False
    """Whether the fork begins at the end of the first job."""

    def earlier_starts(self, job: str) -> list[EarlierStart]:
        """Return the phases before the fork, for its branch: those of `job` and jobs before it."""
        assert self.snapshot.repository is not None
        earlier = self.snapshot.repository.earlier
        known = {start.commit for start in earlier}
        own = [
            EarlierStart(job=job, commit=commit)
            for number, commit in sorted(self.starts.items())
            if number <= self.phase and commit not in known
        ]
        return [*earlier, *own]

    @property
    def document_names(self) -> list[str]:
        """Names used in `documents/`."""
        files = self.snapshot.files
        if files.entry("documents") is None:
            return []
        return [entry.path.rpartition("/")[2] for entry in files.children("documents")]


async def unforkable_job_error(client: Client, root: Root, job: str) -> ConfigError:
    """Return why the job cannot be forked, with known jobs. Raises RPCError if it stays unknown."""
    if record := find_forgotten_record(root, job):
        return ConfigError(f"fork: {record.message}")
    try:
        known = await client.get_workflow_handle(job).describe()
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise
        newest = sorted(
            root.repository(job).parent.glob("[!.]*.git"),
            key=lambda path: path.stat().st_mtime,
            reverse=True,
        )
        named = (
            mark.job if (mark := read_owner(path)) else path.stem for path in newest[:MAX_NAMED]
        )
        phases = ", ".join(named) or "none"
        return ConfigError(f"fork: there is no job {job!r}; jobs on this workspaces root: {phases}")
    return ConfigError(
        f"fork: job {job!r} has no checkpoints on this workspaces root ({root.path}, id {root.id})."
        f" If it lives on another, start the fork on its task queue, {known.task_queue}"
    )


def fetch_fork_origin(root: Root, fork: Fork, remote: object) -> None:
    """Fetch the first job from the remote that the fork names, if it is not here yet.

    Args:
        remote: The unvalidated setting; if invalid, reading the settings reports it.

    Raises:
        RemoteUnavailable, GitNotInstalled, OSError.
    """
    with suppress(CheckpointMissing):
        if fork.phase is None:
            if _last_fork_checkpoint(open_checkpoints(root, fork.job)):
                return
        elif fork.phase in phase_tag_commits(open_checkpoints(root, fork.job)):
            return
    try:
        url = Workspace.model_validate({"remote": remote}).remote
    except ValidationError:
        return
    if url and remote_owner(url, fork.job):
        fetch_remote_checkpoints(url, fork.job, open_checkpoints(root, fork.job, create=True))


async def newest_fork_origin_phase(client: Client, job: str) -> int | None:
    """Return the current phase of the first job; None if the workflow does not answer.

    After a Temporal reset its repository still has tags of later phases until they are remade.
    """
    try:
        status = await client.get_workflow_handle(job).query(
            "status", result_type=dict[str, Any], rpc_timeout=QUERY_TIMEOUT
        )
    except (WorkflowQueryFailedError, RPCError):
        return None
    return max((each["phase"] for each in status.get("checkpoints") or []), default=None)


def find_fork_origin(root: Root, fork: Fork, newest: int | None) -> ForkOrigin:
    """Return the checkpoint to begin from.

    Args:
        newest: The current phase of the first job, if known.

    Raises:
        ConfigError: There is no such phase; the message lists the phases.
    """
    checkpoints = open_checkpoints(root, fork.job)
    starts = {
        number: commit
        for number, commit in phase_tag_commits(checkpoints).items()
        if newest is None or number <= newest
    }
    if fork.phase is None:
        return _fork_at_end(checkpoints, fork, starts, newest)
    if fork.phase not in starts:
        known = ", ".join(map(str, sorted(starts))) or "none yet"
        raise ConfigError(
            f"fork: no phase {fork.phase} of job {fork.job!r} has begun; its phases: {known}"
        )
    try:
        snapshot = Snapshot.load(checkpoints, starts[fork.phase])
    except CheckpointMissing as error:
        raise _damaged_fork_origin(fork, error) from None
    return ForkOrigin(checkpoints, starts, snapshot, fork.phase)


def _last_fork_checkpoint(checkpoints: Checkpoints) -> str | None:
    """Return the last checkpoint of a closed job."""
    tags = checkpoints.tags()
    return next((tags[word] for word in get_args(Outcome) if word in tags), None)


def _fork_at_end(
    checkpoints: Checkpoints, fork: Fork, starts: dict[int, str], newest: int | None
) -> ForkOrigin:
    last = _last_fork_checkpoint(checkpoints)
    try:
        snapshot = Snapshot.load(checkpoints, last) if last else None
    except CheckpointMissing as error:
        raise _damaged_fork_origin(fork, error) from None
    # After a Temporal reset, a job that is running again still has the tag of its end.
    if snapshot is None or (newest is not None and snapshot.state.phase.number > newest):
        known = ", ".join(map(str, sorted(starts))) or "none yet"
        raise ConfigError(
            f"fork: job {fork.job!r} has not ended; name a phase to begin from, of which it has: "
            f"{known}"
        )
    return ForkOrigin(checkpoints, starts, snapshot, snapshot.state.phase.number, ended=True)


def copy_fork_origin(origin: ForkOrigin, fork: Fork, target: Checkpoints) -> Snapshot:
    """Copy the origin's checkpoint into the new job's repository and tag its phase starts."""
    try:
        history = copy_checkpoint(target, origin.checkpoints, origin.snapshot.commit)
    except CheckpointMissing as error:
        raise _damaged_fork_origin(fork, error) from None
    passed = {entry.id for entry in history}
    for number, commit in origin.starts.items():
        # Skip starts abandoned by a Temporal reset or a lost checkpoint.
        if number <= origin.phase and commit in passed:
            target.tag(phase_tag(number), commit)
    return Snapshot.load(target, origin.snapshot.commit)


def amended_fork_instructions(text: str, addition: str) -> str:
    """Append an amendment, which takes precedence over the instructions before it."""
    return f"{text.rstrip()}\n\n{AMENDED}\n\n{addition.strip()}\n" if addition.strip() else text


def begin_fork(
    snapshot: Snapshot,
    config: AgentConfig,
    instructions: str,
    items: list[str],
    documents: list[InputDocument],
    *,
    ended: bool = False,
    repeats_list: bool = False,
) -> str:
    """Turn the copied start of a phase into the start of the fork's first phase.

    Args:
        instructions: The amendment; may be empty.
        ended: Whether the end of the first job was copied.
        items: Further scope items; if empty, those listed in the instructions.
        repeats_list: Whether an agent whose work is one list does all of it again.

    Returns:
        The newest archive page of a phase that was begun, for orientation.
    """
    if ended:
        # The phase already has a page, and the result belongs to the first job.
        snapshot.files = snapshot.files.delete(COMPLETION_FILE)
    else:
        page = archive_page(snapshot, "forked", "", FORKED)
        snapshot.files = archive_phase(snapshot.files, snapshot.state.phase, page)
    earlier_list = snapshot.config.todos.work
    snapshot.pin_config(config)
    text = amended_fork_instructions(snapshot.read_text("instructions.md"), instructions)
    snapshot.files = snapshot.files.write("instructions.md", text.encode())
    for document in documents:
        snapshot.files = document.put_into(snapshot.files)
    scope = snapshot.state.scope
    given_count = sum(item.source == "given" for item in scope)
    scope = [
        *scope,
        *scope_from_texts(items or list_under_heading(instructions, "Scope"), given_count + 1),
    ]
    if why := scope_size_fault(scope):
        raise ConfigError(f"fork: with those of the first job {why}")
    snapshot.state = JobState(
        step=snapshot.state.step,
        last_requirement=snapshot.state.last_requirement,
        scope=scope,
        phase=_first_fork_phase(snapshot, config, text),
    )
    # Otherwise the list is in the plan and in the scope, and the strategic phase reconsiders it.
    if config.todos.work and (repeats_list or config.todos.work != earlier_list):
        begin_configured_list(snapshot, snapshot.state.phase.number)
    return snapshot.read_text(last) if (last := last_archive_page(snapshot)) else ""


def _first_fork_phase(snapshot: Snapshot, config: AgentConfig, instructions: str) -> Phase:
    """Return the strategic phase that follows the phase at the fork."""
    plan = parse_plan(snapshot.read_text("plan.md"))
    # Without a plan there is nothing to reconsider, so the job starts from the beginning.
    purpose: Purpose = "fork" if plan else "bootstrap"
    return Phase(
        number=snapshot.state.phase.number + 1,
        kind="strategic",
        purpose=purpose,
        name=STRATEGIC_NAMES[purpose],
        since=snapshot.state.step,
        plan_position=next((n for n, each in enumerate(plan, 1) if each.is_open), len(plan)),
        plan_total=len(plan),
        todos=predefined_todos(config, purpose, instructions),
    )


def _damaged_fork_origin(fork: Fork, error: CheckpointMissing) -> ConfigError:
    return ConfigError(f"fork: {fork.place} of job {fork.job!r} is damaged in this store: {error}")


def prepare_fork(
    root: Root, request: PrepareRequest, fork: Fork, newest: int | None
) -> PreparedJob:
    """Prepare a fork of another job at the start of a phase."""
    origin = find_fork_origin(root, fork, newest)
    pinned = origin.snapshot.config
    config = _resolve_fork_config(request, fork, pinned)
    # Keep the pinned tools of MCP servers unless the fork overrides `mcp`.
    notices = resolve_server_tools(config) if config.mcp != pinned.mcp else []
    notices += check_remote_ownership(config, request)
    skills = read_agent_skills(config) if config.skills != pinned.skills else None
    tools = resolve_agent_tools(config)
    notifying = None if request.project else resolve_recipients([config])
    documents = read_input_documents(
        root,
        request.documents,
        config.limits.file_bytes,
        origin.document_names,
        project_cache(root, request),
        config.workspace.remote,
        can_view=config.has_vision,
    )
    notices += [line for document in documents for line in document.notices()]

    owned = claim_checkpoints(root, request, config)
    if (brought := origin.snapshot.repository) is not None:
        owner = request.project.id if request.project else activity_job_id()
        notices += _share_repository(root, brought, owner, owned, config.workspace.remote or "")
    snapshot = copy_fork_origin(origin, fork, owned)
    if snapshot.repository:
        publish = _resolve_fork_publish(request, snapshot.repository)
        earlier = origin.earlier_starts(fork.job)
        update = {"owner": owner, "publish": publish, "earlier": earlier}
        snapshot.repository = snapshot.repository.model_copy(update=update)
    elif request.publish:
        raise ConfigError(f"publish: job {fork.job!r} does not work on a repository")
    before = snapshot.files
    with report_refused_files(config):
        leaving_notice = "" if request.project else _leave_project(snapshot)
        notices += [leaving_notice] if leaving_notice else []
        page = begin_fork(
            snapshot,
            config,
            "\n\n".join(filter(None, (leaving_notice, job_instructions(root, request, snapshot)))),
            request.items,
            documents,
            ended=origin.ended,
            # Work that a project rejected goes through all its steps again.
            repeats_list=request.project is not None,
        )
        if request.project:
            prepare_handoff_workspace(root, snapshot, request.project)
        if skills:
            snapshot.files = skills.put_into(snapshot.files)
            notices += skills.notices
        snapshot.files = write_tool_pages(snapshot.files, config, tools)
        snapshot.files = with_workspace_summary(snapshot)
    snapshot.record_changes(before)
    began = f"forked from {fork.job} at {fork.place} · "
    return PreparedJob(snapshot, tools, page, began, notices, notifying)


def _leave_project(snapshot: Snapshot) -> str:
    """Unlink a job that a person forked from a project, and return the notice of it.

    No project waits for this job or judges its handoff. Without a project the notice is empty.
    """
    if not snapshot.link:
        return ""
    project, snapshot.link = snapshot.link.id, None
    return OF_ITS_OWN.format(project=project)


def _share_repository(
    root: Root, link: RepositoryLink, owner: str, owned: Checkpoints, remote: str
) -> list[str]:
    """Give a fork the first job's repository, which a remote may have to bring here.

    Returns messages for people.
    """
    is_own = owner != link.owner
    if remote and is_own:
        open_remote_project(root, link.owner, remote, link.commit)
    share_repository_with_fork(root, link, owner, owned)
    if is_own and project_repository_path(root, owner).exists():
        return [f"repository: {note}" for note in push_start_history(root, owner, remote)]
    return []


def _resolve_fork_config(request: PrepareRequest, fork: Fork, pinned: AgentConfig) -> AgentConfig:
    """The first job's configuration with the fork's settings, checked. Raises ConfigError."""
    if request.agent not in ("", pinned.name):
        raise ConfigError(
            f"fork: job {fork.job!r} is done by agent {pinned.name}, and a fork keeps it: "
            "leave `agent` out"
        )
    config = amend_agent_config(pinned, request.set)
    check_result_schema(config)
    choose_agent_models(config)
    return config


def _resolve_fork_publish(request: PrepareRequest, link: RepositoryLink) -> Publish | None:
    """Return where the fork's branch is pushed; the original job's target does not apply."""
    try:
        return request.publish and request.publish.completed(link.origin.start)
    except ValueError as wrong:
        raise ConfigError(str(wrong)) from None
