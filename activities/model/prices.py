"""Compute the cost of model calls from the prices pinned in a job's configuration."""

from collections.abc import Iterable

from activities.model.providers import REHEARSAL
from activities.model.reply_stream import StreamedReply
from config.schema.agent import AgentConfig, ConfigError
from protocol.usage import Price, Usage

FREE = Price(prompt=0, completion=0)


def price_of(config: AgentConfig, model: str) -> Price | None:
    return config.prices.get(model, FREE if model == REHEARSAL else None)


def highest_price(config: AgentConfig) -> Price | None:
    prices = [price_of(config, model.name) for model in config.models]
    known = [price for price in prices if price is not None]
    if len(known) < len(prices):
        return None
    return Price(
        prompt=max(price.max_cost(1_000_000, 0) for price in known),
        completion=max(price.completion for price in known),
    )


def priced_usage(reply: StreamedReply, config: AgentConfig, estimate: int = 0) -> Usage:
    """Return the usage of a call and of broken replies before it, with the cost if known."""
    total = Usage(estimated_tokens=estimate) if estimate else Usage()
    for model, usage in [(reply.model, reply.usage), *reply.unfinished.items()]:
        price = price_of(config, model) or FREE
        cost = price.cost(
            usage.prompt_tokens, usage.cached_tokens, usage.completion_tokens, usage.written_tokens
        )
        total.add(usage.with_cost(cost))
    # Zeros stay unset, so that they are not written into the history at each step.
    return Usage.model_validate(total.model_dump(exclude_defaults=True))


def priced_usages(replies: Iterable[StreamedReply], config: AgentConfig) -> Usage:
    total = Usage()
    for reply in replies:
        total.add(priced_usage(reply, config))
    return total


def check_prices_for_cost_limit(config: AgentConfig) -> None:
    unknown = [model.name for model in config.models if price_of(config, model.name) is None]
    for scope, budget in (("job", config.limits.job), ("phase", config.limits.phase)):
        if budget.cost is not None and unknown:
            raise ConfigError(
                f"agent {config.name}: limits.{scope}.cost: the price of the model {unknown[0]} is "
                f"not known; set prices.{unknown[0]} to "
                "{prompt: …, cached: …, written: …, completion: …}, for a million tokens each"
            )
