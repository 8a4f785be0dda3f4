"""A project's record as the workflow's code keeps it, and its course without any job."""

from dataclasses import dataclass, field
from typing import Any

from protocol.agent_reports import FeatureEntry, FeatureReport, Routing, TesterVerdict
from protocol.project_record import ProjectRecord
from protocol.project_requests import ChildWork
from protocol.project_start import ProjectStart
from protocol.project_units import ChildReport, EndedJob, RunningJob
from protocol.proof import CheckCommand, Proof
from protocol.scope_ledger import scope_from_texts
from protocol.usage import Usage
from workflows.rules import pipeline
from workflows.rules.forms import FORMS
from workflows.rules.project_moves import AssignJob, Move, count_project_job
from workflows.rules.project_units import (
    keep_unresolved_unit_work,
    note_unit_attempt,
    unit_work_problems,
)


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
        stages=pipeline.pipeline_stages(start),
        scope=[item.slim for item in scope_from_texts(start.items)],
        limits=start.limits,
    )


def features(*names: str) -> ChildWork:
    entries = [
        FeatureEntry(
            id=name,
            description=f"Do {name}.",
            checks=["unit"],
            tests={"unit": CheckCommand(command="cd repo && pytest")},
        )
        for name in names
    ]
    return ChildWork(commit="c-setup", features=FeatureReport(features=entries))


def routing(**details: Any) -> ChildWork:
    return ChildWork(commit="c-scope", routing=Routing.model_validate(details))


def verdict(*findings: str) -> ChildWork:
    passed = not findings
    tester_verdict = TesterVerdict.model_validate(
        {
            "health": "It starts.",
            "checks": [{"check": "unit", "passed": passed}],
            "passed": passed,
            "findings": list(findings),
        }
    )
    return ChildWork(commit="", verdict=tester_verdict, proofs=[proof()])


def proof(**details: Any) -> Proof:
    """Return a run of the unit tests."""
    base = {"check": "unit", "ran": "pytest", "passed": True, "exit_code": 0, "tests": 3}
    return Proof.model_validate({**base, **details})


@dataclass
class Play:
    """Executes moves, and ends jobs as a test says."""

    project: ProjectRecord
    merges: list[str] = field(default_factory=list)

    @property
    def moves(self) -> list[Move]:
        return FORMS[self.project.start.form].next_moves(self.project)

    @property
    def jobs(self) -> list[str]:
        """Ids of the jobs that should begin."""
        return [move.job for move in self.moves if isinstance(move, AssignJob)]

    def start(self) -> list[AssignJob]:
        """Begin every job that the state asks for."""
        begun = [move for move in self.moves if isinstance(move, AssignJob)]
        for move in begun:
            count_project_job(self.project, move)
            FORMS[self.project.start.form].mark_begun(self.project, move)
            self.project.running[move.job] = RunningJob(
                unit=move.unit,
                role=move.role,
                job=move.job,
                handoff=move.handoff,
                since=0,
                last_report=ChildReport(job=move.job),
            )
        return begun

    def end(
        self,
        job: str,
        work: ChildWork | None = None,
        *,
        conflicts: tuple[str, ...] = (),
        **how: Any,
    ) -> None:
        """End a job with this work; its merge has a conflict or not."""
        form = FORMS[self.project.start.form]
        run = self.project.running.pop(job)
        ended = EndedJob(
            **{"job": job, "status": "completed", "phases": 4, "usage": Usage(), **how}
        )
        if commit := form.settle_job(self.project, run, ended, work):
            self.merges.append(commit)
            form.mark_merged(
                self.project, run, list(conflicts), "c-both" if conflicts else "c-main"
            )
        note_unit_attempt(self.project, run, ended, work, unit_work_problems(ended, work))
        if work and not unit_work_problems(ended, work) and not conflicts:
            keep_unresolved_unit_work(self.project, run, ended, work)

    def one(self, work: ChildWork | None = None, **how: Any) -> AssignJob:
        """Begin the one job that is due, and end it."""
        [move] = self.start()
        self.end(move.job, work, **how)
        return move
