"""How much a read asks for, as a guard on long reads counts it."""

from pathlib import Path
from typing import Any

import pytest

from activities.guards.matching import GuardSituation, count_lines_for_matching
from protocol.tools import READ_LINES
from tests.activities.standing import Standing


@pytest.mark.parametrize(
    ("range_arguments", "lines"),
    [
        ({}, 1000),
        ({"offset": 1}, READ_LINES),
        ({"offset": 1, "limit": 300}, 300),
        ({"limit": 5000}, 1000),
        ({"offset": "one"}, READ_LINES),
        ({"limit": "all"}, None),
    ],
)
def test_a_range_without_a_length_has_the_one_that_is_shown(
    tmp_path: Path, range_arguments: dict[str, Any], lines: int | None
) -> None:
    job = Standing.begin(tmp_path)
    job.write("a.log", "line\n" * 1000)
    job.call("read_file", path="a.log", offset=1)
    shown = job.open().conversation.messages()[-1]["content"].splitlines()[1:]
    assert len(shown) == READ_LINES
    now = GuardSituation.from_snapshot(
        job.open(), "before_tool", "read_file", {"path": "a.log", **range_arguments}
    )
    assert count_lines_for_matching(now) == lines
