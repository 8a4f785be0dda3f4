"""Both ends of a handoff: a workspace made ready for it, and its work checked before it counts."""

from __future__ import annotations

import json
import re

from pydantic import BaseModel, ValidationError

from activities.checkpoints import Files, FilesError, PathRefused, Root
from activities.checkpoints.errors import shown
from activities.checkpoints.names import to_bytes
from activities.ending.done_when import unmet
from activities.job.snapshot import Snapshot
from activities.job.volatile import without_volatile
from activities.plain import plain
from activities.projects.evidence import evidence_of, unproved
from activities.projects.repository import Repository, is_git, repository_path, takes
from config.schema import Problem
from protocol.handoffs import REPORTS, FeatureReport, Handoff, ProjectLink, Report, Routing, Verdict
from protocol.project import BRIEF, STATE_FILES
from protocol.routing import problems
from protocol.telling import wrong_everywhere

KEPT_BY_SYSTEM = (BRIEF, *STATE_FILES.values())
"""Files at the top of a project's repository that no job changes."""
NOT_PRODUCT = {"output": ("completion.json",)}
"""What every job writes to a folder, where that is the product's."""
BRIEF_CHARACTERS = 20_000
MOST_REPORT_BYTES = 1_000_000
KINDS: dict[Report, type[BaseModel]] = {
    "features": FeatureReport,
    "groups": Routing,
    "verdict": Verdict,
}
_MARKS = re.compile(rb"^(?:<{7}|>{7}) (.+?)\r?$", re.MULTILINE)


def told(root: Root, link: ProjectLink, *, again: bool = False) -> str:
    """A handoff as the receiver's instructions; `again` for one who knows the project already."""
    handoff = link.handoff
    lines = [handoff.task.strip()]
    if handoff.inputs.results:
        lines += ["", "## What came before", ""]
        lines += [f"- {' '.join(text.split())[:4000]}" for text in handoff.inputs.results]
    if handoff.postcondition or handoff.success:
        lines += ["", "## When it is done", ""]
        lines += [f"- {condition.told}" for condition in handoff.postcondition]
        lines += [f"- {text}" for text in handoff.success]
    lines += [
        "",
        "## The project",
        "",
        f"You are one of several agents, each at its own part. {link.folder}/ holds the project's "
        f"files as you were handed them; what you leave there is your work. In your summary say "
        f"which files changed, what was checked, what was found and what comes next, in at most "
        f"{link.summary_tokens:,} tokens.",
        "",
    ]
    if again:
        return "\n".join(lines)
    repository = Repository(repository_path(root, link.id))
    brief = (repository.file(handoff.inputs.commit, BRIEF) or b"").decode(errors="replace")
    if len(brief) > BRIEF_CHARACTERS:
        brief = f"{brief[:BRIEF_CHARACTERS]}\n… the rest is in {link.folder}/{BRIEF}"
    return "\n".join(lines) + f"\n{brief}"


def hand_over(root: Root, snapshot: Snapshot, link: ProjectLink) -> None:
    """Put the project's files into the workspace and check the precondition.

    Raises:
        Problem: it does not hold; the job does not begin.
    """
    repository = Repository(repository_path(root, link.id))
    files = repository.put_into(snapshot.files, link.handoff.inputs.commit, link.folder)
    for path in REPORTS.values():
        # What the job before answered is not this one's answer.
        if files.entry(path) is not None:
            files = files.delete(path)
    tree = files.below(link.folder).id
    snapshot.files, snapshot.link = files, link.model_copy(update={"tree": tree})
    for condition in link.handoff.precondition:
        if why := unmet(files, condition):
            raise Problem(f"handoff {link.handoff.id}: the precondition does not hold. {why}")


def refusals(snapshot: Snapshot) -> list[str]:
    """Why the work of a project's job cannot be taken over, a sentence each."""
    if snapshot.link is None:
        return []
    handoff, files = snapshot.link.handoff, snapshot.files
    found = [why for condition in handoff.postcondition if (why := unmet(files, condition))]
    if marked := _with_marks(snapshot, snapshot.link):
        found.append(f"There are marks of a merge conflict in {', '.join(marked[:10])}.")
    if unnamed := _without_a_name(files, snapshot.link.folder):
        found.append(
            "Git takes no file or folder of these names; rename or delete them: "
            f"{', '.join(map(shown, unnamed[:10]))}."
        )
    if handoff.report:
        answer, problem = read_report(files, handoff.report)
        found += [problem] if problem else []
        if isinstance(answer, Verdict):
            found += unproved(handoff, answer, evidence_of(snapshot))
        if isinstance(answer, Routing) and handoff.routing:
            found += problems(answer, handoff.routing)
    return found


def read_report(files: Files, kind: Report) -> tuple[BaseModel | None, str]:
    """The typed file that a job answers with, or what is wrong with it."""
    path = REPORTS[kind]
    try:
        entry = files.entry(path)
        if entry is None or entry.kind != "file":
            return None, f"There is no file {path}, which the task asks for."
        if entry.size > MOST_REPORT_BYTES:
            return None, f"{path} has more than {MOST_REPORT_BYTES:,} bytes."
        return KINDS[kind].model_validate(json.loads(files.read(path))), ""
    except (FilesError, PathRefused) as problem:
        return None, str(problem)
    except ValidationError as error:
        # All at once: each refusal counts, and after a few the job waits for a person.
        return None, f"{path} cannot be used: {wrong_everywhere(error)}."
    except (ValueError, RecursionError) as error:
        return None, f"{path} is not valid JSON ({error})."


def product(repository: Repository, snapshot: Snapshot, folder: str, handoff: Handoff) -> str:
    """The tree of a job's work; what the system keeps is as it was handed over."""
    # Whoever ran the tests left them: in the product they would be new at each run, and collide.
    # A log may be wanted, such as one that a test reads.
    caches = [pattern for pattern in snapshot.config.shell.volatile if pattern.endswith("/**")]
    tree = repository.take_from(without_volatile(snapshot.files, caches), folder)
    before = handoff.inputs.commit
    kept = {name: repository.file(before, name) for name in KEPT_BY_SYSTEM}
    return repository.with_files(tree, kept | dict.fromkeys(NOT_PRODUCT.get(folder, ())))


def _with_marks(snapshot: Snapshot, link: ProjectLink) -> list[str]:
    """Files in which marks of a merge are left.

    A merge of the system names the file itself in its marks. Others, such as `<<<<<<< HEAD`, belong
    to a text about git.
    """
    files, folder = snapshot.files, link.folder
    if files.raw((folder,)) is None:
        return []
    now = [entry for entry in files.walk(folder) if entry.kind == "file"]
    named = {entry.path.removeprefix(f"{folder}/") for entry in now}
    if link.tree:
        # What was marked may have been renamed since.
        handed = Files(files.store, link.tree).walk("")
        named.update(entry.path for entry in handed if entry.kind == "file")
    labels = set(map(to_bytes, named))
    return [plain(e.path) for e in now if not labels.isdisjoint(_MARKS.findall(files.content(e)))]


def _without_a_name(files: Files, folder: str) -> list[str]:
    """Files and folders whose names git does not take; what is in such a folder goes with it."""
    if files.raw((folder,)) is None:
        return []
    trial = files.store.git.TreeBuilder()
    found: set[str] = set()
    for entry in files.walk(folder):
        parts = entry.path.split("/")
        for depth in range(len(folder.split("/")), len(parts)):
            if is_git(parts[depth]):
                break
            if not takes(trial, parts[depth]):
                found.add("/".join(parts[: depth + 1]))
                break
    return sorted(found)
