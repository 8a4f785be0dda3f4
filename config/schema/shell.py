"""The schema of `shell`: the sandbox of commands and its limits."""

import re
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from config.schema.config_data import ConfigData
from config.schema.mcp_servers import Variable

CacheName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$")]
SYSTEM_VARIABLES = frozenset({"PATH", "HOME", "USER", "PWD", "LANG", "RUN_COMMAND_MARK"})
"""Variables that the sandbox sets itself."""

LAYER = "/layer"
"""Where commands see what `setup` installed."""
CACHE = "/cache"
"""Where commands see the folders of `caches`."""


class ShellConfig(ConfigData):
    sandbox: Literal["bubblewrap", "none"] = "bubblewrap"
    """What confines commands. `none` runs them unconfined, with all rights of the worker; use it
    only if the machine itself is the sandbox."""
    network: bool | list[str] = Field(default=False)
    """Network access of commands: everything that the worker reaches, or a list of hosts such as
    pypi.org, *.example.com (ports 80 and 443) or localhost:4873. With network, an interrupted
    command is not repeated but reported as possibly done."""
    readable: list[str] = Field(default_factory=list)
    """Folders that commands may read, besides the system's programs."""
    path: list[str] = Field(default_factory=list)
    """Folders of programs that precede the system's in PATH, such as the bin of a virtual
    environment. They must be in readable folders."""
    environment: dict[Variable, Variable] = Field(default_factory=dict)
    """Variables of commands, each with the name of the worker's variable that has the value. The
    values are redacted in the output and in changed files."""
    setup: list[Annotated[str, Field(min_length=1)]] = Field(default_factory=list)
    """Commands that install what other commands need into /layer, such as python3 -m venv /layer.
    They run once for a job, before its first command; afterwards /layer is read-only, and
    /layer/bin comes first in PATH."""
    setup_inputs: list[str] = Field(default_factory=list)
    """Files of the workspace that setup reads, such as requirements.txt or **/package.json. If
    their content changes, the layer is built anew."""
    setup_sees: list[str] = Field(default_factory=list)
    """Files of the workspace that setup reads as well, without being built anew when they change,
    such as **/* for a package that is installed to be run where it lies."""
    setup_shows: dict[str, str] = Field(default_factory=dict)
    """Folders of the layer that commands see in the workspace, by their path there, such as
    `app/node_modules: node_modules`."""
    setup_network: bool | list[str] | None = None
    """Network access of setup alone, in the form of `network`; null: that of `network`."""
    caches: dict[Variable, CacheName] = Field(default_factory=dict)
    """Cache folders that the job's commands share, by the variable with the folder's path:
    PIP_CACHE_DIR: pip gives /cache/pip. They are in no checkpoint and are deleted when the job
    ends."""
    cache_bytes: int = Field(2_000_000_000, ge=1_000_000)
    """Maximum bytes of all caches together; larger ones are emptied."""
    seconds: int = Field(600, ge=1, le=3600)
    """Time limit of one command, in seconds."""
    volatile: list[str] = Field(
        default_factory=lambda: [
            "**/.git/index",
            "**/.git/logs/**",
            "**/__pycache__/**",
            "**/.pytest_cache/**",
            "**/.mypy_cache/**",
            "**/.ruff_cache/**",
            "**/.cache/**",
            "**/*.log",
            "output/changes.patch",
            "output/branch.bundle",
        ]
    )
    """Paths of files whose content differs from run to run. They are stored, but left out of the
    tree by which results are compared, and of workspace_summary.md."""
    cpu_seconds: int = Field(1800, ge=1)
    """Maximum CPU time of a process, in seconds."""
    memory_bytes: int = Field(2_000_000_000, ge=1_000_000)
    """Maximum memory of a command's processes together."""
    processes: int = Field(256, ge=2, le=10_000)
    """Maximum number of processes at a time."""
    file_bytes: int = Field(1_000_000_000, ge=512)
    """Maximum size of a file that a command writes."""
    disk_bytes: int = Field(2_000_000_000, ge=1_000_000)
    """Maximum bytes to which a command's workspace may grow."""
    tmp_bytes: int = Field(500_000_000, ge=1_000_000)
    """Size of its /tmp, which is in memory and is discarded."""

    @field_validator("readable", "path")
    @classmethod
    def _folders_absolute(cls, folders: list[str]) -> list[str]:
        # The sandbox would silently ignore a relative folder.
        if wrong := next((folder for folder in folders if not folder.startswith("/")), None):
            raise ValueError(f"expected absolute paths, such as /opt/tools; {wrong} is none")
        return folders

    @field_validator("environment", "caches")
    @classmethod
    def _leaves_system_variables(cls, environment: dict[str, str]) -> dict[str, str]:
        if wrong := next((name for name in environment if name in SYSTEM_VARIABLES), None):
            how = "shell.path names folders with programs" if wrong == "PATH" else "choose another"
            raise ValueError(f"{wrong} is set by the sandbox itself; {how}")
        return environment

    @field_validator("network", "setup_network")
    @classmethod
    def _hosts_readable(cls, network: bool | list[str] | None) -> bool | list[str] | None:
        for text in network if isinstance(network, list) else ():
            parse_host_entry(text)
        return network

    @model_validator(mode="after")
    def _hosts_confined(self) -> "ShellConfig":
        if self.hosts and self.sandbox == "none":
            raise ValueError(
                "network lists hosts, which only a sandbox can hold commands to; set network to "
                "true or false, or sandbox to bubblewrap"
            )
        return self

    @model_validator(mode="after")
    def _setup_confined(self) -> "ShellConfig":
        if self.setup and self.sandbox == "none":
            raise ValueError(
                "setup needs a sandbox, which shows /layer; install beforehand, or set sandbox to "
                "bubblewrap"
            )
        return self

    @model_validator(mode="after")
    def _caches_confined(self) -> "ShellConfig":
        if self.caches and self.sandbox == "none":
            raise ValueError(
                "caches need a sandbox, which shows /cache; without one programs have the caches "
                "that shell.environment names"
            )
        if twice := next((name for name in self.caches if name in self.environment), None):
            raise ValueError(f"caches and environment both set {twice}; take it out of one")
        return self

    @property
    def hosts(self) -> list[str]:
        """The hosts to which commands are confined; none where `network` is true or false."""
        return self.network if isinstance(self.network, list) else []


DEFAULT_PORTS = frozenset({80, 443})
_ENTRY = re.compile(r"(?:\[(?P<six>[^\]]+)\]|(?P<host>[^:\[\]]+))(?::(?P<port>\d{1,5}))?")
_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_NAME = re.compile(rf"(?:\*\.)?(?:{_LABEL}\.)*(?=[^.]*[a-z]){_LABEL}")


@dataclass(frozen=True)
class HostEntry:
    """One entry: a name, `*.` and a name, or an address, with or without a port."""

    host: str
    port: int | None
    is_address: bool

    @property
    def may_be_private(self) -> bool:
        """Whether it may lead to an address that is not public: it names one place exactly."""
        return self.is_address or (self.port is not None and not self.host.startswith("*."))

    def covers_place(self, host: str, port: int) -> bool:
        """Return whether the entry allows this host, in the form of `plain_host`, and port."""
        if port not in ({self.port} if self.port is not None else DEFAULT_PORTS):
            return False
        return host == self.host or (self.host[:2] == "*." and host.endswith(self.host[1:]))


def plain_host(host: str) -> str:
    """Return a name in lower case without a final dot, or an address in its usual spelling."""
    try:
        return str(ip_address(host.strip("[]")))
    except ValueError:
        return host.lower().removesuffix(".")


def parse_host_entry(text: str) -> HostEntry:
    """Read one entry of the configuration.

    Raises ValueError: it is invalid; the message lists the valid forms.
    """
    forms = "expected a host such as pypi.org, *.example.com, localhost:4873, 10.0.0.5 or [::1]:80"
    try:
        return HostEntry(str(ip_address(text)), None, is_address=True)
    except ValueError:
        parts = _ENTRY.fullmatch(text)
    port = int(parts["port"]) if parts and parts["port"] else None
    if parts is None or port == 0 or (port or 0) > 65_535:
        raise ValueError(f"{forms}; {text!r} is none")
    host = plain_host(parts["six"] or parts["host"])
    try:
        return HostEntry(str(ip_address(host)), port, is_address=True)
    except ValueError:
        if parts["six"] or not _NAME.fullmatch(host):
            raise ValueError(f"{forms}; {text!r} is none") from None
    return HostEntry(host, port, is_address=False)
