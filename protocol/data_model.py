"""The base of all data that is stored, sent or configured."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Data(BaseModel):
    """Base of stored, sent and configured data; an unknown key is an error."""

    model_config = ConfigDict(extra="forbid")
