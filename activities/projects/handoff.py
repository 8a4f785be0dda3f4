"""What a job of a project is handed: its instructions, and the files in its workspace."""

from activities.checkpoints import Root
from activities.job.done_when import unmet_condition_reason
from activities.job.remarks import AMENDED
from activities.job.snapshot import Snapshot
from activities.projects.agents_md import read_agents_md
from activities.projects.merge_conflicts import list_marked_passages
from activities.projects.project_remote import open_linked_remote_project
from activities.projects.project_repository import ProjectRepository
from config.schema.agent import ConfigError
from protocol.agent_reports import REPORT_FILES
from protocol.handoffs import SAME_TASK, Handoff, ProjectLink
from protocol.project_start import FORM_SPECS
from protocol.project_units import BRIEF
from protocol.repository_link import RepositoryLink
from protocol.short_text import first_few, indent_list_entry, shorten_to_start

BRIEF_CHARACTERS = 20_000
FINDINGS_CHARACTERS = 12_000
RESULT_CHARACTERS = 8_000
"""Most characters of one result of an earlier job, such as an initializer's whole summary."""
FINDINGS_HEADING = "## What was found wrong with this very work"
TESTED_HEADING = "## What the test before this one found"
CONFLICTS_HEADING = "## Where both versions are"
CONFLICTS_CHARACTERS = 6_000
FINDINGS = "documents/findings.md"
WHOLE_BRIEF = f"documents/{BRIEF}"
ON_WORK = (
    "It runs each at the top of {folder}/ in a fresh copy of what you leave there when you call "
    "job_complete, also in the reply with your last edits, and takes nothing over that does not "
    "pass: what fails comes back to you with its output. If the feature cannot be made, say so in "
    "`unresolved`: `{unit}: …` with the reason."
)
ON_VERDICT = (
    "When you call job_complete with a verdict that says `passed`, it runs each at the top of "
    "{folder}/ in a fresh copy, also with the tests that you wrote; if one fails, it cannot pass."
)
WRITTEN_TESTS = (
    "The tests that the tester wrote to show it are {paths}. Leave them: they are run as they "
    "are. One that is wrong is named in `unresolved`, with the reason."
)
MOST_TESTS = 40


def render_handoff(root: Root, link: ProjectLink, *, first: Snapshot | None = None) -> str:
    """Render a handoff as the receiver's instructions.

    Args:
        first: The job that the receiver was forked from, whose instructions it has already, with
            the project's brief. Parts of that job's handoff are left out, unless an amendment may
            say otherwise, or a person has edited them. The findings never are.
    """
    known: list[str] = []
    if first and first.link and AMENDED not in (had := first.read_text("instructions.md")):
        known = [part for part in _handoff_parts(first.link) if part in had]
    task, *others = _handoff_parts(link)
    parts = [
        SAME_TASK if task in known else task,
        *(each for each in others if each.startswith(FINDINGS_HEADING) or each not in known),
    ]
    repository = open_linked_remote_project(root, link)
    if passages := _conflict_passages(repository, link):
        parts.append(f"{CONFLICTS_HEADING}\n\n{passages}")
    if first:
        return "\n\n".join(parts)
    brief = _handoff_project_brief(repository, link.handoff)
    if len(brief) > BRIEF_CHARACTERS:
        brief = f"{shorten_to_start(brief, BRIEF_CHARACTERS)}\nAll of it is in {WHOLE_BRIEF}."
    return "\n\n".join([*parts, brief])


def _handoff_parts(link: ProjectLink) -> list[str]:
    """Return the parts of a handoff: the task, then each with its heading."""
    handoff = link.handoff
    parts = [handoff.task.strip()]
    if handoff.inputs.findings:
        text = _number_handoff_findings(handoff.inputs.findings)
        if len(text) > FINDINGS_CHARACTERS:
            text = f"{shorten_to_start(text, FINDINGS_CHARACTERS)}\nAll of it is in {FINDINGS}."
        heading = TESTED_HEADING if handoff.report == "verdict" else FINDINGS_HEADING
        parts.append(f"{heading}\n\n{text}")
    if handoff.inputs.written_tests:
        paths = [f"{link.folder}/{path}" for path in handoff.inputs.written_tests]
        parts.append(WRITTEN_TESTS.format(paths=first_few(paths, MOST_TESTS)))
    if handoff.inputs.results:
        lines = [
            f"- {shorten_to_start(indent_list_entry(text), RESULT_CHARACTERS)}"
            for text in handoff.inputs.results
        ]
        parts.append("## What came before\n\n" + "\n".join(lines))
    if handoff.tests and handoff.report != "features":
        lines = [f"- {check}: `{each.command}`" for check, each in handoff.tests.items()]
        text = ON_VERDICT if handoff.report == "verdict" else ON_WORK
        lines += ["", text.format(folder=link.folder, unit=handoff.unit)]
        parts.append("## What the system runs itself\n\n" + "\n".join(lines))
    if handoff.postcondition or handoff.success:
        lines = [f"- {condition.line}" for condition in handoff.postcondition]
        lines += [f"- {text}" for text in handoff.success]
        parts.append("## When it is done\n\n" + "\n".join(lines))
    parts.append(
        "## The project\n\n"
        f"You are one of several agents, each at its own part. {link.folder}/ holds the project's "
        f"files as you were handed them; what you leave there is your work. In your summary say "
        f"which files changed, what was checked, what was found and what comes next, in at most "
        f"{link.summary_tokens:,} tokens."
    )
    return parts


def _conflict_passages(repository: ProjectRepository, link: ProjectLink) -> str:
    """Return the conflicts that the job is to resolve as `read_file` would show them."""
    commit = repository.get_commit(link.handoff.inputs.commit)
    text = "\n\n".join(
        f"{link.folder}/{passage}" for passage in list_marked_passages(repository.git, commit)
    )
    if len(text) <= CONFLICTS_CHARACTERS:
        return text
    return f"{shorten_to_start(text, CONFLICTS_CHARACTERS)}\nThe files show all of it."


def _handoff_project_brief(repository: ProjectRepository, handoff: Handoff) -> str:
    """Return the project's instructions."""
    if not handoff.inputs.state:
        return ""
    return (repository.read_file(handoff.inputs.state, BRIEF) or b"").decode(errors="replace")


def _number_handoff_findings(findings: list[str]) -> str:
    """Render findings verbatim, each under its own heading."""
    return "\n\n".join(f"### Finding {n}\n\n{text}" for n, text in enumerate(findings, 1))


def prepare_handoff_workspace(root: Root, snapshot: Snapshot, link: ProjectLink) -> None:
    """Put the project's files into the workspace and check the precondition.

    Raises:
        ConfigError: The precondition does not hold, so the job does not begin.
    """
    repository, inputs = open_linked_remote_project(root, link), link.handoff.inputs
    origin = repository.origin
    if origin is not None:
        snapshot.borrow_objects(repository.path)
        tree = repository.as_folder(snapshot.files.store, origin.commit).hex()
        # Jobs before may have written more of it, such as the one that set the project up.
        handed = repository.get_commit(inputs.commit).tree
        guidance, _ = read_agents_md(handed, origin.start.subfolder)
        origin = origin.model_copy(update={"guidance": guidance})
        snapshot.repository = RepositoryLink(
            owner=link.id, folder=link.folder, tree=tree, commit=origin.commit, origin=origin
        )
    files = repository.put_into(snapshot.files, inputs.commit, link.folder)
    for path in (*REPORT_FILES.values(), FINDINGS):
        # Delete the answers of an earlier job.
        if files.entry(path) is not None:
            files = files.delete(path)
    findings, brief = (
        _number_handoff_findings(inputs.findings),
        _handoff_project_brief(repository, link.handoff),
    )
    if len(findings) > FINDINGS_CHARACTERS:
        files = files.write(FINDINGS, findings.encode())
    if len(brief) > BRIEF_CHARACTERS:
        files = files.write(WHOLE_BRIEF, brief.encode())
    listed = FORM_SPECS["groups"].state_file
    if link.handoff.report == "groups" and (raw := repository.read_file(inputs.state, listed)):
        files = files.write(f"documents/{listed}", raw)
    tree = files.subfolder(link.folder).id
    snapshot.files, snapshot.link = files, link.model_copy(update={"tree": tree})
    for condition in link.handoff.precondition:
        if why := unmet_condition_reason(files, condition):
            raise ConfigError(f"handoff {link.handoff.id}: the precondition does not hold. {why}")
