"""The feature loop: initializer, then for each feature coder and tester.

start       no feature list                  run initializer
loop        a feature is pending             run coder on it
coded       the handoff says completed       run tester on it
tested      the gate passes                  mark, next feature
not tested  attempts are left                coder again, forked, with the findings
not tested  attempts are used up             mark blocked with reasons, next feature
end         none is pending                  every feature is tested or blocked
"""

from protocol.agent_reports import SETUP, FeatureEntry
from protocol.project_record import ProjectRecord
from protocol.project_requests import ChildWork
from protocol.project_units import PROOF, EndedJob, Feature, RunningJob
from protocol.proof import AcceptedRun, Proof, proof_command_without_cd
from protocol.short_text import first_few, one_line
from workflows.rules import project_moves, project_units

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
Make the feature {id} of the project, in {folder}/:
{description}
It will be tested by another agent with these checks: {checks}{coverage}. Write the tests with it.
Leave the other features as they are, but where a finding is about them."""
TEST = """\
Test the feature {id}, which is in {folder}/:
{description}
Begin with a health check: does what is there build and start?{before}
Then run each of these checks: {checks}{coverage}. Change nothing that is in {folder}/; tests of
your own that show what is wrong, or that it works, go into new files beside its tests and are kept.
Write output/verdict.json: {{"health": "…", "checks": [{{"check": "unit", "passed": true, "detail":
"…"}}], "passed": true, "findings": []}}. `passed` is true only if every check passed; each finding
says what is wrong, where, and how to see it."""
ONCE_MORE = " See first whether what the test before this one found still holds."
CHANGED = "What the system saw change: {paths}."
RUN = "What the system ran itself on it for {check}: {outcome}."
CAUGHT = "Its coder said that it was done when it was not, and the system refused it: {why}"
TEST_CHANGES = (
    "Files of tests differ from before; see that no test in them asks for less:\n{changes}"
)
UNRESOLVED = "What its coder calls unresolved: {entries}."
PASSED_WITH = "{report}\nIts tester passed it, and found:\n{findings}"
MOST_TITLE = 80
MOST_PROOFS = 8
MOST_LINE = 200
"""Longest text about another feature, in characters."""
MOST_REFUSAL = 500
"""Longest refusal of a coder's claim that its tester reads, in characters."""
MOST_REPORT = 2_000
"""Longest report of the feature before, in characters: it says what the next coder should know."""
MOST_LINES = 40
"""Most other features that a coder is shown, the newest."""


def next_feature_moves(project: ProjectRecord) -> list[project_moves.Move]:
    """Return the next moves for this state."""
    if project.running:
        return [project_moves.WaitForJobs()]
    if not project.features:
        if project.planning_attempts < project.start.attempts:
            return [_assign_initializer(project)]
        return [project_moves.EndProject("failed")]
    feature = next((f for f in project.features if f.status == "in_progress"), None)
    feature = feature or next((f for f in project.features if f.status == "pending"), None)
    if feature is None:
        return [project_moves.EndProject("completed")]
    return [
        _assign_feature_tester(project, feature)
        if feature.turn == "tester"
        else _assign_feature_coder(project, feature)
    ]


def mark_feature_begun(project: ProjectRecord, move: project_moves.AssignJob) -> None:
    """Record that a job begins."""
    feature = _find_feature(project, move.unit)
    if feature is None:
        project.planning_attempts += 1
        return
    feature.status = "in_progress"
    if move.role == "coder":
        feature.attempts += 1
        feature.untested_attempts = 0


def settle_feature_job(
    project: ProjectRecord, run: RunningJob, ended: EndedJob, work: ChildWork | None
) -> str:
    """Apply a job's outcome; return the commit to merge, or None."""
    feature = _find_feature(project, run.unit)
    why = project_units.unit_work_problems(ended, work)
    if feature is None:
        project.findings = project_units.remaining_unit_findings(ended, why, project.findings)
        if work is None or why or work.features is None:
            return ""
        project.features = [
            _feature_from_report(project, report) for report in work.features.features
        ]
        project.planning_attempts, project.set_up_report = 0, work.report.strip()
        return work.commit
    if run.role == "tester":
        return _settle_test(project, feature, why, work)
    project_units.remember_unit_fork_point(feature, ended)
    if why or work is None:
        if work:
            feature.commit = work.commit
            feature.evidence = work.proofs[:MOST_PROOFS]
        findings = project_units.remaining_unit_findings(ended, why, feature.reasons)
        if work and work.given_up:
            # A second attempt would only say so again.
            project_units.block_project_unit(feature, findings)
        else:
            _retry_or_block_feature(project, feature, findings)
    else:
        feature.commit, feature.turn, feature.reasons = work.commit, "tester", []
        feature.coder_report, feature.test_changes = work.report.strip(), work.test_changes
        feature.changed = list(dict.fromkeys([*feature.changed, *work.changed]))[-MOST_LINES:]
        _keep_feature_evidence(feature, work)
    return ""


def mark_feature_merged(
    project: ProjectRecord, run: RunningJob, conflicts: list[str], commit: str
) -> None:
    """Apply the outcome of merging it."""
    feature = _find_feature(project, run.unit)
    if feature is None:
        if conflicts:
            project.features, project.findings = [], project_units.unit_conflict_findings(conflicts)
    elif conflicts:
        feature.tested, feature.commit = False, commit
        _retry_or_block_feature(project, feature, project_units.unit_conflict_findings(conflicts))
    else:
        feature.status, feature.reasons, feature.merged = "completed", [], commit


def _settle_test(
    project: ProjectRecord, feature: Feature, why: list[str], work: ChildWork | None
) -> str:
    verdict = work.verdict if work else None
    if why or work is None or verdict is None:
        feature.untested_attempts += 1
        if feature.untested_attempts >= project.start.attempts:
            project_units.block_project_unit(feature, ["It could not be tested.", *why])
        return ""
    feature.commit = work.commit or feature.commit
    _keep_feature_evidence(feature, work)
    if not verdict.passed:
        findings = verdict.findings or [
            c.detail for c in verdict.checks if not c.passed and c.detail
        ]
        feature.test_findings = findings or ["The tester did not pass it and gave no finding."]
        feature.written_tests = work.tests[:MOST_LINES]
        _retry_or_block_feature(project, feature, feature.test_findings)
        return ""
    feature.tested, feature.written_tests = True, []
    feature.passed_findings = verdict.findings
    return feature.commit


def _keep_feature_evidence(feature: Feature, work: ChildWork) -> None:
    """Record the commands that the system ran, and the number of tests, which later runs must not
    fall below.
    """
    if not work.proofs:
        return
    feature.evidence = work.proofs[:MOST_PROOFS]
    least = {each.command: each for each in feature.test_minimums}
    for run in work.proofs:
        if run.tests is None or run.check not in feature.tests:
            continue
        accepted = _accept_feature_run(feature, run)
        before = least.get(run.ran)
        if before is None or before.tests <= accepted.tests:
            least[run.ran] = accepted
    feature.test_minimums = list(least.values())


def _accept_feature_run(feature: Feature, run: Proof) -> AcceptedRun:
    command = feature.tests[run.check]
    return AcceptedRun(
        command=run.ran,
        tests=run.tests or 0,
        skipped=run.skipped,
        seconds=command.seconds,
        report=command.report,
        by_person=command.by_person,
        feature=feature.id,
    )


def accepted_feature_runs(project: ProjectRecord, feature: Feature) -> list[AcceptedRun]:
    """Return the commands of accepted features, and this one's so far."""
    accepted: dict[str, AcceptedRun] = {}
    for other in project.features:
        if other.status == "completed":
            for run in other.evidence:
                if run.tests is not None and run.check in other.tests:
                    accepted[run.ran] = _accept_feature_run(other, run)
    for least in feature.test_minimums:
        before = accepted.get(least.command)
        if before is None or before.tests <= least.tests:
            accepted[least.command] = least
    return list(accepted.values())


def _retry_or_block_feature(project: ProjectRecord, feature: Feature, why: list[str]) -> None:
    """Send the feature back to the coder, or block it."""
    feature.turn, feature.reasons = "coder", why
    if feature.attempts >= project.start.attempts:
        project_units.block_project_unit(feature, why)


def _assign_initializer(project: ProjectRecord) -> project_moves.AssignJob:
    fixed = project.start.tests
    commands = "; ".join(f"{check}: `{each.command}`" for check, each in fixed.items())
    tests = "" if {"unit", "api", "db"} <= fixed.keys() else COMMANDS.format()
    tests += SETTLED.format(commands=commands) if fixed else ""
    return project_moves.assign_project_job(
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


def _assign_feature_coder(project: ProjectRecord, feature: Feature) -> project_moves.AssignJob:
    sent_back = bool(feature.reasons) and feature.reasons == feature.test_findings
    return project_moves.assign_project_job(
        project,
        feature.id,
        "coder",
        _feature_task_text(CODE, project, feature),
        commit=feature.commit,
        # A fork already has this in its conversation.
        results=[] if feature.job else _earlier_features(project),
        findings=feature.reasons,
        says_all=sent_back,
        written_tests=feature.written_tests,
        again=feature,
        tests=feature.tests,
        accepted=accepted_feature_runs(project, feature),
        coverage=feature.coverage,
        from_agent=project.start.agent("tester") if sent_back else "project",
        next_agent=project.start.agent("tester"),
    )


def _earlier_features(project: ProjectRecord) -> list[str]:
    """Return a line on each accepted or blocked feature, and on the set-up."""
    lines = []
    last = next((each for each in reversed(project.features) if each.status == "completed"), None)
    for feature in project.features:
        if feature.status == "completed":
            most = MOST_REPORT if feature is last else MOST_LINE
            line = f"{feature.id} (accepted): {one_line(feature.coder_report, most)}"
            if feature.passed_findings:
                found = "\n".join(f"- {each}" for each in feature.passed_findings)
                line = PASSED_WITH.format(report=line, findings=found)
            lines.append(line)
        elif feature.status == "blocked":
            why = one_line(" ".join(feature.reasons), MOST_LINE)
            nothing = f"{project.start.product}/ has nothing of it"
            lines.append(f"{feature.id} (blocked, and {nothing}): {why}")
    set_up = [f"set-up (accepted): {project.set_up_report}"] if project.set_up_report else []
    return [*set_up, *lines[-MOST_LINES:]]


def _assign_feature_tester(project: ProjectRecord, feature: Feature) -> project_moves.AssignJob:
    tools = {**PROOF, **project.start.proof}
    changed = [f"{project.start.product}/{path}" for path in feature.changed]
    disproved = feature.history[-1].disproved if feature.history else []
    unresolved = project.left_open.get(f"{feature.id}-coder")
    return project_moves.assign_project_job(
        project,
        feature.id,
        "tester",
        _feature_task_text(TEST, project, feature),
        commit=feature.commit,
        # Part of the coder's report, which its instructions address to the tester.
        results=[
            *([feature.coder_report] if feature.coder_report else []),
            *([CHANGED.format(paths=first_few(changed, MOST_LINES))] if changed else []),
            *([UNRESOLVED.format(entries="; ".join(unresolved))] if unresolved else []),
            *([TEST_CHANGES.format(changes=feature.test_changes)] * bool(feature.test_changes)),
            *(CAUGHT.format(why=one_line(why, MOST_REFUSAL)) for why in disproved),
            *(RUN.format(check=run.check, outcome=run.outcome) for run in feature.evidence),
        ],
        findings=feature.test_findings,
        report="verdict",
        checks=feature.checks,
        tests=feature.tests,
        accepted=[
            each
            for each in accepted_feature_runs(project, feature)
            if each.command in {command.command for command in feature.tests.values()}
        ],
        proof={
            check: tools.get(check, []) for check in feature.checks if check not in feature.tests
        },
        coverage=feature.coverage,
        from_agent=project.start.agent("coder"),
    )


def _feature_task_text(text: str, project: ProjectRecord, feature: Feature) -> str:
    coverage = f", with a coverage of at least {feature.coverage:g} %" if feature.coverage else ""
    return text.format(
        id=feature.id,
        folder=project.start.product,
        description=feature.task,
        checks=", ".join(feature.checks),
        coverage=coverage,
        before=ONCE_MORE if feature.test_findings else "",
    )


def _feature_from_report(project: ProjectRecord, entry: FeatureEntry) -> Feature:
    text, start = entry.description, project.start
    named = {**entry.tests, **start.tests}
    tests = {
        check: named[check].model_copy(
            update={
                "command": proof_command_without_cd(named[check].command, start.product),
                # An agent cannot settle options, nor accept an exit code.
                "by_person": check in start.tests,
                "exit_code_only": check in start.tests and start.tests[check].exit_code_only,
            }
        )
        for check in entry.checks
        if check in named
    }
    return Feature(
        id=entry.id,
        title=text if len(text) <= MOST_TITLE else f"{text[: MOST_TITLE - 1]}…",
        task=entry.description,
        items=entry.items,
        checks=entry.checks,
        tests=tests,
        coverage=entry.coverage,
    )


def _find_feature(project: ProjectRecord, unit: str) -> Feature | None:
    return next((feature for feature in project.features if feature.id == unit), None)
