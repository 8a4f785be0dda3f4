"""The price of model calls."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from protocol.data_model import Data

Rate = Annotated[float, Field(strict=True, ge=0, le=10**9, allow_inf_nan=False)]


class Price(Data):
    """Price of a million tokens. All prices must share one currency."""

    prompt: Rate = Field(description="A million tokens sent.")
    cached: Rate | None = Field(
        None, description="A million tokens sent that the endpoint had cached; null: as `prompt`."
    )
    written: Rate | None = Field(
        None,
        description="A million tokens sent that the endpoint put into its cache; null: as "
        "`prompt`.",
    )
    completion: Rate = Field(description="A million tokens received.")

    def cost(self, prompt: int, cached: int, completion: int, written: int = 0) -> float:
        """Cost of a call.

        Args:
            prompt: Tokens sent, cached ones included.
            cached: Tokens of the prompt that were read from the endpoint's cache.
            completion: Tokens received.
            written: Tokens of the prompt that were written to the cache.
        """
        cached = min(cached, prompt)
        written = min(written, prompt - cached)
        read_rate = self.prompt if self.cached is None else self.cached
        write_rate = self.prompt if self.written is None else self.written
        total = (
            (prompt - cached - written) * self.prompt
            + cached * read_rate
            + written * write_rate
            + completion * self.completion
        )
        return round(total / 1_000_000, 9)

    def max_cost(self, prompt: int, completion: int) -> float:
        """Highest cost of such a call, whatever the endpoint's cache does."""
        return max(
            self.cost(prompt, 0, completion),
            self.cost(prompt, prompt, completion),
            self.cost(prompt, 0, completion, prompt),
        )
