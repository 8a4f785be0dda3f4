"""Intervals as people type them: `30m`, `6h`, `1d`."""

from datetime import timedelta

from cli.output import UserError

OFF = "off"
UNITS = {"m": 60, "h": 3600, "d": 86_400}
DIGITS = 5
"""Maximum digits of a number: a longer one may exceed what a schedule or timedelta can hold."""


def parse_schedule_interval(
    text: str, option: str = "--schedule", also: str = f", or {OFF}"
) -> timedelta:
    """Parse an interval such as `1d`. Raises UserError, which names the option.

    Args:
        also: Other values that the option accepts, for the message.
    """
    number, unit = text[:-1], text[-1:]
    known = number.isdecimal() and len(number) <= DIGITS and unit in UNITS
    if not known or int(number) == 0:
        raise UserError(f"{option}: found {text!r}, expected such as 30m, 6h or 1d{also}")
    return timedelta(seconds=int(number) * UNITS[unit])


def schedule_interval_text(every: timedelta) -> str:
    """Format an interval as typed: `1d`, `90m`."""
    seconds = int(every.total_seconds())
    for unit, length in reversed(UNITS.items()):
        if seconds % length == 0:
            return f"{seconds // length}{unit}"
    return f"{seconds}s"
