"""What the jobs of a project mean for its units: their findings, attempts and unresolved work."""

from collections.abc import Sequence

from protocol.commit_message import SUBJECT, commit_message
from protocol.handoffs import ACCEPTED, YOURS
from protocol.project_record import ProjectRecord
from protocol.project_requests import ChildWork
from protocol.project_start import FORM_SPECS
from protocol.project_units import Attempt, EndedJob, Feature, RunningJob, Stage, Unit
from protocol.short_text import as_sentence, shorten_to_both_ends, shorten_to_end, shorten_to_start

COLLISION = "The work collides with what others have had accepted meanwhile."
MOST_REASON = 600
"""Most characters kept of one reason of a settled unit."""
MOST_REASONS = 6000
"""Most characters of all reasons of one attempt."""
MOST_ATTEMPTS = 20
MOST_LEFT_BYTES = 300_000
"""Most bytes kept of what a project's jobs left open."""


def unit_work_problems(ended: EndedJob, work: ChildWork | None) -> list[str]:
    """Return why a job's work cannot be accepted; empty if it can."""
    if ended.status == "late":
        return [f"The deadline of job {ended.job} passed."]
    if ended.status != "completed" or work is None:
        return [f"Job {ended.job} ended as {ended.status}: {ended.reason or 'no reason given'}"]
    return work.problems


def remaining_unit_findings(ended: EndedJob, why: list[str], before: list[str]) -> list[str]:
    """Findings for the next attempt; earlier ones stay if this job did not complete."""
    return why if ended.status == "completed" else [*why, *before]


def remember_unit_fork_point(unit: Unit, ended: EndedJob) -> None:
    """Keep the job that a later one can be forked from: at its end if it completed."""
    if ended.status == "completed":
        unit.job, unit.phases = ended.job, 0
    elif ended.phases:
        unit.job, unit.phases = ended.job, ended.phases


def keep_unresolved_unit_work(
    project: ProjectRecord, run: RunningJob, ended: EndedJob, work: ChildWork
) -> None:
    """Keep what an accepted job leaves unresolved, replacing that of its role's previous job.

    Items given to a group are left out: the project's scope tracks them.
    """
    given_items = {f"S{place + 1}" for place in work.left_items} if project.groups else set[str]()
    named = [
        f"{run.job}: {entry}"
        for entry in ended.unresolved
        if entry.partition(" ")[0].rstrip(":,.") not in given_items
    ]
    key = f"{run.unit}-{run.role}"
    unresolved = {other: entries for other, entries in project.left_open.items() if other != key}
    if named:
        unresolved[key] = named
    # Keep the newest: the record and the result are each sent whole.
    room = MOST_LEFT_BYTES
    newest: list[tuple[str, list[str]]] = []
    for other, references in reversed(unresolved.items()):
        room -= sum(len(text.encode()) for text in references)
        if room < 0:
            break
        newest.append((other, references))
    project.left_open = dict(reversed(newest))


def block_project_unit(unit: Unit, reasons: Sequence[str]) -> None:
    unit.status = "blocked"
    unit.reasons = list(reasons)


def shorten_settled_units(units: Sequence[Unit]) -> None:
    """Shorten settled units, so that a record of many units stays small."""
    for unit in units:
        if not unit.settled:
            continue
        unit.reasons = [shorten_to_both_ends(reason, MOST_REASON) for reason in unit.reasons]
        if isinstance(unit, Feature):
            unit.coder_report = shorten_to_start(unit.coder_report, MOST_REASON)
            unit.test_findings, unit.written_tests, unit.test_minimums = [], [], []
            unit.test_changes = ""
            for run in unit.evidence:
                end = shorten_to_end(run.end, MOST_REASON)
                run.cut, run.end = run.cut or end != run.end, end


def project_job_outcome(ended: EndedJob, work: ChildWork | None, why: Sequence[str]) -> str:
    """Return what came of a job, for people: `accepted`, `did not pass`, `gave up`, `sent back`,
    `failed` ….

    A tester's work is accepted also where its verdict is that the feature did not pass.
    """
    if why and work and work.given_up:
        return "gave up"
    if why:
        return "sent back" if ended.status == "completed" else ended.status
    if work and work.verdict and not work.verdict.passed:
        return "did not pass"
    return "accepted"


def note_unit_attempt(
    project: ProjectRecord,
    run: RunningJob,
    ended: EndedJob,
    work: ChildWork | None,
    why: Sequence[str],
) -> None:
    """Record a job's outcome on its unit, to show why it took several."""
    unit = project.find_unit(run.unit)
    if unit is None:
        return
    findings = work.verdict.findings if not why and work and work.verdict else why
    most = min(MOST_REASON, MOST_REASONS // max(1, len(findings)))
    attempt = Attempt(
        job=run.job,
        role=run.role,
        outcome=project_job_outcome(ended, work, why),
        said=shorten_to_start(work.report.strip(), MOST_REASON) if work else "",
        why=[shorten_to_both_ends(reason, most) for reason in findings],
        disproved=run.last_report.disproved,
        commit=work.commit if work else "",
        branch=work.branch if work else "",
        model_calls=ended.usage.model_calls,
        tokens=ended.usage.prompt_tokens + ended.usage.completion_tokens,
        cost=ended.usage.cost,
    )
    unit.history = [*unit.history, attempt][-MOST_ATTEMPTS:]


def unit_merge_message(project: ProjectRecord, run: RunningJob, work: ChildWork) -> str:
    """Return the commit message of accepted work: what it is, what each attempt at it did, by whom,
    how proved.
    """
    unit, said, role = project.find_unit(run.unit), work.report.strip(), run.role
    trailers: dict[str, str | Sequence[str]] = {"Job": run.job}
    title = unit.title if unit else "Set the project up"
    if isinstance(unit, Feature):
        # The author's report says what was done; the tester has proved it.
        title, said, role = unit.task, unit.coder_report or said, "coder"
        trailers |= {"Job": unit.job or run.job, "Feature": unit.id}
        trailers |= {"Tested-by": run.job, "Evidence": [each.line for each in unit.evidence]}
    elif unit:
        trailers[FORM_SPECS[project.start.form].unit.capitalize()] = unit.id
    attempts = [each for each in unit.history if each.role == role] if unit else []
    earlier = [each.said for each in attempts if each.said and each.job != trailers["Job"]]
    statements = [*earlier, said] if said else earlier
    if earlier:
        statements = [f"Attempt {number}: {text}" for number, text in enumerate(statements, 1)]
    if isinstance(unit, Stage) and title == run.handoff.to_agent:
        title = ""  # its task has no words
    subject, parts = said.partition("\n")[0], [as_sentence(title), *statements]
    is_long = len(title.partition(". ")[0].partition("\n")[0]) > SUBJECT
    if isinstance(unit, Feature) and is_long and 0 < len(subject) <= SUBJECT:
        # The description would be cut.
        told = [] if said == subject and not earlier else statements
        parts = [as_sentence(subject), as_sentence(title), *told]
    return commit_message("\n\n".join(filter(None, parts)), trailers)


def is_unit_conflict(findings: Sequence[str]) -> bool:
    """Return whether these findings are those of `unit_conflict_findings`."""
    return any(finding.startswith(COLLISION) for finding in findings)


def unit_conflict_findings(conflicts: Sequence[str]) -> list[str]:
    """Return the findings for the job that has to resolve a merge conflict."""
    return [
        f"{COLLISION} A text has both versions, between the marks `<<<<<<< {ACCEPTED}` and "
        f"`>>>>>>> {YOURS}`; of all else it says here which version is where: "
        f"{', '.join(conflicts[:20])}. Keep what both sides mean, and take out the marks and the "
        "files that were put beside others."
    ]
