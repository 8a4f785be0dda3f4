"""Reports made up for tests of the page and its charts."""

from datetime import UTC, datetime, timedelta
from typing import Any

from cli.report.report_content import (
    Bar,
    Deliverable,
    Figures,
    Habit,
    Pattern,
    PhaseLine,
    RefusalLine,
    Repeats,
    Report,
    Wait,
)
from protocol.endings import JobResult
from protocol.notices import Notice
from protocol.status import ItemStatus, JobStatus, ScopeCounts
from protocol.waiting import WaitState

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def phase(number: int, kind: str = "tactical", **more: Any) -> PhaseLine:
    """Return a phase of ten seconds; phases follow each other from noon on."""
    defaults: dict[str, Any] = {
        "number": number,
        "kind": kind,
        "purpose": "work" if kind == "tactical" else "transition",
        "name": f"Part {number}",
        "outcome": "completed",
        "started": at(10 * (number - 1)),
        "ended": at(10 * number),
        "model_calls": 10,
    }
    return PhaseLine.model_validate(defaults | more)


def bar(step: int, **more: Any) -> Bar:
    defaults = {
        "prompt_tokens": 1000 + step,
        "largest_prompt": 1000 + step,
        "completion_tokens": 50,
    }
    return Bar.model_validate({"first": step, "last": step, "model_calls": 1} | defaults | more)


def habit(*refused: int) -> Habit:
    """Return a habit with these refusals per job and one hit each; the last job is the report's."""
    jobs = [
        Repeats(job=f"tea-{n}", refused=count, tried=1, here=n == len(refused))
        for n, count in enumerate(refused, 1)
    ]
    return Habit(
        agent="generalist",
        tool="write_file",
        by="hook rule.sh",
        lesson="Write under output/.",
        trend="falling",
        guards=["generalist.write_file.scratch (active)"],
        jobs=jobs,
    )


def report(**more: Any) -> Report:
    """Return a report with content in every part."""
    defaults: dict[str, Any] = {
        "status": JobStatus(
            job_id="tea-1",
            title="A guide on tea",
            agent="generalist",
            model="rehearsal",
            status="waiting",
            error="it failed",
            waiting=WaitState(reason="budget", message="No room.", remedy="Raise it."),
            scope=ScopeCounts(original=1, open=1),
            items=[
                ItemStatus(id="S1", text="Cover water", status="open", source="given", reason="dry")
            ],
            notices=[Notice(text="went back")],
            result=JobResult(
                status="completed",
                summary="Written.",
                confidence=0.9,
                notes="By rules.",
                unresolved=["S1: no water"],
            ),
        ),
        "started": at(0),
        "ended": at(60),
        "read": at(70),
        "link": "https://temporal.example/tea-1",
        "figures": Figures(
            phases=2,
            steps=2,
            model_calls=3,
            tool_calls=4,
            prompt_tokens=2003,
            completion_tokens=100,
            cached_tokens=1000,
            cost=0.5,
            rewinds=1,
            refusals=3,
        ),
        "phases": [phase(1, "strategic"), phase(2, undone=True, issue="wrong leaves")],
        "waits": [Wait(reason="paused", started=at(5), ended=at(8))],
        "steps": [bar(1, cost=0.25), bar(2, cached_tokens=1000, cost=0.25)],
        "refusals": [
            RefusalLine(
                kind="gate",
                by="phase gate",
                tool="todo_complete",
                count=3,
                reason="No list.",
                first_step=1,
                last_step=2,
            )
        ],
        "deliverables": [Deliverable(path="output/tea.md", problem="is empty")],
        "traces": [
            {
                "time": "12:00",
                "type": "violation",
                "source": "gate",
                "guard": "phase gate",
                "phase": 1,
                "step": 2,
                "event": {"what_happened": "No list.", "what_was_correct": "A list."},
            }
        ],
        "patterns": [
            Pattern(
                name="swinging_plans",
                title="Plans that swing",
                figure="1",
                found=True,
                meaning="Back and forth.",
                details=["gone, back: brew"],
            )
        ],
        "habits": [habit(3, 5, 0)],
        "remarks": ["Something is left out."],
    }
    return Report.model_validate(defaults | more)
