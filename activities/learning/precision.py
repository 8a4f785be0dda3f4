"""Whether a guard is right: its evaluations, and how many of them were wrong. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row

from config.learned_guards import LearnedRevision
from config.schema.agent_sections import Learning
from config.schema.guards import GuardStage
from protocol.requests import MAX_PATH

BY_ITSELF = "retired by itself"
WRITTEN = ("write_file", "append_file", "edit_file")
ApprovedCall = tuple[str, int, str, str]
"""A call that was approved: job, step, tool, and the file it names, which distinguishes the calls
of one reply."""


@dataclass(frozen=True)
class GuardFigures:
    """Of a guard since it is as it is."""

    evaluations: int
    """How often it refused, or would have, in work that it was not made from."""
    wrong: int
    """How many of these were later approved, bypassed, or part of an accepted result."""
    silent_jobs: int = 0
    """Jobs that had it and have completed, if it spoke in none at all."""
    own: int = 0
    """Right refusals in the jobs that it was made from, which are no evaluations."""

    @property
    def wrong_share(self) -> float:
        return self.wrong / self.evaluations if self.evaluations else 0.0

    def as_data(self) -> dict[str, float]:
        return {
            "evaluations": self.evaluations,
            "wrong": self.wrong,
            "share": self.wrong_share,
            "silent_jobs": self.silent_jobs,
            "own": self.own,
        }

    @property
    def line(self) -> str:
        silent = f", silent in {self.silent_jobs} jobs" if self.silent_jobs else ""
        own = f", and {self.own} in the jobs it was made from" if self.own else ""
        return (
            f"{self.evaluations} evaluations, {self.wrong} wrong "
            f"({self.wrong_share:.0%}){own}{silent}"
        )


def guard_figures(
    learned: LearnedRevision,
    rows: Sequence[Row[Any]],
    accepted: Mapping[str, frozenset[str]],
    jobs: int = 0,
) -> GuardFigures:
    """What the traces and the replay say of a guard.

    Args:
        learned: Its newest revision.
        rows: All traces.
        accepted: The deliverables of each completed job.
        jobs: How many completed jobs had it.
    """
    since = [row for row in rows if row.at >= learned.since]
    approved = approved_calls(since)
    hits = wrong = 0
    for row in since:
        if row.guard != learned.name:
            continue
        if row.type == "violation":
            hits += 1
            on_trial = bool(row.stage)
            wrong += on_trial and was_wrong(
                row.job, row.step, row.tool, row.path, approved, accepted
            )
        elif row.type == "approval":
            # A person let its refusal pass.
            wrong += 1
    silent = 0 if hits else jobs
    held = learned.replayed
    return GuardFigures(held.hits + hits, held.wrong + wrong, silent, held.own)


def approved_calls(rows: Sequence[Row[Any]]) -> set[ApprovedCall]:
    """Which calls people approved or let through."""
    return {
        (row.job, row.step, row.tool, normalise_path(row.path))
        for row in rows
        if row.type == "approval"
    }


def was_wrong(
    job: str,
    step: int,
    tool: str,
    path: str,
    approved: set[ApprovedCall],
    accepted: Mapping[str, frozenset[str]],
) -> bool:
    """Whether refusing that call would have been a mistake."""
    named = normalise_path(path)
    in_result = tool in WRITTEN and named in accepted.get(job, frozenset())
    return in_result or (job, step, tool, named) in approved


def normalise_path(path: str) -> str:
    """A path as all who name the file spell it: models write `./a.md` and `notes//a.md` as well.

    As long as it is in a trace; the workspace itself is `.`.
    """
    parts = [part for part in path.split("/") if part not in ("", ".")]
    return "/".join(parts)[:MAX_PATH] or path


def next_stage(
    stage: GuardStage, figures: GuardFigures, settings: Learning
) -> tuple[GuardStage, str] | None:
    """What becomes of a guard by itself, and why; None: nothing.

    Args:
        stage: Where it stands.
        figures: Its figures.
        settings: Of its agent.
    """
    if stage == "active" and figures.wrong_share > settings.back_share:
        return "experiment", f"went back by itself: {figures.line}"
    if stage in ("active", "experiment") and figures.silent_jobs >= settings.silent_jobs:
        return "retired", f"{BY_ITSELF}: it spoke in none of {figures.silent_jobs} jobs"
    if stage == "experiment" and settings.promote and is_ready(figures, settings):
        return "active", f"promoted by itself: {figures.line}"
    return None


def is_ready(figures: GuardFigures, settings: Learning) -> bool:
    """Whether a guard on trial may become active."""
    return (
        figures.evaluations >= settings.evaluations and figures.wrong_share <= settings.ready_share
    )
