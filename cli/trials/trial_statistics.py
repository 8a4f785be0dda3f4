"""Shares of completed runs: their intervals, and whether two of them differ significantly."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import comb, sqrt
from statistics import NormalDist, median

from protocol.data_model import Data

CONFIDENCE = 0.95
LEVEL = Fraction(1, 20)
"""Probability below which a difference is not attributed to chance."""


@dataclass(frozen=True)
class Share:
    """How many runs of a configuration completed."""

    completed: int
    runs: int

    def __post_init__(self) -> None:
        if not 0 <= self.completed <= self.runs:
            raise ValueError(f"{self.completed} of {self.runs} runs cannot have completed")

    def __str__(self) -> str:
        return f"{self.completed} of {self.runs}"


def share_interval(share: Share) -> tuple[float, float]:
    """Return the bounds of the 95 % interval of a share, by Wilson's score method.

    Without runs nothing is known: 0 to 1.
    """
    if not share.runs:
        return 0.0, 1.0
    z = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
    runs, rate = share.runs, share.completed / share.runs
    centre = (rate + z * z / (2 * runs)) / (1 + z * z / runs)
    half = z * sqrt(rate * (1 - rate) / runs + z * z / (4 * runs * runs)) / (1 + z * z / runs)
    # Rounding would move a bound of 0 or 1 slightly off it.
    low = 0.0 if share.completed == 0 else centre - half
    high = 1.0 if share.completed == share.runs else centre + half
    return low, high


def all_complete_rate(share: Share, count: int) -> float:
    """Return how likely so many runs all complete, `pass^k`: by the runs that there were, unbiased.

    Raises ValueError: there were fewer runs.
    """
    if not 0 < count <= share.runs:
        raise ValueError(f"{share.runs} runs say nothing of {count}")
    return comb(share.completed, count) / comb(share.runs, count)


def fisher_probability(first: Share, second: Share) -> Fraction:
    """Return the two-sided probability of Fisher's exact test.

    This is the probability of a division at least as unlikely as the observed one, if both
    configurations complete equally often. Integers keep the comparison of ties exact.
    """
    completed, runs = first.completed + second.completed, first.runs + second.runs
    least, most = max(0, completed - second.runs), min(completed, first.runs)
    ways = {
        number: comb(first.runs, number) * comb(second.runs, completed - number)
        for number in range(least, most + 1)
    }
    observed = ways[first.completed]
    return Fraction(sum(way for way in ways.values() if way <= observed), comb(runs, completed))


def compare_completion_shares(shares: Mapping[str, Share]) -> list[str]:
    """Return a sentence for each configuration after the first, which it is compared with.

    The level is divided by the number of comparisons (Bonferroni), so that many configurations
    do not yield a difference by chance.
    """
    names = list(shares)
    comparisons = len(names) - 1
    return [
        _compare_share_pair(names[0], shares[names[0]], name, shares[name], comparisons)
        for name in names[1:]
    ]


def _compare_share_pair(
    base_name: str, base: Share, name: str, share: Share, comparisons: int
) -> str:
    counts = f"{name} completed {share}, {base_name} {base}"
    if not base.runs or not share.runs:
        return f"{counts}: nothing can be said without ended runs of both."
    level = LEVEL / comparisons
    probability = fisher_probability(base, share)
    p_value = "under 0.001" if probability < Fraction(1, 1000) else f"{float(probability):.3f}"
    chance = f"p = {p_value}, Fisher's exact test, level {float(level):.2g}"
    if probability < level:
        more = share.completed * base.runs > base.completed * share.runs
        return f"{counts}: {name} completes {'more' if more else 'less'} often ({chance})."
    if fisher_probability(Share(0, base.runs), Share(share.runs, share.runs)) >= level:
        return f"{counts}: so few runs cannot show any difference ({chance})."
    return (
        f"{counts}: the difference may be chance ({chance}); "
        "this does not show that they are equally good."
    )


class TrialSpread(Data):
    """Median, least and most of a figure of several runs."""

    median: float
    least: float
    most: float

    @classmethod
    def measure(cls, values: Iterable[float]) -> "TrialSpread | None":
        """Return the spread; None without values."""
        numbers = sorted(values)
        if not numbers:
            return None
        return cls(median=median(numbers), least=numbers[0], most=numbers[-1])
