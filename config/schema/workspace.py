"""Where a job's checkpoints go beside the workspaces root: the schema of `workspace`."""

from __future__ import annotations

import re

from pydantic import Field, field_validator
from pydantic_core import PydanticCustomError

from protocol.state import Data

_URL = re.compile(r"(file|ssh|git|https?)://((?!-)[^/@\s\0]*@)?(?!-)[^\s\0]+")
_SCP = re.compile(r"(\w[\w.-]*@)?\w[\w.-]*:[^\s:\0][^\s\0]*")
"""`host:path`, as ssh's own tools have it."""
_PASSWORD = re.compile(r"(\w+://)?[^/@[]*?:(?!//|\d+(/|$)).*@.*")
"""Somebody's with it, also where it has signs that belong escaped; a port is none."""


class Workspace(Data):
    remote: str | None = Field(
        None,
        max_length=1000,
        description="A git repository that the job's checkpoints are pushed to, and fetched from "
        "by workers that lack them: file://, ssh:// (or host:path), https://, without a password. "
        "null: none.",
    )

    @field_validator("remote")
    @classmethod
    def _is_an_address(cls, url: str | None) -> str | None:
        if url is None:
            return None
        if _PASSWORD.fullmatch(url):
            # Of a type of its own, for which it is not said what was found.
            raise PydanticCustomError(
                "credential",
                "expected an address without a password: git takes credentials from the worker's "
                "own credential helper or ssh agent",
            )
        if not (_URL if "://" in url else _SCP).fullmatch(url):
            raise ValueError(
                "expected file://…, ssh://…, https://…, http://…, git://… or host:path"
            )
        return url
