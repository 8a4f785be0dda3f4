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
from protocol.proof import Accepted, Proof, in_repository
from protocol.text import first_few, one_line
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
    said,
    still_wrong,
)

SET_UP = """\
Set the project up and break its instructions down into features.
{folder}/ is the project's repository: make what every feature will need there (layout, build,
tests that run). Then write output/features.json: {{"features": [{{"id": "login", "description":
"…", "checks": ["unit"], "tests": {{"unit": "python3 -m pytest -q tests"}}, "items": []}}]}}. An id
is lower-case letters, digits, - and _. `checks` names how the feature is tested: unit, api,
browser, db; `coverage` may set a least percentage.
{tests}Each feature is small enough for one piece of work and can be tested by itself; order them so
that each builds on those before it."""
COMMANDS = """\
`tests` names the command that proves each check but browser. The system runs it itself, at the top
of the repository: it is the test runner with whole files or folders of tests, best one for all
features, and counts its tests; {{"command": "…", "min_tests": 3}} asks for that many.
"""
SETTLED = "These commands are settled, leave them out of `tests`: {commands}.\n"
CODE = """\
Make the feature {id} of the project, in {folder}/: {description}
It will be tested by another agent with these checks: {checks}{coverage}. Write the tests with it.
Leave the other features as they are."""
TEST = """\
Test the feature {id}, which is in {folder}/: {description}
Begin with a health check: does what is there build and start?{before}
Then run each of these checks: {checks}{coverage}. Change nothing that is in {folder}/; tests of
your own that show what is wrong, or that it works, go into new files beside its tests and are kept.
Write output/verdict.json: {{"health": "…", "checks": [{{"check": "unit", "passed": true, "detail":
"…"}}], "passed": true, "findings": []}}. `passed` is true only if every check passed; each finding
says what is wrong, where, and how to see it."""
ONCE_MORE = " See first whether what the test before this one found still holds."
SHOWN_BY = (
    "The tests that the tester wrote are in {folder}/{paths}. Leave them there: they are run."
)
RUN = "What the system ran itself on it: {run}."
MOST_TITLE = 80
MOST_PROOFS = 8
MOST_LINE = 200
"""Characters of what is said of another feature."""
MOST_LINES = 40
"""Features that a coder is told of, the newest."""


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
        project.features = [_from_report(project, report) for report in work.features.features]
        project.planning = 0
        return work.commit
    if run.role == "tester":
        return _tested(project, feature, why, work)
    remember(feature, ended)
    if why or work is None:
        if work:
            feature.commit = work.commit
            feature.evidence = work.proofs[:MOST_PROOFS]
        _again(project, feature, still_wrong(ended, why, feature.reasons))
    else:
        feature.commit, feature.turn, feature.reasons = work.commit, "tester", []
        feature.said = said(work)
        _prove(feature, work)
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
        feature.status, feature.reasons, feature.merged = "completed", [], commit


def _tested(project: ProjectRecord, feature: Feature, why: list[str], work: Work | None) -> str:
    verdict = work.verdict if work else None
    if why or work is None or verdict is None:
        feature.doubts += 1
        if feature.doubts >= project.start.attempts:
            block(feature, ["It could not be tested.", *why])
        return ""
    feature.commit = work.commit or feature.commit
    _prove(feature, work)
    if not verdict.passed:
        found = verdict.findings or [c.detail for c in verdict.checks if not c.passed and c.detail]
        feature.found = found or ["The tester did not pass it and gave no finding."]
        shown_by = SHOWN_BY.format(
            folder=project.start.product, paths=first_few(work.tests, MOST_LINES)
        )
        _again(project, feature, [*feature.found, *([shown_by] if work.tests else [])])
        return ""
    feature.tested = True
    return feature.commit


def _prove(feature: Feature, work: Work) -> None:
    """Keep what the system ran, and how many tests that were: no later run may have fewer."""
    if not work.proofs:
        return
    feature.evidence = work.proofs[:MOST_PROOFS]
    least = {each.command: each for each in feature.least}
    for run in work.proofs:
        if run.tests is None or run.check not in feature.tests:
            continue
        made = _accepted(feature, run)
        before = least.get(run.ran)
        if before is None or before.tests <= made.tests:
            least[run.ran] = made
    feature.least = list(least.values())


def _accepted(feature: Feature, run: Proof) -> Accepted:
    command = feature.tests[run.check]
    return Accepted(
        command=run.ran,
        tests=run.tests or 0,
        skipped=run.skipped,
        seconds=command.seconds,
        report=command.report,
        feature=feature.id,
    )


def proved_before(project: ProjectRecord, feature: Feature) -> list[Accepted]:
    """What the commands of accepted features ran, and those of this one so far."""
    held: dict[str, Accepted] = {}
    for other in project.features:
        if other.status == "completed":
            for run in other.evidence:
                if run.tests is not None and run.check in other.tests:
                    held[run.ran] = _accepted(other, run)
    for least in feature.least:
        before = held.get(least.command)
        if before is None or before.tests <= least.tests:
            held[least.command] = least
    return list(held.values())


def _again(project: ProjectRecord, feature: Feature, why: list[str]) -> None:
    """Back to the coder, or no further."""
    feature.turn, feature.reasons = "coder", why
    if feature.attempts >= project.start.attempts:
        block(feature, why)


def _initializer(project: ProjectRecord) -> Assign:
    fixed = project.start.tests
    commands = "; ".join(f"{check}: `{each.command}`" for check, each in fixed.items())
    tests = "" if {"unit", "api", "db"} <= fixed.keys() else COMMANDS.format()
    tests += SETTLED.format(commands=commands) if fixed else ""
    return assign(
        project,
        SETUP,
        "initializer",
        SET_UP.format(folder=project.start.product, tests=tests),
        findings=project.findings,
        report="features",
        tests=fixed,
        proof={**PROOF, **project.start.proof},
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
        results=[] if feature.job else _before(project),
        findings=feature.reasons,
        again=feature,
        tests=feature.tests,
        accepted=proved_before(project, feature),
        coverage=feature.coverage,
        from_agent=project.start.agent("tester" if feature.attempts else "initializer"),
        next_agent=project.start.agent("tester"),
    )


def _before(project: ProjectRecord) -> list[str]:
    """A line on each feature that is accepted, or blocked; and on the set-up."""
    lines = []
    for feature in project.features:
        if feature.status == "completed":
            lines.append(f"{feature.id} (accepted): {one_line(feature.said, MOST_LINE)}")
        elif feature.status == "blocked":
            why = one_line(" ".join(feature.reasons), MOST_LINE)
            nothing = f"{project.start.product}/ has nothing of it"
            lines.append(f"{feature.id} (blocked, and {nothing}): {why}")
    set_up = [
        f"set-up (accepted): {one_line(told.summary, MOST_LINE)}"
        for told in project.told
        if told.unit == SETUP and told.status == "accepted"
    ]
    return [*set_up[-1:], *lines[-MOST_LINES:]]


def _tester(project: ProjectRecord, feature: Feature) -> Assign:
    tools = {**PROOF, **project.start.proof}
    return assign(
        project,
        feature.id,
        "tester",
        _told(TEST, project, feature),
        commit=feature.commit,
        # What its coder said, who is told to say what the tester should know.
        results=[
            *([feature.said] if feature.said else []),
            *(RUN.format(run=run.line) for run in feature.evidence),
        ],
        findings=feature.found,
        report="verdict",
        checks=feature.checks,
        tests=feature.tests,
        accepted=[
            each
            for each in proved_before(project, feature)
            if each.command in {command.command for command in feature.tests.values()}
        ],
        proof={
            check: tools.get(check, []) for check in feature.checks if check not in feature.tests
        },
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
        before=ONCE_MORE if feature.found else "",
    )


def _from_report(project: ProjectRecord, found: FoundFeature) -> Feature:
    text, start = found.description, project.start
    named = {**found.tests, **start.tests}
    tests = {
        check: named[check].model_copy(
            update={"command": in_repository(named[check].command, start.product)}
        )
        for check in found.checks
        if check in named
    }
    return Feature(
        id=found.id,
        title=text if len(text) <= MOST_TITLE else f"{text[: MOST_TITLE - 1]}…",
        task=found.description,
        items=found.items,
        checks=found.checks,
        tests=tests,
        coverage=found.coverage,
    )


def _feature(project: ProjectRecord, unit: str) -> Feature | None:
    return next((feature for feature in project.features if feature.id == unit), None)
