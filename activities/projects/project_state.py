"""The project's own files on its state branch."""

from __future__ import annotations

import json
from typing import Any

from activities.job.activity_context import activity_schedule_time
from activities.projects.project_repository import ProjectRepository
from activities.text.safe_text import as_readable_json
from protocol.project import STATE
from protocol.project_forms import FORM_SPECS
from protocol.project_requests import WriteStateRequest


def write_project_units(repository: ProjectRepository, request: WriteStateRequest) -> str:
    """Update the changed units in the state file; return the commit."""
    form = FORM_SPECS[request.form]
    name, key = form.state_file, form.units_key
    raw = repository.read_file(request.state, name)
    state: dict[str, Any] = json.loads(raw) if raw else {}
    units = {unit["id"]: unit for unit in state.get(key, [])}
    for unit in request.units:
        units[unit["id"]] = unit
    state = {key: list(units.values())}
    if request.scope:
        state["items"] = [item.model_dump() for item in request.scope]
    return commit_project_files(
        repository, request.state, {name: as_readable_json(state).encode()}, request.why
    )


def commit_project_files(
    repository: ProjectRepository, before: str, files: dict[str, bytes], story: str
) -> str:
    """Commit the project's own files to the state branch; return the commit."""
    tree = repository.with_files(repository.tree_id(before), files)
    if tree == repository.tree_id(before):
        return before
    commit = repository.commit(tree, [before], story, activity_schedule_time())
    repository.set_branch(STATE, commit)
    return commit
