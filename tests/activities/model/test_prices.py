"""What a call costs is known where it was made, and a limit that cannot be kept fails the start."""

from typing import Any

import pytest

from activities.model.prices import (
    check_prices_for_cost_limit,
    highest_price,
    price_of,
    priced_usage,
)
from activities.model.reply_stream import StreamedReply
from config.agent_files import load_agent
from config.schema.agent import AgentConfig, ConfigError
from protocol.usage import Usage

PRICES = {"m-1.5": {"prompt": 2, "cached": 0.5, "completion": 10}}
USAGE = Usage(model_calls=1, prompt_tokens=1000, cached_tokens=400, completion_tokens=50)


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LONGHAUL_MODEL", raising=False)


def config(name: str, **settings: Any) -> AgentConfig:
    return load_agent("generalist", {"model.name": name, "prices": PRICES, **settings})


def reply(model: str) -> StreamedReply:
    return StreamedReply(text="", calls=[], finish="stop", usage=USAGE, model=model)


def test_a_call_costs_what_its_tokens_cost() -> None:
    assert priced_usage(reply("m-1.5"), config("m-1.5")).cost == pytest.approx(
        0.0012 + 0.0002 + 0.0005
    )
    assert USAGE.cost == 0


def test_what_is_written_to_a_cache_has_its_own_price() -> None:
    prices = {"m-1.5": {"prompt": 2, "cached": 0.5, "written": 2.5, "completion": 10}}
    written = StreamedReply(
        text="", calls=[], finish="stop", model="m-1.5",
        usage=USAGE.model_copy(update={"written_tokens": 500}),
    )  # fmt: skip
    cost = priced_usage(written, config("m-1.5", prices=prices)).cost
    assert cost == pytest.approx((100 * 2 + 400 * 0.5 + 500 * 2.5 + 50 * 10) / 1e6)
    # The reserved price covers whatever happens to the prompt.
    highest = highest_price(config("m-1.5", prices=prices))
    assert highest is not None
    assert highest.prompt == 2.5


@pytest.mark.parametrize("name", ["rehearsal", "unknown"])
def test_what_costs_nothing_says_nothing(name: str) -> None:
    """Unset fields are not written into the history."""
    usage = priced_usage(reply(name), config(name))
    assert usage.model_fields_set == {
        "model_calls", "prompt_tokens", "cached_tokens", "completion_tokens"
    }  # fmt: skip


def test_the_rehearsal_model_is_free_unless_it_has_a_price() -> None:
    free = price_of(config("rehearsal"), "rehearsal")
    assert free is not None
    assert free.cost(10**6, 0, 10**6) == 0
    charged = config("rehearsal", prices={"rehearsal": {"prompt": 1, "completion": 1}})
    assert priced_usage(reply("rehearsal"), charged).cost > 0


@pytest.mark.parametrize("scope", ["job", "phase"])
def test_a_limit_on_cost_needs_the_price(scope: str) -> None:
    limit = {f"limits.{scope}.cost": 2.5}
    check_prices_for_cost_limit(config("m-1.5", **limit))
    check_prices_for_cost_limit(config("rehearsal", **limit))
    check_prices_for_cost_limit(config("unknown"))
    with pytest.raises(
        ConfigError, match=rf"limits.{scope}.cost: .*model unknown .*prices.unknown"
    ):
        check_prices_for_cost_limit(config("unknown", **limit))


def test_a_fallback_costs_its_own_price_and_the_dearest_is_reserved() -> None:
    prices = {**PRICES, "big": {"prompt": 20, "completion": 5}}
    chain = config("m-1.5", prices=prices, fallbacks=[{"name": "big"}])
    assert priced_usage(reply("big"), chain).cost == pytest.approx(0.02 + 0.00025)
    highest = highest_price(chain)
    assert highest is not None
    assert (highest.prompt, highest.completion) == (20, 10)
    assert highest_price(config("m-1.5", fallbacks=[{"name": "unknown"}])) is None
    with pytest.raises(ConfigError, match="price of the model unknown"):
        check_prices_for_cost_limit(
            config("m-1.5", fallbacks=[{"name": "unknown"}], **{"limits.job.cost": 1.0})
        )
