"""Where a job's checkpoints go beside the workspaces root: the schema of `workspace`."""

from __future__ import annotations

import re

from pydantic import Field, field_validator

from config.section import Section

_URL = re.compile(r"(file|ssh|git|https?)://(?P<user>(?!-)[^/@\s]*@)?(?!-)\S+")
_SCP = re.compile(r"(\w[\w.-]*@)?\w[\w.-]*:[^\s:]\S*")
"""`host:path`, as ssh's own tools have it."""


class Workspace(Section):
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
        if "://" not in url:
            if _SCP.fullmatch(url):
                return url
        elif found := _URL.fullmatch(url):
            if ":" in (found["user"] or ""):
                raise ValueError(
                    "an address without a password: git takes credentials from the worker's own "
                    "credential helper or ssh agent"
                )
            return url
        raise ValueError("expected file://…, ssh://…, https://… or host:path")
