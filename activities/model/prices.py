"""What model calls cost, by the prices that the job's configuration pins."""

from __future__ import annotations

from activities.model.endpoint import REHEARSAL
from config.schema import AgentConfig, Problem
from protocol.limits import Price
from protocol.requests import Usage

FREE = Price(prompt=0, completion=0)


def price_of(config: AgentConfig) -> Price | None:
    """The price of the agent's model, None when nobody said. The rehearsal model is free."""
    name = config.model.name
    return config.prices.get(name, FREE if name == REHEARSAL else None)


def priced(usage: Usage, config: AgentConfig) -> Usage:
    """The usage of one call with its cost, if it is known."""
    price = price_of(config)
    if price is None:
        return usage
    cost = price.cost(usage.prompt_tokens, usage.cached_tokens, usage.completion_tokens)
    # What costs nothing stays unset, so that it is not written into the history at each step.
    return usage.model_copy(update={"cost": cost}) if cost else usage


def check_prices(config: AgentConfig) -> None:
    """Refuse a limit on cost that could not be kept.

    Raises:
        Problem: a limit on cost, and the model's price is not known.
    """
    name = config.model.name
    for scope, budget in (("job", config.limits.job), ("phase", config.limits.phase)):
        if budget.cost is not None and price_of(config) is None:
            raise Problem(
                f"agent {config.name}: limits.{scope}.cost: the price of the model {name} is not "
                f"known; set prices.{name} to {{prompt: …, cached: …, completion: …}}, for a "
                "million tokens each"
            )
