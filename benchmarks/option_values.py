"""Option values of the benchmarks: numbers with which something is measured."""

import argparse
import math
from contextlib import suppress

_LARGEST = 100_000


def parse_whole_number(text: str) -> int:
    """Parse a whole number above zero. Raises ArgumentTypeError: the text is no such number."""
    if text.isascii() and text.isdigit() and 0 < int(text) <= _LARGEST:
        return int(text)
    raise argparse.ArgumentTypeError(
        f"found {text!r}, expected a whole number from 1 to {_LARGEST:,}"
    )


def parse_positive_number(text: str) -> float:
    """Parse a finite number above zero. Raises ArgumentTypeError: the text is no such number."""
    with suppress(ValueError):
        number = float(text)
        if number > 0 and math.isfinite(number):
            return number
    raise argparse.ArgumentTypeError(f"found {text!r}, expected a number above 0, as 15 or 0.5")
