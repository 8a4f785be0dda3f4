"""A job that continues from the start of a phase of another, with amended instructions.

The new job copies that checkpoint and its history into its own repository, so the first job may
continue or be removed. The phase at the fork is archived unchanged, and a strategic phase follows.
"""

from activities.checkpoints import Checkpoints, Root, job_folder_name
from activities.job.commit_messages import fork_message
from activities.job.input_documents import InputDocument
from activities.job.plan_and_todo_files import parse_plan
from activities.job.remarks import AMENDED
from activities.job.snapshot import Snapshot
from activities.job.typed_result import check_result_schema
from activities.job.workspace_summary import with_workspace_summary
from activities.notifications.recipients import resolve_recipients
from activities.phases.archive import FORKED, archive_page, archive_phase
from activities.phases.orientation import last_archive_page
from activities.phases.predefined_todos import (
    STRATEGIC_NAMES,
    begin_configured_list,
    predefined_todos,
)
from activities.preparation.agent_models import choose_agent_models
from activities.preparation.agent_resolution import (
    check_added_tools,
    resolve_agent_tools,
    resolve_server_tools,
)
from activities.preparation.agent_skills import read_agent_skills
from activities.preparation.checkpoint_ownership import check_remote_ownership
from activities.preparation.fork_origin import ForkOrigin, copy_fork_origin, find_fork_origin
from activities.preparation.job_scope import read_job_scope
from activities.preparation.prepared_job import (
    PreparedJob,
    claim_checkpoints,
    job_instructions,
    push_start_history,
    read_start_documents,
    report_refused_files,
    write_tool_pages,
)
from activities.projects.handoff import prepare_handoff_workspace
from activities.projects.project_remote import open_remote_project
from activities.projects.project_repository import ProjectRepository, project_repository_path
from activities.runtime.activity_info import activity_job_id
from activities.source_repository.job_branch import job_branch_tree
from activities.source_repository.workspace_repository import share_repository_with_fork
from activities.toolkit.agent_tools import ends_job_in_list
from config.agent_files import amend_agent_config, start_rights
from config.schema.agent import AgentConfig, ConfigError
from config.start_settings import check_start_documents, check_start_places
from protocol.endings import COMPLETION_FILE
from protocol.job_state import JobState
from protocol.notices import Notice
from protocol.payloads import Fork
from protocol.phase import Phase, Purpose
from protocol.prepare_requests import PrepareRequest
from protocol.repository_link import EarlierStart, RepositoryLink
from protocol.scope_ledger import scope_size_fault

OF_ITS_OWN = (
    "This job works by itself: it is a fork of a job of project {project}, which takes its work "
    "over only if a person types `starter.py adopt`."
)


def prepare_fork(
    root: Root, request: PrepareRequest, fork: Fork, newest: int | None
) -> PreparedJob:
    origin = find_fork_origin(root, fork, newest)
    pinned = origin.snapshot.config
    config = _resolve_fork_config(request, fork, pinned)
    # Keep the pinned tools of MCP servers unless the fork overrides `mcp`.
    rights = start_rights(pinned)
    check_start_places(rights, None, request.publish, root.staged.parent)
    check_start_documents(rights, request.documents)
    notices: list[str | Notice] = []
    if config.mcp != pinned.mcp:
        notices += resolve_server_tools(config)
    notices += check_remote_ownership(config, request)
    skills = read_agent_skills(config) if config.skills != pinned.skills else None
    tools = resolve_agent_tools(config)
    if config.tools != pinned.tools:
        check_added_tools(config, tools)
    notifying = None if request.project else resolve_recipients([config])
    documents = read_start_documents(
        root, request, config, request.documents, origin.document_names
    )
    notices += [line for document in documents for line in document.notices()]

    owned = claim_checkpoints(root, request, config)
    snapshot, notes = _copy_origin(root, request, fork, origin, owned, config)
    notices += notes
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
    began = fork_message(fork.job, fork.place)
    return PreparedJob(snapshot, tools, page, began, notices, notifying)


def _copy_origin(
    root: Root,
    request: PrepareRequest,
    fork: Fork,
    origin: ForkOrigin,
    owned: Checkpoints,
    config: AgentConfig,
) -> tuple[Snapshot, list[str]]:
    """Copy the checkpoint and share its repository; return messages as well."""
    owner, notes = request.project.id if request.project else activity_job_id(), list[str]()
    if shared := origin.snapshot.repository:
        notes = _share_repository(root, shared, owner, owned, config.workspace.remote or "")
    elif request.publish:
        raise ConfigError(f"publish: job {fork.job!r} does not work on a repository")
    snapshot = copy_fork_origin(origin, fork, owned)
    if snapshot.repository:
        earlier = origin.earlier_starts(fork.job)
        snapshot.repository = _fork_link(request, snapshot.repository, owner, earlier)
        if origin.ended:
            snapshot.repository.published = _finished_branch(root, snapshot, shared, fork.job)
    return snapshot, notes


def _leave_project(snapshot: Snapshot) -> str:
    """Unlink a job that a person forked from a project; return the notice of it, if so."""
    if not snapshot.link:
        return ""
    project, snapshot.link = snapshot.link.id, None
    return OF_ITS_OWN.format(project=project)


def _share_repository(
    root: Root, link: RepositoryLink, owner: str, owned: Checkpoints, remote: str
) -> list[str]:
    """Give a fork the first job's repository, from a remote if need be; return messages."""
    is_own = owner != link.owner
    if remote and is_own:
        open_remote_project(root, link.owner, remote, link.commit)
    share_repository_with_fork(root, link, owner, owned)
    if is_own and project_repository_path(root, owner).exists():
        return [f"repository: {note}" for note in push_start_history(root, owner, remote)]
    return []


def _resolve_fork_config(request: PrepareRequest, fork: Fork, pinned: AgentConfig) -> AgentConfig:
    if request.agent not in ("", pinned.name):
        raise ConfigError(
            f"fork: job {fork.job!r} is done by agent {pinned.name}, and a fork keeps it: "
            "leave `agent` out"
        )
    config = amend_agent_config(pinned, request.set)
    check_result_schema(config)
    choose_agent_models(config)
    return config


def _fork_link(
    request: PrepareRequest, link: RepositoryLink, owner: str, earlier: list[EarlierStart]
) -> RepositoryLink:
    """Return the fork's link; where the original job's branch is pushed does not apply."""
    try:
        publish = request.publish and request.publish.completed(link.origin.start)
    except ValueError as problem:
        raise ConfigError(str(problem)) from None
    return link.model_copy(update={"owner": owner, "publish": publish, "earlier": earlier})


def _finished_branch(root: Root, snapshot: Snapshot, link: RepositoryLink | None, job: str) -> str:
    """Return the tip of the branch of a job that has ended; empty if it is not here."""
    path = project_repository_path(root, snapshot.repository.owner if snapshot.repository else "")
    if link is None or snapshot.repository is None or not path.exists():
        return ""
    name = link.publish.branch if link.publish else f"longhaul/{job_folder_name(job)}"
    repository = ProjectRepository(path)
    tip = repository.branch_tip(name)
    tree = job_branch_tree(repository, snapshot, snapshot.repository)
    return tip if tip and repository.tree_id(tip) == tree else ""


def amended_fork_instructions(text: str, addition: str) -> str:
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
    """Turn the copied start of a phase into the fork's; return the newest page of a begun phase."""
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
    earlier = snapshot.state.scope
    # What a job of a project owes is what the project gave it, and not the project's own words.
    brief = "" if repeats_list else instructions
    by_statement = config.scope.from_brief
    added = read_job_scope(items, text, brief, earlier=earlier, by_statement=by_statement).items
    scope = [*earlier, *added]
    if why := scope_size_fault(scope):
        raise ConfigError(f"fork: with those of the first job {why}")
    snapshot.state = JobState(
        step=snapshot.state.step,
        last_requirement=snapshot.state.last_requirement,
        scope=scope,
        phase=_first_fork_phase(snapshot, config, text),
    )
    # Otherwise the list is in the plan and in the scope, and the strategic phase reconsiders it.
    own_list = config.todos.work
    if own_list and (repeats_list or ends_job_in_list(config) or own_list != earlier_list):
        begin_configured_list(snapshot, snapshot.state.phase.number)
    return snapshot.read_text(last) if (last := last_archive_page(snapshot)) else ""


def _first_fork_phase(snapshot: Snapshot, config: AgentConfig, instructions: str) -> Phase:
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
