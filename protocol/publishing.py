"""Where a finished branch is pushed, and the branch with the work."""

from __future__ import annotations

from typing import Self

from pydantic import Field, field_validator, model_validator

from protocol.data_model import Data
from protocol.git_address import check_git_address
from protocol.repository_start import RefName, RepositoryStart, Variable, check_token_address
from protocol.requests import JobPosition


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
            check_token_address(self.token_variable, self.remote, "publish")
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


class PublishRequest(JobPosition):
    call: int
    """Index of the `job_complete` call, which summarizes the work."""
    starts: list[str] = Field(default_factory=list)
    """Start checkpoints of the phases, in order."""
