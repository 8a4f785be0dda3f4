"""The rehearsal's work on a project: its calls are ones that the tools take."""

from __future__ import annotations

import json

from activities.rehearsal.replay import Call
from activities.rehearsal.team import procedure
from activities.tools import REGISTRY


def test_a_file_that_is_not_written_at_once_is_written_again() -> None:
    steps = procedure("Write `repo/tests/__init__.py`")
    assert steps is not None
    made: list[Call] = []
    answers = ["Error: the disk was busy.", "Wrote 1 character."]
    try:
        calls = next(steps)
        while True:
            made += calls
            calls = steps.send([answers.pop(0)])
    except StopIteration as ended:
        assert ended.value == "Wrote repo/tests/__init__.py."
    assert [name for name, _ in made] == ["write_file", "write_file"]
    for name, arguments in made:
        REGISTRY[name].parse(json.dumps(arguments))
