"""How often a test repeats: a few times in every run, many times for `make soak`."""

import os
from typing import TypeVar

T = TypeVar("T")

SOAK = bool(os.environ.get("LONGHAUL_SOAK"))


def soak(quick: T, long: T) -> T:
    """Return the first amount, or the second during `make soak`."""
    return long if SOAK else quick


def patient(seconds: float) -> float:
    """Return a bound of time that holds where other programs take most of a machine, too.

    `make soak`, which is for a machine of its own, keeps to the seconds.
    """
    return seconds if SOAK else 5 * seconds
