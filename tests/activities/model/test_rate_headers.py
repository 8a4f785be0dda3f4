"""The limits that endpoints name in their answers, in their several spellings."""

import pytest

from activities.model.rate_headers import read_rate_headers
from activities.stores.learned_quota import NamedLimits

NOTHING = NamedLimits()
OPENAI = {
    "x-ratelimit-limit-requests": "5000",
    "x-ratelimit-limit-tokens": "160000",
    "x-ratelimit-limit-tokens_usage_based": "1",
    "x-ratelimit-remaining-requests": "4999",
    "x-ratelimit-remaining-tokens": "159976",
    "x-ratelimit-reset-requests": "12ms",
    "x-ratelimit-reset-tokens": "6m0.5s",
}
ANTHROPIC = {
    "date": "Mon, 30 Nov 2026 10:00:00 GMT",
    "anthropic-ratelimit-requests-limit": "50",
    "anthropic-ratelimit-input-tokens-limit": "30000",
    "anthropic-ratelimit-tokens-limit": "38000",
    "anthropic-ratelimit-tokens-remaining": "30000",
    "anthropic-ratelimit-tokens-reset": "2026-11-30T10:00:12Z",
}
BY_PERIOD = {
    "x-ratelimit-limit-req-minute": "120",
    "x-ratelimit-limit-tokens-minute": "500000",
    "x-ratelimit-remaining-tokens-minute": "499000",
    "x-ratelimit-limit-tokens-month": "7",
    "x-ratelimit-limit-requests-day": "9",
    "x-ratelimit-limit-req-second": "1",
}


@pytest.mark.parametrize(
    ("headers", "limits"),
    [
        ({}, NOTHING),
        ({"x-ratelimit-limit-requests": "1e-9", "x-ratelimit-limit-tokens": "1"}, NOTHING),
        (OPENAI, NamedLimits(5_000, 160_000, 159_976, 360.5)),
        (ANTHROPIC, NamedLimits(50, 38_000, 30_000, 12)),
        (BY_PERIOD, NamedLimits(60, 500_000, 499_000)),
        ({"x-rate-limit-reset-tokens": "55"}, NamedLimits(tokens_reset=55)),
        # Nobody knows of what, and for how long.
        ({"x-ratelimit-limit": "10", "x-ratelimit-reset": "1", "ratelimit-limit": "9"}, NOTHING),
        ({"x-ratelimit-limit-tokens": "-1", "x-ratelimit-limit-requests": "many"}, NOTHING),
    ],
    ids=[
        "none",
        "unbelievable",
        "openai",
        "anthropic",
        "periods",
        "azure",
        "without-unit",
        "unusable",
    ],
)
def test_limits_are_read_in_every_spelling(headers: dict[str, str], limits: NamedLimits) -> None:
    assert read_rate_headers(headers) == limits


@pytest.mark.parametrize(
    ("limits", "spread"),
    [
        (NamedLimits(None, 60_000, 50_000, 10), 5),
        (NamedLimits(None, 60_000, 30_000, 10), 1),
        (NamedLimits(None, 60_000, 59_000, 0.1), 10),
        (NamedLimits(None, 60_000, 50_000), 1),
        (NamedLimits(None, 60_000, 40_000, 360), 1),
    ],
)
def test_tokens_are_used_faster_while_most_of_them_remain(
    limits: NamedLimits, spread: float
) -> None:
    assert limits.spread == pytest.approx(spread)
