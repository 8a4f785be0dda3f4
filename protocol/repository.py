"""The repository that a job or a project begins with, and the branch with its work."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import AfterValidator, Field, field_validator, model_validator

from protocol.git_address import check_git_address
from protocol.job_state import Data

FOLDER = "repo"
"""The folder of a job's workspace that holds the repository's files."""
STAGED = "staged:"
"""Prefix of folders that `starter.py` put below the workspaces root."""
_NOT_IN_NAMES = frozenset(" ~^:?*[\\\x7f")
_PIECES_NOT_IN_NAMES = ("..", "@{", "//")


def check_repository_ref(name: str) -> str:
    """Return the name if git accepts it for a branch or tag. Raises ValueError."""
    is_wrong = (
        not name
        or name[0] in "-/"
        or name[-1] in "./"
        or any(char < " " or char in _NOT_IN_NAMES for char in name)
        or any(piece in name for piece in _PIECES_NOT_IN_NAMES)
        or any(part.startswith(".") or part.endswith(".lock") for part in name.split("/"))
    )
    if is_wrong:
        raise ValueError(f"expected the name of a branch or tag, or a commit id; found {name!r}")
    return name


RefName = Annotated[str, Field(max_length=200), AfterValidator(check_repository_ref)]
Variable = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,199}$")]
"""The name of a variable of the worker."""


class RepositoryStart(Data):
    """The source of the work: a git repository or a folder."""

    url: str = Field("", max_length=1000)
    """Address for git: file://, ssh:// (or host:path), https://, git://; no password."""
    folder: str = Field("", max_length=4000)
    """Instead of `url`: a folder that the worker can read, or that `starter.py` staged."""
    ref: RefName | None = None
    """Branch, tag or full commit id; None for what the repository has checked out."""
    depth: int | None = Field(None, ge=1, le=1_000_000)
    """Commits of history to fetch; None for all."""
    subfolder: str = Field("", max_length=300)
    """The folder of the repository to work in."""
    token_variable: Variable | None = None
    """Variable of the worker that holds the password or token for http(s)."""

    @field_validator("url")
    @classmethod
    def _can_be_fetched(cls, url: str) -> str:
        return check_git_address(url) if url else url

    @field_validator("subfolder")
    @classmethod
    def _stays_within(cls, path: str) -> str:
        parts = path.strip("/").split("/")
        if path and not {"", ".", ".."}.isdisjoint(parts):
            raise ValueError(f"expected a path within the repository, found {path!r}")
        return path.strip("/")

    @model_validator(mode="after")
    def _has_one_source(self) -> Self:
        if bool(self.url) is bool(self.folder):
            raise ValueError("repository: give either url or folder")
        if self.folder and (self.ref or self.depth or self.token_variable):
            raise ValueError("repository: ref, depth and token_variable go with url")
        _check_repository_token(self.token_variable, self.url, "repository")
        return self


class Publish(Data):
    """Where the finished branch is pushed."""

    remote: str = Field("", max_length=1000)
    """Address of a git repository; empty for that of `repository.url`."""
    branch: RefName
    approve: bool = Field(False, strict=True)
    """Whether a person must approve the push."""
    token_variable: Variable | None = None
    """As in `repository`; when both this and `remote` are unset, that of `repository` is used."""

    @field_validator("remote")
    @classmethod
    def _check_repository_remote(cls, remote: str) -> str:
        return check_git_address(remote) if remote else remote

    @model_validator(mode="after")
    def _has_an_address_for_the_token(self) -> Self:
        if self.remote:
            _check_repository_token(self.token_variable, self.remote, "publish")
        return self

    def completed(self, repository: RepositoryStart | None) -> Publish:
        """Fill in the remote and the token. Raises ValueError when there is no remote."""
        if self.remote:
            return self
        if repository is None or not repository.url:
            raise ValueError(
                "publish: name the remote to push to, which may be left out only where "
                "repository.url is given"
            )
        token = self.token_variable or repository.token_variable
        return self.model_copy(update={"remote": repository.url, "token_variable": token})


def _check_repository_token(variable: str | None, address: str, key: str) -> None:
    if variable and not address.startswith(("https://", "http://")):
        raise ValueError(f"{key}: token_variable is for https:// and http:// addresses")


class PinnedSource(Data):
    """What the work began from, as people are shown it."""

    source: str
    ref: str = ""
    """Branch, tag or commit that was named; empty where none was."""
    commit: str


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


class RepositoryLink(Data):
    """Links a job to the repository that it works on."""

    owner: str
    """The job or project whose git repository holds the source."""
    folder: str = FOLDER
    """Workspace folder with its files."""
    tree: str
    """Tree of that folder when the job began."""
    commit: str
    """The commit with that tree."""
    origin: RepositoryOrigin
    publish: Publish | None = None

    @property
    def token_variables(self) -> set[str]:
        """Names of the worker's variables that hold its credentials."""
        publish = self.publish.token_variable if self.publish else None
        return {name for name in (self.origin.start.token_variable, publish) if name}


class BranchResult(Data):
    """The branch with the finished work."""

    base: str
    """The commit that it starts from."""
    commit: str = ""
    """Its tip; empty when nothing was changed."""
    branch: str = ""
    published: str = ""
    """The address to which it was pushed; empty when it was not."""
    files: list[str] = Field(default_factory=list)
    """Workspace files that hold it, such as the patch."""
