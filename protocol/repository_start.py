"""The repository or folder that a job or a project begins with."""

from typing import Annotated, Self

from pydantic import AfterValidator, Field, field_validator, model_validator

from protocol.data_model import Data
from protocol.git_address import check_git_address

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


Variable = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,199}$")]
RefName = Annotated[str, Field(max_length=200), AfterValidator(check_repository_ref)]


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
        check_token_address(self.token_variable, self.url, "repository")
        return self


def check_token_address(variable: str | None, address: str, key: str) -> None:
    if variable and not address.startswith(("https://", "http://")):
        raise ValueError(f"{key}: token_variable is for https:// and http:// addresses")


class PinnedSource(Data):
    """What the work began from, as people are shown it."""

    source: str
    ref: str = ""
    """Branch, tag or commit that was named; empty where none was."""
    commit: str
