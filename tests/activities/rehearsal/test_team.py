"""The rehearsal's work on a project: its calls are ones that the tools take."""

from __future__ import annotations

import json

from activities.rehearsal.team import procedure
from activities.tools import REGISTRY


def test_a_file_is_written_and_the_todo_completed_in_one_reply() -> None:
    steps = procedure("Write `repo/tests/__init__.py`")
    assert steps is not None
    made = next(steps)
    assert [name for name, _ in made] == ["write_file", "todo_complete"]
    for name, arguments in made:
        REGISTRY[name].parse(json.dumps(arguments))
