"""What a call of `wait` asks for, and what it is told."""

import json
from pathlib import Path

import pytest

from activities.toolkit.registry import REGISTRY
from activities.tools.wait import requested_wait_time
from tests.activities.standing import Standing

DAY = 86_400
NINE = 1_772_355_600


@pytest.fixture
def job(tmp_path: Path) -> Standing:
    return Standing.begin(tmp_path, kind="tactical")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"seconds": 30}, (30, None)),
        ({"seconds": 30, "until": "the build has finished"}, (30, None)),
        ({"seconds": 30, "until": "2026-03-01T09:00:00Z"}, (30, NINE)),
        ({"seconds": 30, "until": "2026-03-01 09:00"}, (30, NINE)),
        ({"seconds": 30, "until": "2026-03-01T10:00:00+01:00"}, (30, NINE)),
        ({"seconds": 30, "until": "2026-13-01T10:00:00"}, (30, None)),
        ({"seconds": DAY}, (DAY, None)),
        ({"seconds": DAY + 1}, None),
        ({"seconds": 0}, None),
        ({"seconds": -5}, None),
        ({"seconds": "soon"}, None),
        ({}, None),
        ({"seconds": 30, "until": "0001-01-01T00:00:00+23:59"}, (30, None)),
    ],
)
def test_times(arguments: object, expected: object) -> None:
    wait_time = requested_wait_time(json.dumps(arguments), DAY)
    if expected == (30, None) and wait_time and wait_time[1] is not None:
        assert wait_time[1] < 0  # long past
        return
    assert wait_time == expected


def test_it_says_how_long_it_was(job: Standing) -> None:
    job.reply(("wait", '{"seconds": 90, "until": "the build has finished"}'))
    reply = job.run("wait", job.request(waited_seconds=90))
    assert reply.ok
    message = job.open(reply.commit).conversation.messages()[-1]["content"]
    assert message == "Waited 90 s. It was until: the build has finished"


def test_too_long_is_refused_with_how_long_it_may_be(job: Standing) -> None:
    assert "at most 86,400 seconds" in job.call("wait", seconds=DAY + 1)
    assert "seconds" in job.call("wait", seconds=0)


def test_it_belongs_to_tactical_phases() -> None:
    assert REGISTRY["wait"].route.phases == ["tactical"]
