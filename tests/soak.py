"""How often a test repeats: a few times in every run, many times for `make soak`."""

from __future__ import annotations

import os
from typing import TypeVar

T = TypeVar("T")

SOAK = bool(os.environ.get("LONGHAUL_SOAK"))


def soak(quick: T, long: T) -> T:
    """The one amount, or the other when `make soak` runs."""
    return long if SOAK else quick
