"""What every part of a configuration is."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """Keys and values; an unknown key is an error."""

    model_config = ConfigDict(extra="forbid")
