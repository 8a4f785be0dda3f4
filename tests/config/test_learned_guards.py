"""Files of learned guards."""

from pathlib import Path
from typing import Any

import pytest

from config.learned_guards import LearnedGuards, LearnedRevision
from config.schema.agent import ConfigError
from config.schema.guards import Guard


def learned(**details: Any) -> LearnedRevision:
    guard = Guard(name="no-scratch", point="before_tool", decision="deny", message="No.")
    base: dict[str, Any] = {
        "name": "no-scratch", "stage": "experiment", "at": 1, "since": 1, "why": "proposed",
        "agent": "generalist", "guard": guard,
    }  # fmt: skip
    return LearnedRevision(**base | details)


def test_every_revision_is_kept_and_the_newest_counts(tmp_path: Path) -> None:
    guards = LearnedGuards(tmp_path)
    assert guards.newest_revisions() == []
    guards.put_revision(learned())
    guards.put_revision(learned(stage="active", at=2))
    assert [one.stage for one in guards.revisions("no-scratch")] == ["experiment", "active"]
    assert [one.stage for one in guards.newest_revisions()] == ["active"]
    assert guards.newest_path("no-scratch").name == "0002.yaml"


def test_a_revision_that_was_taken_away_leaves_a_gap(tmp_path: Path) -> None:
    guards = LearnedGuards(tmp_path)
    for number in range(1, 4):
        guards.put_revision(learned(stage="active", at=number))
    (tmp_path / ".longhaul/guards/no-scratch/0001.yaml").unlink()
    assert guards.put_revision(learned(stricter_than=3, at=4)).name == "0004.yaml"
    [newest] = guards.newest_revisions()
    acting = guards.acting_revision(newest)
    assert acting is not None
    assert acting.at == 3
    assert guards.number_acting(newest) == 3
    guards.put_revision(learned(stage="active", at=5))
    assert guards.number_acting(guards.newest_revisions()[0]) == 5

    (tmp_path / ".longhaul/guards/no-scratch/0003.yaml").unlink()
    with pytest.raises(ConfigError, match=r"0003\.yaml: the file is missing"):
        guards.acting_revision(newest)


@pytest.mark.parametrize(
    ("details", "stages"),
    [
        ({}, ["experiment"]),
        ({"stage": "active"}, ["active"]),
        ({"stage": "retired"}, []),
        ({"agent": "coder"}, []),
        ({"project": "shop"}, []),
        ({"guard": None, "stage": "draft"}, []),
    ],
)
def test_a_job_starts_with_what_is_active_or_on_trial_for_its_agent(
    tmp_path: Path, details: dict[str, Any], stages: list[str]
) -> None:
    guards = LearnedGuards(tmp_path)
    guards.put_revision(learned(**details))
    assert [rule.stage for rule in guards.rules_for("generalist", "", [])] == stages
    own = Guard(name="no-scratch", point="before_tool", decision="deny", message="Mine.")
    assert guards.rules_for("generalist", "", [own]) == [own]


def test_a_file_that_was_broken_is_named(tmp_path: Path) -> None:
    path = LearnedGuards(tmp_path).put_revision(learned())
    path.write_text("name: no-scratch\n")
    with pytest.raises(ConfigError, match=r"0001\.yaml: stage: field required"):
        LearnedGuards(tmp_path).newest_revisions()
