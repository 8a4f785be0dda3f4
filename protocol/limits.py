"""Limits on what a job may use, and what model calls are charged at."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from protocol.state import Data

Count = Annotated[int, Field(strict=True, gt=0, le=10**12)]
Amount = Annotated[float, Field(strict=True, gt=0, le=10**12, allow_inf_nan=False)]
Rate = Annotated[float, Field(strict=True, ge=0, le=10**9, allow_inf_nan=False)]


class Budget(Data):
    """What a job, or one of its phases, may use; null is no limit."""

    model_calls: Count | None = Field(None, description="Model calls, archive summaries included.")
    tool_calls: Count | None = Field(None, description="Tool calls.")
    tokens: Count | None = Field(None, description="Tokens sent and received.")
    cost: Amount | None = Field(None, description="Money, in the currency of `prices`.")
    seconds: Count | None = Field(
        None, description="Seconds from the start; time spent waiting for people does not count."
    )


class Price(Data):
    """What a model charges for a million tokens. The currency is whichever all prices are in."""

    prompt: Rate = Field(description="A million tokens sent.")
    cached: Rate | None = Field(
        None, description="A million tokens sent that the endpoint had cached; null: as `prompt`."
    )
    completion: Rate = Field(description="A million tokens received.")

    def cost(self, prompt: int, cached: int, completion: int) -> float:
        """What a call costs. `cached` is the part of `prompt` that the endpoint had cached."""
        cached = min(cached, prompt)
        rate = self.prompt if self.cached is None else self.cached
        total = (prompt - cached) * self.prompt + cached * rate + completion * self.completion
        return round(total / 1_000_000, 9)
