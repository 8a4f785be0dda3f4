"""The page: a view of reports as one HTML file, which loads nothing and runs nothing.

Whatever is put into the template is escaped. The policy in the page's head forbids scripts and
every request, so that nothing would run or load even if something got through.
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.resources import files

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from cli.report import drawing
from cli.report.data import Report

_HERE = files(__package__)
TRACE_COLUMNS = ("time", "type", "source", "guard", "phase", "step")


def page(reports: Sequence[Report], title: str = "") -> str:
    """The page of one job or of several.

    Args:
        title: Of the page; the job's own if left out.
    """
    style = _HERE.joinpath("page.css").read_text("utf-8")
    digest = b64encode(hashlib.sha256(style.encode()).digest()).decode()
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {
        "when": _when,
        "duration": drawing.duration,
        "size": drawing.size,
        "number": _number,
        "money": _money,
        "share": _share,
    }
    template = environment.from_string(_HERE.joinpath("page.html.j2").read_text("utf-8"))
    first = reports[0].job if reports else None
    named = f"{first.title or first.id} · {first.id}" if first else "No jobs"
    return template.render(
        title=title or named,
        several=len(reports) != 1,
        reports=reports,
        draw=drawing,
        trace_columns=TRACE_COLUMNS,
        # Our own file; quoted as text it would be no style sheet.
        style=Markup(style),
        policy=f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; "
        "form-action 'none'",
    )


def _when(at: datetime | None) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S") if at else "–"  # noqa: RUF001


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:,}"  # noqa: RUF001


def _money(value: float) -> str:
    if not value:
        return "0"
    return f"{value:,.4f}" if value < 1 else f"{value:,.2f}"


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.0%}"  # noqa: RUF001
