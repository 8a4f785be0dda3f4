"""What model calls and tool calls have used: counts, tokens and money."""

from typing import Annotated

from pydantic import Field

from protocol.data_model import Data


class Spend(Data):
    tokens: int = 0
    cost: float = 0.0

    def __sub__(self, other: "Spend") -> "Spend":
        return Spend(
            tokens=max(0, self.tokens - other.tokens),
            cost=max(0.0, round(self.cost - other.cost, 9)),
        )

    def __add__(self, other: "Spend") -> "Spend":
        return Spend(tokens=self.tokens + other.tokens, cost=round(self.cost + other.cost, 9))

    @property
    def words(self) -> str:
        """`2.50 and 1,234 tokens`; without the cost where nothing has a price."""
        tokens = f"{self.tokens:,} tokens"
        return f"{self.cost:,.2f} and {tokens}" if self.cost else tokens


class Progress(Data):
    """How much was proven or completed, and what had been spent when it last became more."""

    count: int = 0
    spent: Spend = Field(default_factory=Spend)

    def counted(self, count: int, spent: Spend) -> "Progress":
        return Progress(count=count, spent=spent if count > self.count else self.spent)


class Usage(Data):
    """Tokens and money of model calls; cost in the price table's currency."""

    model_calls: int = 0
    sent_calls: int = 0
    """Tool calls in the model's replies, as the endpoint sent them."""
    tool_calls: int = 0
    """Calls that were run, successful or not; limits count these. Calls after the one that ends a
    phase are neither run nor refused."""
    refused_calls: int = 0
    """Calls that a gate, a guard, a person or a rule of the phase refused."""
    failed_calls: int = 0
    """Calls that were run and ended in an error."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    """Prompt tokens that the endpoint read from its cache."""
    written_tokens: int = 0
    """Prompt tokens that the endpoint wrote to its cache."""
    unfinished_tokens: int = 0
    """Tokens of replies that broke off, by estimate; they are among the prompt's and the
    completion's."""
    unfinished_completion_tokens: int = 0
    """Those of them that are among the completion's."""
    unfinished_cost: float = 0.0
    estimated_tokens: int = 0
    """Prompt tokens by our own count, to compare with the endpoint's count."""
    cost: float = 0.0

    @property
    def spend(self) -> Spend:
        return Spend(tokens=self.prompt_tokens + self.completion_tokens, cost=self.cost)

    @property
    def call_details(self) -> str:
        """`34 sent, 4 refused, 2 failed`; empty where all that were sent were run and succeeded."""
        if self.sent_calls == self.tool_calls and not self.failed_calls:
            return ""
        counts = (self.sent_calls, "sent"), (self.refused_calls, "refused")
        parts = [*counts, (self.failed_calls, "failed")]
        return ", ".join(f"{count:,} {word}" for count, word in parts if count)

    @property
    def unfinished_details(self) -> str:
        """`1,234 estimated, for replies that broke off`; empty if none did."""
        count = self.unfinished_tokens
        return f"{count:,} estimated, for replies that broke off" if count else ""

    @property
    def reported(self) -> "Usage":
        completion = self.unfinished_completion_tokens
        return self.model_copy(
            update={
                "prompt_tokens": self.prompt_tokens - (self.unfinished_tokens - completion),
                "completion_tokens": self.completion_tokens - completion,
                "cost": round(self.cost - self.unfinished_cost, 9),
                "unfinished_tokens": 0,
                "unfinished_completion_tokens": 0,
                "unfinished_cost": 0.0,
            }
        )

    @property
    def as_unfinished(self) -> "Usage":
        return self.model_copy(
            update={
                "model_calls": 0,
                "unfinished_tokens": self.prompt_tokens + self.completion_tokens,
                "unfinished_completion_tokens": self.completion_tokens,
            }
        )

    def with_cost(self, cost: float) -> "Usage":
        """Return it with the cost of its tokens; replies that broke off have their share of it."""
        tokens = self.prompt_tokens + self.completion_tokens
        unfinished = cost * self.unfinished_tokens / tokens if tokens else 0.0
        return self.model_copy(update={"cost": cost, "unfinished_cost": unfinished})

    def add(self, other: "Usage") -> None:
        for name in Usage.model_fields:
            if more := getattr(other, name):
                # Rounded, since sums of money in binary fractions drift.
                setattr(self, name, round(getattr(self, name) + more, 9))


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
        """Cost of a call; some of its `prompt` tokens were read from the cache or written to it."""
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
