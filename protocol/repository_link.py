"""The repository that a job works on, as activities link it."""

from pydantic import Field

from protocol.data_model import Data
from protocol.publishing import Publish
from protocol.repository_start import PinnedSource, RepositoryStart

FOLDER = "repo"
"""The folder of a job's workspace that holds the repository's files."""


class RepositoryOrigin(Data):
    """The fetched source, pinned for the life of the job or project."""

    source: str
    """Its address, or the name of the folder, for people."""
    start: RepositoryStart
    commit: str
    file_count: int
    guidance: str = ""
    """The texts of its AGENTS.md files."""
    notes: list[str] = Field(default_factory=list)
    """What is missing from it, one sentence each."""

    @property
    def pinned(self) -> PinnedSource:
        return PinnedSource(source=self.source, ref=self.start.ref or "", commit=self.commit)


class EarlierStart(Data):
    job: str
    """The job whose phase it was."""
    commit: str


class StartTests(Data):
    """The run of a repository's tests before a job's first model call."""

    command: str = ""
    """How they are run; empty if nothing says so."""
    passed: int = 0
    skipped: int = 0
    expected: int = 0
    failed: list[str] = Field(default_factory=list)
    """Names of the tests that failed already; nobody answers for them."""
    why: str = ""
    """Why none could be run; empty if some passed."""
    generated: list[str] = Field(default_factory=list)
    """Files and folders that this run made or changed in the repository: no part of the work."""

    @property
    def line(self) -> str:
        """`python3 -m pytest -q: 456 passed, 2 skipped`."""
        counts = [f"{self.passed} passed"]
        counts += [f"{self.skipped} skipped"] if self.skipped else []
        counts += [f"{len(self.failed)} failed"] if self.failed else []
        return f"{self.command or 'tests'}: {self.why or ', '.join(counts)}"


class RepositoryLink(Data):
    """Links a job to the repository that it works on."""

    owner: str
    """The job or project whose git repository holds the source."""
    folder: str = FOLDER
    tree: str
    """Tree of that folder when the job began."""
    commit: str
    """The commit with that tree."""
    origin: RepositoryOrigin
    publish: Publish | None = None
    tests: StartTests | None = None
    """Its tests on the untouched tree; None for an agent that proves nothing by them."""
    subjects: list[str] = Field(default_factory=list)
    """Subjects of its last commits, whose style that of the work follows."""
    published: str = ""
    """Of a fork from the end of a job: the tip of that job's branch, which it builds on."""
    earlier: list[EarlierStart] = Field(default_factory=list)
    """Of a fork: phases of the jobs before it, in order, whose work is on its branch as well."""
