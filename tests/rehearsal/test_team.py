"""The rehearsal model in a project: its calls are valid for the tools."""

from rehearsal.team import plan_team_job
from workflows.rules.groups import WORK


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
