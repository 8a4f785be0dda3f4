"""Work on a repository that the system proves, as at the end of a job, without a job."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from activities.checkpoints import Root
from activities.job.snapshot import Snapshot
from activities.projects.project_repository import ProjectRepository, project_repository_path
from activities.projects.start_tests import run_start_tests
from activities.projects.work_proof import WorkProof, prove_work
from protocol.repository_link import RepositoryLink, RepositoryOrigin
from protocol.repository_start import RepositoryStart
from tests.activities.projects.proving import Bench
from tests.activities.standing import AT, JOB, Standing, environment

Sources = Mapping[str, str | None]
"""Texts by path; None for a file that is not there any more."""


@dataclass
class Repair:
    """A repository and a job that changes it."""

    job: Standing
    root: Root
    repository: ProjectRepository
    start: str

    @classmethod
    def begin(
        cls, folder: Path, sources: Mapping[str, str], command: str, issue: str = "Mend it."
    ) -> "Repair":
        """Put the repository there, and run its tests as they are."""
        bench = Bench(folder)
        job = Standing.begin(folder, agent="mender")
        shell = bench.shell.model_copy(update={"caches": {}})
        tests = job.open().config.tests
        assert tests is not None
        tests = tests.model_copy(update={"command": command, "seconds": 120, "setup": False})
        job.pin(job.open().config.model_copy(update={"shell": shell, "tests": tests}))
        job.write("instructions.md", issue)
        repository = ProjectRepository.create(project_repository_path(job.root, JOB))
        for path, text in sources.items():
            job.put(lambda files, p=path, t=text: files.write(f"repo/{p}", t.encode()))  # type: ignore[misc]
        start = repository.commit(repository.take_from(job.open().files, "repo"), [], "Begin", AT)
        return cls(job, job.root, repository, start)

    def open(self) -> Snapshot:
        snapshot = self.job.open()
        start = RepositoryStart(url="https://example.org/tea.git")
        origin = RepositoryOrigin(
            source="tea", start=start, commit=self.start, file_count=1, guidance="", notes=[]
        )
        snapshot.repository = RepositoryLink(
            owner=JOB,
            tree=snapshot.files.subfolder("repo").id,
            commit=self.start,
            origin=origin,
        )
        snapshot.repository.tests = environment().run(run_start_tests, self.root, snapshot)
        return snapshot

    def prove(self, changes: Sources, **call: Any) -> WorkProof:
        """Change files of the repository and prove the work."""
        snapshot = self.open()
        files = snapshot.files
        for path, text in changes.items():
            place = f"repo/{path}"
            files = files.delete(place) if text is None else files.write(place, text.encode())
        tree = self.repository.take_from(files, "repo")
        claim = {"summary": "Mend it", "deliverables": ["repo/tea.py"], "unresolved": [], **call}
        proof: WorkProof = environment().run(
            prove_work, self.root, snapshot, self.repository, tree, claim
        )
        return proof
