"""The schema of MCP servers: how to reach one, and what it declared when a job began."""

import re
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, Field, model_validator

from config.schema.config_data import ConfigData

Effect = Literal["reads", "repeatable", "once"]
"""Effect of a repeated call: none at all, none beyond the first call's, or a further one."""
ServerName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,31}$")]
Variable = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
WORKSPACE = "{workspace}"


class Server(ConfigData):
    """An MCP server: a command that speaks on its standard streams, or an address."""

    command: list[str] = Field(default_factory=list)
    """Program and arguments of a server that uses standard input and output; `{workspace}` in an
    argument stands for the private folder of `cwd`."""
    env: dict[str, Variable] = Field(default_factory=dict)
    """Variables of its process or of headers_command, each with the name of the worker's variable
    that has the value."""
    cwd: Literal["workspace"] | None = None
    """`workspace`: it works on files. Each call gets a private folder with the workspace's files,
    and its changes are copied back."""
    url: str | None = None
    """Address of a server that uses streamable HTTP."""
    headers: dict[str, Variable] = Field(default_factory=dict)
    """HTTP headers, each with the name of the worker's variable that has the whole value."""
    headers_command: str | None = None
    """Shell command that prints HTTP headers as a JSON object. It runs when the worker connects,
    and again when the server refuses access (401, 403). `env` names its variables."""
    tools: list[str] | None = None
    """Tools to use, by the server's names; null: all."""
    effects: dict[str, Effect] = Field(default_factory=dict)
    """Corrections of its annotations, by the server's tool names: a call only `reads`, is
    `repeatable`, or is made at most `once`."""
    away: Literal["park", "degrade"] = "park"
    """What a start does if the server is unavailable: wait for it (park), or continue without its
    tools (degrade)."""
    start_seconds: int = Field(30, ge=1, le=600)
    """Seconds after which a server that has not started counts as unavailable."""
    call_seconds: int = Field(120, ge=1, le=86_400)
    """Time limit of one call, in seconds."""
    task_seconds: int = Field(86_400, ge=1, le=2_592_000)
    """Time limit in seconds of a task that the server starts for a call; then it is cancelled, and
    the model gets an error."""

    @model_validator(mode="after")
    def _is_one_kind(self) -> Self:
        if bool(self.command) is (self.url is not None):
            raise ValueError("expected either command or url")
        if self.url is not None and not re.match(r"https?://[^/]", self.url):
            raise ValueError(f"url: expected http:// or https://, found {self.url!r}")
        if self.url is not None and (self.cwd or (self.env and not self.headers_command)):
            raise ValueError("env and cwd are of a server with a command, not of one with a url")
        if self.command and (self.headers or self.headers_command is not None):
            raise ValueError("headers are of a server with a url, not of one with a command")
        if self.headers_command is not None and not self.headers_command.strip():
            raise ValueError("headers_command: expected a command")
        if self.command and not self.command[0].strip():
            raise ValueError("command: expected a program first")
        if self.cwd is None and any(WORKSPACE in part for part in self.command):
            raise ValueError(f"command: {WORKSPACE} needs cwd: workspace")
        return self


class DeclaredTool(BaseModel):
    """A tool as its server declared it when the job began; pinned for the job's life."""

    name: str
    """The model's name for it: `<server>__<tool>`, adapted to the allowed characters and length."""
    server: str
    tool: str
    """Its name at the server."""
    description: str
    parameters: dict[str, Any]
    """JSON Schema of the arguments."""
    effect: Effect
