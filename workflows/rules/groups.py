"""Parallel groups: a manager divides the scope, groups work, and the manager looks again.

A wave is every group that could begin when the manager finished. The manager runs again once each
of them is accepted or blocked; a group that is sent back still belongs to the wave. A claim of
completion counts only if the scope is complete (`protocol.routing`).
"""

from protocol.agent_reports import SCOPE, GroupEntry, Routing
from protocol.project_record import ProjectRecord
from protocol.project_requests import ChildWork
from protocol.project_units import EndedJob, Group, RunningJob
from protocol.routing import RoutingFrame
from protocol.scope_ledger import ScopeItem
from protocol.short_text import one_line
from workflows.rules import project_moves, project_units

MAX_LISTED = 60
MOST_SAID = 200
"""Longest statement of a group that the manager reads in its task, in characters."""
MOST_PLANNED = 1_500_000
"""Record size in bytes up to which more groups may be planned; the rest is for their outcomes."""
DIVIDE = """\
Divide the project's scope into groups that agents can work on side by side, in {folder}/ of a
workspace each. Write output/groups.json: {{"groups": [{{"id": "parser", "title": "…", "task": "…",
"items": ["S1"], "after": []}}], "drop": [], "complete": false}}. Every item is in exactly one
group. `after` names groups that must be through before one can begin; groups that could touch the
same files wait for one another. An item that must not be done goes under `drop` with a reason."""
COMPARE = """\
A wave of groups is through. Compare the project's scope with what is done in {folder}/, and write
output/groups.json anew: `groups` with what is to be done next (items of blocked groups may be tried
in another group, with what was learned; so may items of completed ones that turn out not to be
done), or `{{"groups": [], "complete": true}}` when everything is done or blocked for good reasons.
An item that must not be done goes under `drop`: [{{"id": "S9", "reason": "…"}}].
Groups that wait for others begin by themselves.

The groups:
{groups}

The items that are open:
{items}

The items that are said to be done:
{done}"""
WORK = """\
Work on the group {id} of the project, in {folder}/: {title}
{task}
It covers these items, all of them:
{items}
Other agents work on other groups at the same time: change only what these items need."""


def next_group_moves(project: ProjectRecord) -> list[project_moves.Move]:
    """Return the next moves for this state."""
    if project.finished:
        return [project_moves.EndProject("completed")]
    if not project.planned:
        if project.running:
            return [project_moves.WaitForJobs()]
        if project.planning_attempts >= project.start.attempts:
            return [
                project_moves.ParkProject(
                    f"The manager has not managed: {' '.join(project.findings)[:800]}"
                )
            ]
        return [_assign_group_manager(project)]
    busy = {run.unit for run in project.running.values()}
    due = [group for group in _wave_groups(project) if not group.settled and group.id not in busy]
    room = max(0, project.start.parallel - len(project.running))
    moves: list[project_moves.Move] = [_assign_group_worker(project, group) for group in due[:room]]
    return moves or [project_moves.WaitForJobs()]


def mark_group_begun(project: ProjectRecord, move: project_moves.AssignJob) -> None:
    """Record that a job begins."""
    group = _find_group(project, move.unit)
    if group is None:
        project.planning_attempts += 1
        return
    group.status = "in_progress"
    group.attempts += 1


def settle_group_job(
    project: ProjectRecord, run: RunningJob, ended: EndedJob, work: ChildWork | None
) -> str:
    """Apply a job's outcome; return the commit to merge, or None."""
    group = _find_group(project, run.unit)
    why = project_units.unit_work_problems(ended, work)
    if group is None:
        project.findings = project_units.remaining_unit_findings(ended, why, project.findings)
        if work and work.routing and not why:
            _apply_group_routing(project, work.routing)
        return ""
    project_units.remember_unit_fork_point(group, ended)
    if work:
        group.commit = work.commit
        group.left_items = {
            item.id: work.left_items[place]
            for place, item in enumerate(_group_items(project, group))
            if place in work.left_items
        }
    if why or work is None:
        _retry_or_block_group(
            project, group, project_units.remaining_unit_findings(ended, why, group.reasons)
        )
        return ""
    return work.commit


def mark_group_merged(
    project: ProjectRecord, run: RunningJob, conflicts: list[str], commit: str
) -> None:
    """Apply the outcome of merging it."""
    group = _find_group(project, run.unit)
    if group is None:
        return
    if conflicts:
        group.commit = commit
        _retry_or_block_group(project, group, project_units.unit_conflict_findings(conflicts))
        return
    group.status, group.reasons, group.merged = "completed", [], commit
    for item in project.scope:
        if item.id in group.items and item.status == "open":
            if item.id in group.left_items:
                # The manager decides whether it may be left out.
                item.reason = f"left out by {group.id}: {group.left_items[item.id]}"
            else:
                item.status, item.reason = "completed", ""
    _end_wave(project)


def routing_frame_of_groups(project: ProjectRecord) -> RoutingFrame:
    """Return the facts against which the manager's next division is checked."""
    groups_by_item = {item: group for group in project.groups for item in group.items}
    # An item that its last group left out belongs to nobody.
    groups_by_item = {
        item: group for item, group in groups_by_item.items() if group.status != "completed"
    }
    open_ids = [item.id for item in project.scope if item.status == "open"]
    return RoutingFrame(
        required=[item for item in open_ids if item not in groups_by_item],
        optional=[
            i for i in open_ids if i in groups_by_item and groups_by_item[i].status == "blocked"
        ],
        accepted=[item.id for item in project.scope if item.status == "completed"],
        groups=[group.id for group in project.groups],
        live=[group.id for group in project.groups if not group.settled],
        room=max(0, MOST_PLANNED - project.size),
    )


def _apply_group_routing(project: ProjectRecord, routing: Routing) -> None:
    reasons = {item.id: item.reason for item in routing.drop}
    again = {item for group in routing.groups for item in group.items}
    for item in project.scope:
        if item.id in reasons:
            item.status, item.reason = "dropped", reasons[item.id]
        elif item.id in again:
            item.status = "open"
    project.groups = [*project.groups, *map(_group_from_report, routing.groups)]
    project.planning_attempts, project.findings = 0, []
    if routing.complete:
        project.finished = True
        return
    project.planned = True
    _open_wave(project)


def _open_wave(project: ProjectRecord) -> None:
    through = {group.id for group in project.groups if group.settled}
    project.wave += 1
    for group in project.groups:
        if not group.wave and through.issuperset(group.after):
            group.wave = project.wave


def _end_wave(project: ProjectRecord) -> None:
    if all(group.settled for group in _wave_groups(project)):
        project.planned = False


def _retry_or_block_group(project: ProjectRecord, group: Group, why: list[str]) -> None:
    """Send the group back to its agent, or block it."""
    group.reasons = why
    if group.attempts >= project.start.attempts:
        project_units.block_project_unit(group, why)
    _end_wave(project)


def _assign_group_manager(project: ProjectRecord) -> project_moves.AssignJob:
    text = COMPARE if project.groups else DIVIDE
    task = text.format(
        folder=project.start.product,
        groups="\n".join(_group_text(group) for group in project.groups[-MAX_LISTED:]),
        items=_group_items_text([item for item in project.scope if item.status == "open"]),
        done=_group_items_text([item for item in project.scope if item.status == "completed"]),
    )
    if not project.groups:
        task += f"\n\nThe scope:\n{_group_items_text(project.scope)}"
    return project_moves.assign_project_job(
        project,
        SCOPE,
        "manager",
        task,
        findings=project.findings,
        report="groups",
        routing=routing_frame_of_groups(project),
        next_agent=project.start.agent("worker"),
        documents=project.start.documents,
    )


def _assign_group_worker(project: ProjectRecord, group: Group) -> project_moves.AssignJob:
    of_group = _group_items(project, group)
    task = WORK.format(
        id=group.id,
        folder=project.start.product,
        title=group.title,
        task=group.task,
        items=_group_item_lines([item.text[:200] for item in of_group]),
    )
    return project_moves.assign_project_job(
        project,
        group.id,
        "worker",
        task,
        commit=group.commit,
        findings=group.reasons,
        again=group,
        from_agent=project.start.agent("manager"),
        next_agent=project.start.agent("manager"),
        documents=project.start.documents,
        # A fork has them already. The ids are left out: the job numbers its own from S1, and with
        # two sets of ids a todo that names S2 would complete the wrong item.
        items=[] if group.job else [item.text for item in of_group],
    )


def _group_items(project: ProjectRecord, group: Group) -> list[ScopeItem]:
    """Return a group's items in the scope's order, whatever order the manager used."""
    return [item for item in project.scope if item.id in group.items]


def _group_items_text(items: list[ScopeItem]) -> str:
    return _group_item_lines(
        [
            f"{item.id}: {item.text[:200]}" + (f" ({item.reason[:200]})" if item.reason else "")
            for item in items
        ]
    )


def _group_item_lines(items: list[str]) -> str:
    lines = [f"- {item[:450]}" for item in items[:MAX_LISTED]]
    if (more := len(items) - MAX_LISTED) > 0:
        lines.append(f"- and {more} more, in documents/groups.json")
    return "\n".join(lines) or "- none"


def _group_text(group: Group) -> str:
    why = f": {' '.join(group.reasons)[:300]}" if group.status == "blocked" else ""
    if group.status == "completed" and group.history:
        why = f", which says: {one_line(group.history[-1].said, MOST_SAID)}"
    return f"- {group.id} ({group.status}) {', '.join(group.items[:20])}{why}"


def _group_from_report(entry: GroupEntry) -> Group:
    return Group(
        id=entry.id, title=entry.title, task=entry.task, items=entry.items, after=entry.after
    )


def _wave_groups(project: ProjectRecord) -> list[Group]:
    return [group for group in project.groups if group.wave and group.wave == project.wave]


def _find_group(project: ProjectRecord, unit: str) -> Group | None:
    return next((group for group in project.groups if group.id == unit), None)
