"""Lengths, for people who measure in feet."""

METRES_A_FOOT = 0.3048


def feet(metres: float) -> float:
    """Return a length in feet."""
    return metres * METRES_A_FOOT


def metres(feet: float) -> float:
    """Return a length in metres."""
    return feet * METRES_A_FOOT
