"""The rehearsal model in a project: its calls are valid for the tools."""

from __future__ import annotations

import json

from activities.toolkit.registry import REGISTRY
from rehearsal.team import choose_team_procedure, plan_team_job
from workflows.groups import WORK


def test_a_file_is_written_and_the_todo_completed_in_one_reply() -> None:
    steps = choose_team_procedure("Write `repo/tests/__init__.py`")
    assert steps is not None
    calls = next(steps)
    assert [name for name, _ in calls] == ["write_file", "todo_complete"]
    for name, arguments in calls:
        REGISTRY[name].parse(json.dumps(arguments))


def test_each_item_of_a_group_is_a_step() -> None:
    items = "- What has to be kept\n- Who may see it"
    task = WORK.format(id="g1", folder="repo", title="Of two:", task="Mind:\n- it", items=items)
    # The text before it and the project's instructions contain lists as well.
    opening = f"{task}\n\n## What came before\n\n- g0: done\n\n# Tea\n\n- What another group has\n"
    planned = plan_team_job(opening)
    assert planned is not None
    [phase] = planned.phases
    assert phase.steps == [
        "Write `repo/what_has_to_be_kept.md`: What has to be kept",
        "Write `repo/who_may_see_it.md`: Who may see it",
    ]
