"""Code that `reading` calls: it uses the clock, in a module that it imports."""

from __future__ import annotations

import time


def now() -> float:
    return time.time()
