"""Measure a guard: its evaluations, and how many of them were wrong. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row

from config.learned_guards import LearnedRevision
from protocol.requests import MAX_PATH

WRITTEN = ("write_file", "append_file", "edit_file")
ApprovedCall = tuple[str, int, str, str]
"""An approved call: job, step, tool, and the file it names, to distinguish the calls of one reply.
"""


@dataclass(frozen=True)
class GuardFigures:
    evaluations: int
    """How often it refused, or would have, in jobs that it was not made from."""
    wrong: int
    """Refusals that were later approved, bypassed, or contradicted by an accepted result."""
    silent_jobs: int = 0
    """Completed jobs that had it, if it fired in none of them."""
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
        examples = f", and {self.own} in the jobs it was made from" if self.own else ""
        return (
            f"{self.evaluations} evaluations, {self.wrong} wrong "
            f"({self.wrong_share:.0%}){examples}{silent}"
        )


def measure_guard_precision(
    learned: LearnedRevision,
    rows: Sequence[Row[Any]],
    accepted: Mapping[str, frozenset[str]],
    jobs: int = 0,
) -> GuardFigures:
    since = [row for row in rows if row.at >= learned.since]
    approved = approved_calls(since)
    hits = wrong = 0
    for row in since:
        if row.guard != learned.name:
            continue
        if row.type == "violation":
            hits += 1
            on_trial = bool(row.stage)
            wrong += on_trial and was_refusal_wrong(
                row.job, row.step, row.tool, row.path, approved, accepted
            )
        elif row.type == "approval":
            # A person bypassed its refusal.
            wrong += 1
    silent = 0 if hits else jobs
    replayed = learned.replayed
    return GuardFigures(replayed.hits + hits, replayed.wrong + wrong, silent, replayed.own)


def approved_calls(rows: Sequence[Row[Any]]) -> set[ApprovedCall]:
    return {
        (row.job, row.step, row.tool, normalise_trace_path(row.path))
        for row in rows
        if row.type == "approval"
    }


def was_refusal_wrong(
    job: str,
    step: int,
    tool: str,
    path: str,
    approved: set[ApprovedCall],
    accepted: Mapping[str, frozenset[str]],
) -> bool:
    named = normalise_trace_path(path)
    in_result = tool in WRITTEN and named in accepted.get(job, frozenset())
    return in_result or (job, step, tool, named) in approved


def normalise_trace_path(path: str) -> str:
    """Return a path in one spelling (not `./a.md`), shortened as in traces."""
    parts = [part for part in path.split("/") if part not in ("", ".")]
    return "/".join(parts)[:MAX_PATH] or path
