"""The schema of `start`: what a start may decide, which the worker's configuration says."""

from typing import Annotated

from pydantic import Field, field_validator

from config.schema.config_data import ConfigData
from protocol.repository_start import Variable

HARMLESS = "harmless"
"""Stands for the keys that run no code on the worker, read no files of it, and move no key."""
ALL = "*"


class StartRights(ConfigData):
    set: list[Annotated[str, Field(min_length=1)]] = Field(default_factory=lambda: [HARMLESS])
    """Keys that a start, a fork or a change of a running job may set: `harmless` for those that run
    no code on the worker, read none of its files and move no key; further keys by name, such as
    shell.network; `*` for all, even for keys of models at other addresses."""
    documents: list[str] = Field(default_factory=list)
    """Folders of the worker from which a start may name documents. Those that `starter.py` hands
    over, and addresses, need none."""
    folders: list[str] | None = None
    """Folders of the worker from which a start may take a repository or a folder, and to which it
    may publish (file://); they are trusted whoever owns them. null: repositories of the worker's
    own user, and no folders."""
    tokens: dict[Variable, list[str]] = Field(default_factory=dict)
    """Variables of the worker that a start may name as token_variable, each with the addresses that
    get its value, such as https://git.example.org/team/; `*` for all."""

    @field_validator("documents", "folders")
    @classmethod
    def _folders_absolute(cls, folders: list[str] | None) -> list[str] | None:
        if wrong := next((each for each in folders or [] if not each.startswith("/")), None):
            raise ValueError(f"expected absolute paths, such as /srv/texts; {wrong} is none")
        return folders
