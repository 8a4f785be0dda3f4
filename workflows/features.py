"""The feature loop: initializer, then for each feature coder and tester. Pure functions.

start       no feature list                  run initializer
loop        a feature is pending             run coder on it
coded       the handoff says completed       run tester on it
tested      the gate passes                  mark, next feature
not tested  attempts are left                coder again, forked, with the findings
not tested  attempts are used up             mark blocked with reasons, next feature
end         none is pending                  every feature is tested or blocked
"""

from __future__ import annotations

from protocol.handoffs import SETUP, FoundFeature
from protocol.project import PROOF, Ended, Feature, ProjectRecord, Running
from protocol.project_requests import Work
from workflows.moves import (
    Assign,
    End,
    Move,
    Wait,
    assign,
    block,
    collision,
    problems,
    remember,
    still_wrong,
)

SET_UP = """\
Set the project up and break its instructions down into features.
{folder}/ is the project's repository: make what every feature will need there (layout, build,
tests that run). Then write output/features.json: {{"features": [{{"id": "login", "description":
"…", "checks": ["unit"], "items": []}}]}}. An id is lower-case letters, digits, - and _. `checks`
names how the feature is tested: unit, api, browser, db; `coverage` may set a least percentage. Each
feature is small enough for one piece of work and can be tested by itself; order them so that each
builds on those before it."""
CODE = """\
Make the feature {id} of the project, in {folder}/: {description}
It will be tested by another agent with these checks: {checks}{coverage}. Write the tests with it.
Leave the other features as they are, and {folder}/feature-list.json as well: the system
keeps it."""
TEST = """\
Test the feature {id}, which is in {folder}/: {description}
Begin with a health check: does what is there build and start? Then run each of these checks:
{checks}{coverage}. Change nothing in {folder}/. Write output/verdict.json: {{"health": "…",
"checks": [{{"check": "unit", "passed": true, "detail": "…"}}], "passed": true, "findings": []}}.
`passed` is true only if every check passed; each finding says what is wrong, where, and how to see
it."""
MOST_TITLE = 80
MOST_BLOCKED = 5
"""Blocked features that the next coder is told of."""


def next_moves(project: ProjectRecord) -> list[Move]:
    """What the state asks for."""
    if project.running:
        return [Wait()]
    if not project.features:
        if project.planning < project.start.attempts:
            return [_initializer(project)]
        return [End("failed")]
    feature = next((f for f in project.features if f.status == "in_progress"), None)
    feature = feature or next((f for f in project.features if f.status == "pending"), None)
    if feature is None:
        return [End("completed")]
    return [_tester(project, feature) if feature.turn == "tester" else _coder(project, feature)]


def begun(project: ProjectRecord, move: Assign) -> None:
    """Mark what a job is begun for."""
    feature = _feature(project, move.unit)
    if feature is None:
        project.planning += 1
        return
    feature.status = "in_progress"
    if move.role == "coder":
        feature.attempts += 1
        feature.doubts = 0


def settle(project: ProjectRecord, run: Running, ended: Ended, work: Work | None) -> str:
    """Take in what came of a job; the commit that is to be merged, or nothing."""
    feature = _feature(project, run.unit)
    why = problems(ended, work)
    if feature is None:
        project.findings = still_wrong(ended, why, project.findings)
        if work is None or why or work.features is None:
            return ""
        project.features = [_from_report(report) for report in work.features.features]
        project.planning = 0
        return work.commit
    if run.role == "tester":
        return _tested(project, feature, why, work)
    remember(feature, ended)
    if why or work is None:
        if work:
            feature.commit = work.commit
        _again(project, feature, still_wrong(ended, why, feature.reasons))
    else:
        feature.commit, feature.turn, feature.reasons = work.commit, "tester", []
    return ""


def merged(project: ProjectRecord, run: Running, conflicts: list[str], commit: str) -> None:
    """Take in what came of merging it."""
    feature = _feature(project, run.unit)
    if feature is None:
        if conflicts:
            project.features, project.findings = [], collision(conflicts)
    elif conflicts:
        feature.tested, feature.commit = False, commit
        _again(project, feature, collision(conflicts))
    else:
        feature.status, feature.reasons = "completed", []


def _tested(project: ProjectRecord, feature: Feature, why: list[str], work: Work | None) -> str:
    verdict = work.verdict if work else None
    if why or work is None or verdict is None:
        feature.doubts += 1
        if feature.doubts >= project.start.attempts:
            block(feature, ["It could not be tested.", *why])
        return ""
    if not verdict.passed:
        found = verdict.findings or [c.detail for c in verdict.checks if not c.passed and c.detail]
        _again(project, feature, found or ["The tester did not pass it and gave no finding."])
        return ""
    feature.tested, feature.evidence = True, [line[:200] for line in work.evidence[:8]]
    return feature.commit


def _again(project: ProjectRecord, feature: Feature, why: list[str]) -> None:
    """Back to the coder, or no further."""
    feature.turn, feature.reasons = "coder", why
    if feature.attempts >= project.start.attempts:
        block(feature, why)


def _initializer(project: ProjectRecord) -> Assign:
    task = SET_UP.format(folder=project.start.product)
    return assign(
        project,
        SETUP,
        "initializer",
        task,
        results=project.findings,
        report="features",
        next_agent=project.start.agent("coder"),
        documents=project.start.documents,
    )


def _coder(project: ProjectRecord, feature: Feature) -> Assign:
    return assign(
        project,
        feature.id,
        "coder",
        _told(CODE, project, feature),
        commit=feature.commit,
        # A fork has been told that already.
        results=[*feature.reasons, *([] if feature.job else _before(project))],
        again=feature,
        from_agent=project.start.agent("tester" if feature.attempts else "initializer"),
        next_agent=project.start.agent("tester"),
    )


def _before(project: ProjectRecord) -> list[str]:
    """What was said of what is in the product; and of what is blocked, that it is not."""
    blocked = [feature for feature in project.features if feature.status == "blocked"]
    jobs = tuple(f"{feature.id}-{role}-" for feature in blocked for role in ("coder", "tester"))
    return [
        *(text for text in project.results if not text.startswith(jobs)),
        *(
            f"The feature {feature.id} is blocked, and {project.start.product}/ has nothing of it: "
            f"{' '.join(feature.reasons)[:500]}"
            for feature in blocked[-MOST_BLOCKED:]
        ),
    ]


def _tester(project: ProjectRecord, feature: Feature) -> Assign:
    return assign(
        project,
        feature.id,
        "tester",
        _told(TEST, project, feature),
        commit=feature.commit,
        # What its coder said, who is told to say what the tester should know.
        results=project.results[-1:],
        report="verdict",
        checks=feature.checks,
        proof={check: {**PROOF, **project.start.proof}[check] for check in feature.checks},
        coverage=feature.coverage,
        from_agent=project.start.agent("coder"),
    )


def _told(text: str, project: ProjectRecord, feature: Feature) -> str:
    coverage = f", with a coverage of at least {feature.coverage:g} %" if feature.coverage else ""
    return text.format(
        id=feature.id,
        folder=project.start.product,
        description=feature.task,
        checks=", ".join(feature.checks),
        coverage=coverage,
    )


def _from_report(found: FoundFeature) -> Feature:
    text = found.description
    return Feature(
        id=found.id,
        title=text if len(text) <= MOST_TITLE else f"{text[: MOST_TITLE - 1]}…",
        task=found.description,
        items=found.items,
        checks=found.checks,
        coverage=found.coverage,
    )


def _feature(project: ProjectRecord, unit: str) -> Feature | None:
    return next((feature for feature in project.features if feature.id == unit), None)
