"""Formats of values in a report's page."""

from datetime import UTC, datetime


def format_duration(seconds: float | None) -> str:
    """Format as `4.2 s`, `3 min`, `3 min 05 s`, `2 h 10 min` or `3 d 4 h`."""
    if seconds is None:
        return "–"  # noqa: RUF001 - a dash for what is not known
    if seconds < 60:
        return f"{seconds:.3g} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s" if rest else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes:02d} min" if minutes else f"{hours} h"
    return f"{hours // 24} d {hours % 24} h" if hours % 24 else f"{hours // 24} d"


def format_size(count: int) -> str:
    """Format as `13 B`, `27.0 kB` or `1.2 MB`."""
    value = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000 or unit == "GB":
            break
        value /= 1000
    return f"{count} B" if unit == "B" else f"{value:.1f} {unit}"


def format_time(moment: datetime | None) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S") if moment else "–"  # noqa: RUF001


def format_number(value: float | None) -> str:
    return "–" if value is None else f"{value:,.15g}"  # noqa: RUF001


def format_money(value: float) -> str:
    if not value:
        return "0"
    return f"{value:,.4f}" if value < 1 else f"{value:,.2f}"


def format_share(value: float | None) -> str:
    return "–" if value is None else f"{value:.0%}"  # noqa: RUF001
