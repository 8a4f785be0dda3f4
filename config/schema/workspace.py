"""The schema of `workspace`: where checkpoints go besides the workspaces root."""

from pydantic import Field, field_validator
from pydantic_core import PydanticCustomError

from config.schema.config_data import ConfigData
from protocol.git_address import NO_PASSWORD, check_git_address, git_address_fault
from protocol.s3_address import NO_KEYS, S3Address, is_s3_address


class Workspace(ConfigData):
    remote: str | None = Field(None, max_length=1000)
    """Where the job's checkpoints are pushed to, and from where workers that lack them fetch them:
    a git repository (file://, ssh:// or host:path, https://) or a bucket (s3://bucket/prefix),
    without a password. null: none."""

    @field_validator("remote")
    @classmethod
    def _is_an_address(cls, url: str | None) -> str | None:
        if url is None:
            return None
        if is_s3_address(url):
            if "@" in url:
                raise PydanticCustomError("credential", NO_KEYS)
            S3Address.parse(url)
            return url
        if git_address_fault(url) == "password":
            # Errors of this type are reported without the value, which may be a credential.
            raise PydanticCustomError("credential", NO_PASSWORD)
        return check_git_address(url)
