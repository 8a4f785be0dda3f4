"""The start of a project: everything is checked before its repository is created."""

import shlex

from activities.checkpoints import Root
from activities.job.done_when import check_done_when
from activities.job.scope_list import scope_list
from activities.notifications.recipients import resolve_recipients
from activities.preparation.agent_models import choose_agent_models
from activities.preparation.checkpoint_ownership import claim_ownership, refuse_unusable_id
from activities.projects.project_remote import (
    check_remote_project_owner,
    push_project,
    shared_project_remote,
)
from activities.projects.project_repository import MAIN, ProjectRepository, project_repository_path
from activities.projects.runner_commands import failing_required_command
from activities.runtime.activity_info import activity_job_id, activity_schedule_seconds
from activities.runtime.failures import typed_failure
from activities.source_repository.repository_bounds import RepositoryBounds
from activities.source_repository.repository_fetch import fetch_pinned_repository
from activities.toolkit.path_ownership import owned_path_refusal
from config.agent_files import load_agent
from config.schema.agent import AgentConfig, ConfigError
from config.start_settings import check_start_places
from config.team_files import team_quota
from protocol.commit_message import SUBJECT
from protocol.notices import as_notice
from protocol.project_requests import ProjectPrepareReply
from protocol.project_start import FORM_SPECS, ProjectStart
from protocol.project_units import BRIEF, MOST_SCOPE_AND_SETTINGS, STATE
from protocol.repository_link import RepositoryOrigin
from protocol.scope_ledger import ScopeItem, scope_from_texts, scope_size_fault
from protocol.short_text import one_line, text_title_line

MAX_ID = 150
OF_EVERY_JOB = ("notes", "output")
"""Folders that every job writes to, whatever its task."""
OTHER_NEEDS = (
    "If the need itself is wrong, mend it in the project's file and begin anew: "
    "`starter.py cancel {id}`, then `starter.py project FILE --id {id}`."
)


def create_project(
    root: Root, start: ProjectStart, chain: str, registered: list[str]
) -> ProjectPrepareReply:
    """Check the start as far as possible, then create the project's repository."""
    if len(activity_job_id()) > MAX_ID:
        raise ConfigError(f"the id of a project has at most {MAX_ID} characters: its jobs' follow")
    refuse_unusable_id(root)
    team = "" if team_quota(start.team) is None else start.team
    agents = load_project_agents(start)
    _check_product_folder(start)
    _check_conditions(start)
    scope = _divided_project_scope(start)
    for config in agents:
        check_start_places(config.start, start.repository, start.publish, root.staged.parent)
    notifying = resolve_recipients(agents, start.notify)
    if notifying:
        notifying.team = team
    if why := failing_required_command(start, agents):
        raise typed_failure(
            "Dependency", f"{why} {OTHER_NEEDS.format(id=shlex.quote(activity_job_id()))}"
        )
    remote = shared_project_remote(agents)
    if remote:
        check_remote_project_owner(remote, activity_job_id(), chain)
    path = project_repository_path(root, activity_job_id())
    repository = ProjectRepository.create(path)
    days = longest_project_keep_days(agents)
    claim_ownership(root, path, chain, keep_days=days, remote=remote)
    name = start.title or text_title_line(start.instructions) or activity_job_id()
    brief = f"# {name}\n\n{start.instructions.strip()}\n"
    nothing = str(repository.git.TreeBuilder().write())
    notices: list[str] = []
    origin: RepositoryOrigin | None = None
    if start.repository:
        bounds = RepositoryBounds.of_agents(*agents)
        origin = fetch_pinned_repository(root, activity_job_id(), start.repository, bounds, remote)
        commit, notices = origin.commit, [f"repository: {note}" for note in origin.notes]
    else:
        begin = f"Begin: {one_line(name, SUBJECT - 7)}"
        commit = repository.commit(nothing, [], begin, activity_schedule_seconds())
    repository.set_branch(MAIN, commit)
    tree = repository.with_files(nothing, {BRIEF: brief.encode()})
    state = repository.commit(
        tree, [], f"Project: {one_line(name, SUBJECT - 9)}", activity_schedule_seconds()
    )
    repository.set_branch(STATE, state)
    push_project(repository, activity_job_id(), remote)
    return ProjectPrepareReply(
        root=root.id,
        remote=remote,
        repository=str(path),
        title=name,
        origin=origin.pinned if origin else None,
        commit=commit,
        state=state,
        scope=scope,
        search_attributes=registered,
        notifying=notifying,
        notices=[as_notice(each) for each in notices],
    )


def _check_conditions(start: ProjectStart) -> None:
    of_stages = [each for stage in start.stages for each in (*stage.needs, *stage.delivers)]
    for condition in (*start.success, *of_stages):
        try:
            check_done_when(condition)
        except ValueError as error:
            raise ConfigError(f"condition {condition.line}: {error}") from None


def _check_product_folder(start: ProjectStart) -> None:
    if why := owned_path_refusal(start.product, "tactical"):
        raise ConfigError(f"product: {why}")
    if start.form == "features" and start.product in OF_EVERY_JOB:
        raise ConfigError(
            f"product: every job writes to {start.product}/, and a tester has to leave what it "
            "is handed as it is; choose another folder"
        )


def _divided_project_scope(start: ProjectStart) -> list[ScopeItem]:
    """Return the items that a project of groups divides, bounded by Temporal's history."""
    if start.form != "groups":
        return []
    items = start.items or list(scope_list(start.instructions).entries)
    if not items:
        raise ConfigError(
            "a project of groups divides a scope: give `items`, or list them under a heading "
            "Scope in the instructions"
        )
    # Its jobs keep the statements; the record of the project is carried over in one payload.
    scope = [item.slim for item in scope_from_texts(items)]
    if why := scope_size_fault(scope):
        raise ConfigError(why)
    stored = [start.model_copy(update={"items": [], "instructions": ""}), *scope]
    size = sum(len(part.model_dump_json(exclude_defaults=True).encode()) for part in stored)
    if size > MOST_SCOPE_AND_SETTINGS:
        raise ConfigError(
            f"the scope and the settings have {size:,} bytes together; at most "
            f"{MOST_SCOPE_AND_SETTINGS:,} are taken"
        )
    return scope


def load_project_agents(start: ProjectStart) -> list[AgentConfig]:
    limits = {f"limits.job.{k}": v for k, v in start.limits.model_dump().items() if v is not None}
    selected = [(start.agent(role), start.set) for role in FORM_SPECS[start.form].roles]
    selected += [(stage.agent, {**start.set, **stage.set}) for stage in start.stages]
    agents = [load_agent(agent, {**settings, **limits}) for agent, settings in selected]
    for config in agents:
        choose_agent_models(config)
    return agents


def longest_project_keep_days(agents: list[AgentConfig]) -> float | None:
    """Return the most days that any agent keeps its data; None if one keeps it forever."""
    days = [config.keep_days for config in agents if config.keep_days is not None]
    return max(days, default=None) if len(days) == len(agents) else None
