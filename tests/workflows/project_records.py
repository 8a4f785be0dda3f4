"""A project's record as workflow code holds it, and a play of it without any job."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from protocol.handoffs import FeatureReport, FoundFeature, Routing, Verdict
from protocol.project import ChildReport, Ended, ProjectRecord, Running
from protocol.project_requests import Work
from protocol.project_start import ProjectStart
from protocol.proof import CheckCommand, Proof
from protocol.requests import Usage
from protocol.scope import given_items
from workflows import pipeline
from workflows.forms import FORMS
from workflows.moves import Assign, Move, begin, keep_open, note_attempt, problems


def started(form: str, **details: Any) -> ProjectRecord:
    start = ProjectStart.model_validate(
        {"form": form, "instructions": "Make a tea room.", **details}
    )
    return ProjectRecord(
        start=start.model_copy(update={"items": []}),
        id="tea",
        title="Tea",
        root="r",
        repository="/r/tea.git",
        head="c0",
        stages=pipeline.stages(start),
        scope=given_items(start.items),
        limits=start.limits,
    )


def features(*names: str) -> Work:
    found = [
        FoundFeature(
            id=name,
            description=f"Do {name}.",
            checks=["unit"],
            tests={"unit": CheckCommand(command="cd repo && pytest")},
        )
        for name in names
    ]
    return Work(commit="c-setup", features=FeatureReport(features=found))


def routing(**details: Any) -> Work:
    return Work(commit="c-scope", routing=Routing.model_validate(details))


def verdict(*findings: str) -> Work:
    passed = not findings
    made = Verdict.model_validate(
        {
            "health": "It starts.",
            "checks": [{"check": "unit", "passed": passed}],
            "passed": passed,
            "findings": list(findings),
        }
    )
    return Work(commit="", verdict=made, proofs=[proof()])


def proof(**details: Any) -> Proof:
    """A run of the unit tests."""
    base = {"check": "unit", "ran": "pytest", "passed": True, "exit_code": 0, "tests": 3}
    return Proof.model_validate({**base, **details})


@dataclass
class Play:
    """Carries moves out, and ends jobs as a test says."""

    project: ProjectRecord
    merges: list[str] = field(default_factory=list)

    @property
    def moves(self) -> list[Move]:
        return FORMS[self.project.start.form].next_moves(self.project)

    @property
    def jobs(self) -> list[str]:
        """Ids of the jobs that are to be begun."""
        return [move.job for move in self.moves if isinstance(move, Assign)]

    def start(self) -> list[Assign]:
        """Begin every job that the state asks for."""
        begun = [move for move in self.moves if isinstance(move, Assign)]
        for move in begun:
            begin(self.project, move)
            FORMS[self.project.start.form].begun(self.project, move)
            self.project.running[move.job] = Running(
                unit=move.unit,
                role=move.role,
                job=move.job,
                handoff=move.handoff,
                since=0,
                seen=ChildReport(job=move.job),
            )
        return begun

    def end(
        self, job: str, work: Work | None = None, *, conflicts: tuple[str, ...] = (), **how: Any
    ) -> None:
        """A job ends with this work; what is to be merged collides, or does not."""
        form = FORMS[self.project.start.form]
        run = self.project.running.pop(job)
        ended = Ended(**{"job": job, "status": "completed", "phases": 4, "usage": Usage(), **how})
        if commit := form.settle(self.project, run, ended, work):
            self.merges.append(commit)
            form.merged(self.project, run, list(conflicts), "c-both" if conflicts else "c-main")
        note_attempt(self.project, run, ended, work, problems(ended, work))
        if work and not problems(ended, work) and not conflicts:
            keep_open(self.project, run, ended, work)

    def one(self, work: Work | None = None, **how: Any) -> Assign:
        """Begin the one job that is due, and end it."""
        [move] = self.start()
        self.end(move.job, work, **how)
        return move
