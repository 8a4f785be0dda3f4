"""A new job: its configuration, documents, repository, first files and bootstrap phase."""

from activities.checkpoints import Root
from activities.commands.sealed_files import pin_sealed_files
from activities.job.input_documents import InputDocument
from activities.job.scope_list import scope_list
from activities.job.snapshot import Snapshot
from activities.job.typed_result import check_result_schema, with_typed_result_rules
from activities.notifications.recipients import resolve_recipients
from activities.phases.predefined_todos import (
    STRATEGIC_NAMES,
    begin_configured_list,
    predefined_todos,
)
from activities.preparation.agent_models import choose_agent_models
from activities.preparation.agent_resolution import (
    check_added_tools,
    resolve_agent_tools,
    resolve_learned_guards,
    resolve_reviewer_tools,
    resolve_server_tools,
)
from activities.preparation.agent_skills import (
    REPOSITORY,
    add_repository_agent_skills,
    notice_untrusted_skills,
    read_agent_skills,
)
from activities.preparation.checkpoint_ownership import check_remote_ownership
from activities.preparation.job_scope import JobScope, read_job_scope
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
from activities.projects.start_tests import run_start_tests
from activities.runtime.activity_info import activity_job_id
from activities.runtime.failures import typed_failure
from activities.source_repository.repository_bounds import RepositoryBounds
from activities.source_repository.repository_fetch import fetch_pinned_repository
from activities.source_repository.workspace_repository import put_repository_into_workspace
from config.agent_files import load_agent
from config.schema.agent import AgentConfig, ConfigError
from config.start_settings import check_start_documents, check_start_places
from config.templates import render_template
from protocol.job_state import JobState
from protocol.notices import Notice
from protocol.phase import Phase
from protocol.prepare_requests import PrepareRequest
from protocol.repository_start import RepositoryStart
from protocol.scope_ledger import ScopeItem, scope_from_texts, scope_size_fault


def prepare_new_job(root: Root, request: PrepareRequest) -> PreparedJob:
    config = load_agent(request.agent, request.set)
    if why := pin_sealed_files(config.sealed):
        raise ConfigError(f"agent {config.name}: {why}")
    resolve_learned_guards(root, config, request.project.id if request.project else "")
    choose_agent_models(config)
    check_result_schema(config)
    notices: list[str | Notice] = [
        *resolve_server_tools(config),
        *check_remote_ownership(config, request),
    ]
    skills = read_agent_skills(config)
    tools = resolve_agent_tools(config)
    check_added_tools(config, tools)
    if config.reviewer:
        resolve_reviewer_tools(config.reviewer)
    notifying = None if request.project else resolve_recipients([config])
    brief = job_instructions(root, request)
    instructions = render_template(config.instructions_template, instructions=brief)
    if not instructions.strip():
        raise ConfigError(
            f"agent {config.name} has no instructions of its own: give some in `instructions`"
        )
    instructions = with_typed_result_rules(instructions, config)
    check_start_documents(config.start, request.documents)
    sources = [*request.documents, *request.brief]
    documents = read_start_documents(root, request, config, sources)
    notices += [line for document in documents for line in document.notices()]
    if config.needs_documents and not documents:
        raise ConfigError(
            f"agent {config.name} works on documents: name at least one in `documents`"
        )
    scope = _initial_scope(request, config, instructions, brief, documents)
    notices += scope.notices
    checkpoints = claim_checkpoints(root, request, config)
    snapshot = Snapshot.start(
        checkpoints, config, _initial_job_state(config, instructions, scope.items)
    )
    if request.repository:
        notices += _bring_repository(root, request, request.repository, snapshot)
    with report_refused_files(config):
        files = write_tool_pages(snapshot.files, config, tools)
        files = files.write("instructions.md", instructions.encode())
        for document in documents:
            files = document.put_into(files)
        snapshot.files = skills.put_into(files)
        notices += skills.notices
    if config.todos.work:
        begin_configured_list(snapshot, 1)
    if request.project:
        prepare_handoff_workspace(root, snapshot, request.project)
    folder = request.project.folder if request.project else REPOSITORY
    if not config.trust_skills:
        notices += notice_untrusted_skills(snapshot.files, folder)
    else:
        notices += add_repository_agent_skills(snapshot, folder)
        tools = resolve_agent_tools(config)
        snapshot.files = write_tool_pages(snapshot.files, config, tools)
    return PreparedJob(snapshot, tools, notices=notices, notifying=notifying)


def _bring_repository(
    root: Root, request: PrepareRequest, start: RepositoryStart, snapshot: Snapshot
) -> list[str]:
    if request.project:
        raise ConfigError("repository: a job of a project works on the project's; leave it out")
    check_start_places(snapshot.config.start, start, request.publish, root.staged.parent)
    owner, bounds = activity_job_id(), RepositoryBounds.of_agents(snapshot.config)
    remote = snapshot.config.workspace.remote or ""
    origin = fetch_pinned_repository(root, owner, start, bounds, remote)
    put_repository_into_workspace(root, snapshot, owner, origin, request.publish)
    notes = [*origin.notes, *push_start_history(root, owner, remote)]
    return [f"repository: {note}" for note in [*notes, *_run_start_tests(root, snapshot)]]


def _run_start_tests(root: Root, snapshot: Snapshot) -> list[str]:
    """Run the repository's tests as it came; raises `TestsCannotRun` where the agent needs them."""
    link, rules = snapshot.repository, snapshot.config.tests
    tests = run_start_tests(root, snapshot)
    if link is None or rules is None or tests is None:
        return []
    if tests.why and rules.required:
        raise typed_failure("TestsCannotRun", f"The tests of the repository: {tests.line}.")
    snapshot.repository = link.model_copy(update={"tests": tests})
    return [f"before the work, {tests.line}"]


def _initial_scope(
    request: PrepareRequest,
    config: AgentConfig,
    instructions: str,
    brief: str,
    documents: list[InputDocument],
) -> JobScope:
    """Return what the job owes. What a job of a project owes is what the project gave it."""
    if request.project and not request.items:
        divided = [] if request.project.divided else list(scope_list(instructions).entries)
        return JobScope(scope_from_texts(divided))
    briefs = documents[len(request.documents) :]
    by_statement = config.scope.from_brief
    return read_job_scope(request.items, instructions, brief, briefs, by_statement=by_statement)


def _initial_job_state(config: AgentConfig, instructions: str, items: list[ScopeItem]) -> JobState:
    if why := scope_size_fault(items):
        raise ConfigError(why)
    return JobState(
        phase=Phase(
            number=1,
            kind="strategic",
            purpose="bootstrap",
            name=STRATEGIC_NAMES["bootstrap"],
            todos=predefined_todos(config, "bootstrap", instructions),
        ),
        scope=items,
    )
