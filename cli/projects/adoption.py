"""Merges what a person had done by a fork of a project's job into the project."""

import time

from activities.checkpoints import job_folder_name
from activities.job.snapshot import Snapshot
from activities.phases.phase_tags import phase_tag_commits
from activities.projects.product_tree import handoff_product_tree
from activities.projects.project_remote import push_project
from activities.projects.project_repository import MAIN
from cli.job_files import checkpoint_reader
from cli.jobs.job_view import JobView
from cli.output import UserError
from cli.projects.project_files import open_project_files, project_files_tip
from cli.signals.signal_sending import signal_sender_name
from protocol.commit_message import commit_message
from protocol.handoffs import ProjectLink
from protocol.status import JobStatus, ProjectStatus


def adopt_job(project: JobView, job: JobView) -> str:
    """Merge a job's work into a project that has ended; return the commit.

    Raises:
        UserError: One of them is at work, the job is no fork of the project's, it changed nothing,
            or its work collides with the product.
    """
    if not (isinstance(project.status, ProjectStatus) and isinstance(job.status, JobStatus)):
        raise UserError(f"expected a project and a job; {project.id} and {job.id} are not")
    for each in (project, job):
        if not each.closed:
            raise UserError(f"{each.id} is at work; it has to end first")
    places = checkpoint_reader.checkpoint_places_from_status(job.status)
    [newest], store = checkpoint_reader.checkpoint_commits_at(job.id, places, "now")
    first = Snapshot.load(store, min(phase_tag_commits(store).items())[1])
    if first.link is None or first.link.id != project.id:
        raise UserError(
            f"{job.id} is no fork of a job of {project.id}; `starter.py fork` makes one"
        )
    result = job.status.result
    story = commit_message(
        result.summary if result else f"Work of {job.id}",
        {"Job": job.id, "Adopted-by": signal_sender_name()},
    )
    return _merge_work(project, job.id, Snapshot.load(store, newest), first.link, story)


def _merge_work(
    project: JobView, job: str, snapshot: Snapshot, link: ProjectLink, story: str
) -> str:
    """Put the work on a branch of its own and merge that; return the commit of the merge."""
    places = checkpoint_reader.checkpoint_places_from_status(project.status)
    repository = open_project_files(project.id, places)
    snapshot.link, base, now = link, link.handoff.inputs.commit, int(time.time())
    tree = handoff_product_tree(repository, snapshot, link.folder, link.handoff)
    if tree == repository.tree_id(base):
        raise UserError(f"{job} changed nothing in {link.folder}/")
    head, branch = project_files_tip(repository, state=False), f"jobs/{job_folder_name(job)}"
    commit = repository.commit(tree, [base], story, now)
    repository.set_branch(branch, commit)
    merged, conflicts = repository.merge(head, commit, story, now)
    if merged == head:
        raise UserError(f"the product has the work of {job} already")
    if not conflicts:
        repository.set_branch(MAIN, merged)
    push_project(repository, project.id, places.remote)
    if conflicts:
        raise UserError(
            f"{job} collides with the product in {', '.join(conflicts[:20])}. Merge its branch "
            f"{branch} yourself: git clone {repository.path}"
        )
    return merged
