"""What model calls cost, by the prices that the job's configuration pins."""

from __future__ import annotations

from activities.model.endpoint import REHEARSAL
from activities.model.stream import StreamedReply
from config.schema.agent import AgentConfig, ConfigError
from protocol.limits import Price
from protocol.requests import Usage

FREE = Price(prompt=0, completion=0)


def price_of(config: AgentConfig, model: str) -> Price | None:
    """The price of a model, None when nobody said. The rehearsal model is free."""
    return config.prices.get(model, FREE if model == REHEARSAL else None)


def highest_price(config: AgentConfig) -> Price | None:
    """A price that no call of the agent's models exceeds; None when one is not known."""
    prices = [price_of(config, model.name) for model in config.models]
    known = [price for price in prices if price is not None]
    if len(known) < len(prices):
        return None
    return Price(
        prompt=max(price.max_cost(1_000_000, 0) for price in known),
        completion=max(price.completion for price in known),
    )


def priced_usage(reply: StreamedReply, config: AgentConfig, estimate: int = 0) -> Usage:
    """The usage of one call with its cost, if that is known.

    Args:
        reply: What came back.
        config: With the prices.
        estimate: Tokens of the prompt by our own count, where there is one.
    """
    usage, price = reply.usage, price_of(config, reply.model)
    # What is zero stays unset, so that it is not written into the history at each step.
    figures = usage.model_dump(exclude_defaults=True)
    if estimate:
        figures["estimated_tokens"] = estimate
    if price and (
        cost := price.cost(
            usage.prompt_tokens,
            usage.cached_tokens,
            usage.completion_tokens,
            usage.written_tokens,
        )
    ):
        figures["cost"] = cost
    return Usage.model_validate(figures)


def check_prices(config: AgentConfig) -> None:
    """Refuse a limit on cost that could not be kept.

    Raises:
        ConfigError: a limit on cost, and a model's price is not known.
    """
    unknown = [model.name for model in config.models if price_of(config, model.name) is None]
    for scope, budget in (("job", config.limits.job), ("phase", config.limits.phase)):
        if budget.cost is not None and unknown:
            raise ConfigError(
                f"agent {config.name}: limits.{scope}.cost: the price of the model {unknown[0]} is "
                f"not known; set prices.{unknown[0]} to "
                "{prompt: …, cached: …, written: …, completion: …}, for a million tokens each"
            )
