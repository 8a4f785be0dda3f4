"""The schema of MCP servers: how to reach one, and what it declared when a job began."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, Field, model_validator

from protocol.state import Data

Effect = Literal["reads", "repeatable", "once"]
"""Effect of a repeated call: none at all, none beyond the first call's, or a further one."""
ServerName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,31}$")]
Variable = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
WORKSPACE = "{workspace}"


class Server(Data):
    """An MCP server: a command that speaks on its standard streams, or an address."""

    command: list[str] = Field(
        default_factory=list,
        description="Program and arguments of a server that speaks on standard input and output; "
        "`{workspace}` in an argument is the private folder that cwd gives it.",
    )
    env: dict[str, Variable] = Field(
        default_factory=dict,
        description="Variables of its process, or of headers_command, each with the name of the "
        "worker's variable that holds the value.",
    )
    cwd: Literal["workspace"] | None = Field(
        None,
        description="`workspace`: it works on files, and every call is given a private folder with "
        "those of the workspace; what it changes there is taken back.",
    )
    url: str | None = Field(
        None, description="Address of a server that is spoken to by streamable HTTP."
    )
    headers: dict[str, Variable] = Field(
        default_factory=dict,
        description="HTTP headers, each with the name of the worker's variable that holds the "
        "whole value.",
    )
    headers_command: str | None = Field(
        None,
        description="Command for a shell that prints HTTP headers as a JSON object: run when the "
        "worker connects, and again when the server refuses access (401, 403). `env` names its "
        "variables.",
    )
    tools: list[str] | None = Field(
        None, description="The only tools of it that are taken, by its own names; null: all."
    )
    effects: dict[str, Effect] = Field(
        default_factory=dict,
        description="By its own names of tools, what else than its annotations say holds: a call "
        "only `reads`, is `repeatable`, or is made at most `once`.",
    )
    away: Literal["park", "degrade"] = Field(
        "park",
        description="What a start does when the server is not there: wait for it, or go on "
        "without its tools.",
    )
    start_seconds: int = Field(
        30, ge=1, le=600, description="Seconds until a server that has not started is not there."
    )
    call_seconds: int = Field(120, ge=1, le=86_400, description="Seconds that one call may take.")
    task_seconds: int = Field(
        86_400,
        ge=1,
        le=2_592_000,
        description="Seconds that a task may take with which the server answers a call: then it is "
        "cancelled, and the model is told.",
    )

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
