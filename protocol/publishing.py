"""Where a finished branch is pushed, and the branch with the work."""

from typing import Any, Self

from pydantic import Field, ValidationError, field_validator, model_validator

from protocol import repository_start
from protocol.data_model import Data
from protocol.git_address import check_git_address, git_address_without_user
from protocol.requests import JobPosition
from protocol.validation_errors import first_validation_errors


class Publish(Data):
    """Where the finished branch is pushed."""

    remote: str = Field("", max_length=1000)
    """Address of a git repository; empty for that of `repository.url`."""
    branch: repository_start.RefName
    approve: bool = Field(False, strict=True)
    token_variable: repository_start.Variable | None = None
    """As in `repository`; when both this and `remote` are unset, that of `repository` is used."""

    @field_validator("remote")
    @classmethod
    def _check_repository_remote(cls, remote: str) -> str:
        return check_git_address(remote) if remote else remote

    @model_validator(mode="after")
    def _has_an_address_for_the_token(self) -> Self:
        if self.remote:
            repository_start.check_token_address(self.token_variable, self.remote, "publish")
        return self

    def completed(self, repository: repository_start.RepositoryStart | None) -> "Publish":
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


PUBLISH = "publish"
"""Key of a `resume` that takes the push away, and the beginning of those that change it."""
CHANGEABLE = tuple(f"{PUBLISH}.{key}" for key in ("branch", "remote", "token_variable"))


def change_publish(publish: Publish, settings: dict[str, Any]) -> Publish | None:
    """Return the push with a person's settings, if any is left. Raises ValueError."""
    if PUBLISH in settings:
        return None
    changes = {key.removeprefix(f"{PUBLISH}."): value for key, value in settings.items()}
    try:
        return Publish.model_validate({**publish.model_dump(), **changes})
    except ValidationError as error:
        raise ValueError(f"publish.{first_validation_errors(error)}") from None


def split_publish_settings(settings: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Part the settings of a `resume` into those of the model and those of the push."""
    push = {key: value for key, value in settings.items() if key in (PUBLISH, *CHANGEABLE)}
    return {key: value for key, value in settings.items() if key not in push}, push


def publish_notice(publish: Publish | None) -> str:
    if publish is None:
        return "no branch is pushed; the work ends with a patch"
    where = f" to {git_address_without_user(publish.remote)}" if publish.remote else ""
    return f"the branch is pushed as {publish.branch}{where}"


class BranchResult(Data):
    """The branch with the finished work."""

    base: str
    """The commit that it starts from."""
    commit: str = ""
    branch: str = ""
    published: str = ""
    """The address to which it was pushed; empty when it was not."""
    files: list[str] = Field(default_factory=list)
    """Workspace files that hold it, such as the patch."""
    changed: list[str] = Field(default_factory=list)
    """A line per changed file, such as `+12 -3 src/a.py` or `+20 tests/test_a.py (new)`."""
    proof: str = ""
    """What the system's own run of the tests showed; empty if it ran none."""
    doubts: list[str] = Field(default_factory=list)
    """What was not proved, or is not as it was, one sentence each."""


class PublishRequest(JobPosition):
    call: int
    """Index of the `job_complete` call, which summarizes the work."""
    publish: Publish | None = None
    """Where the branch goes, as a person may have changed it."""
    starts: list[str] = Field(default_factory=list)
