"""Renders reports as one HTML file without scripts or external resources.

Autoescaping applies to all values in the template. The page's security policy forbids scripts and
requests, in case something gets through.
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
from importlib.resources import files
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from cli.report import charts, timeline_chart, value_formats
from cli.report.report_content import ProjectReport, Report
from cli.report.trial_report import TrialReport
from cli.report.value_formats import format_money, format_number, format_share, format_time

_HERE = files(__package__)
TRACE_COLUMNS = ("time", "type", "source", "guard", "phase", "step")


def render_html_page(report: Report | ProjectReport | TrialReport) -> str:
    """Render the page of a job, of all jobs of a project, or of a trial."""
    if isinstance(report, TrialReport):
        title = f"{report.title or report.id} · {report.id}"
        return _render_report_template("trial.html.j2", title, trial=report)
    if isinstance(report, Report):
        return _render_report_page([report], report.job.title or report.job.id, report.job.id)
    return _render_report_page(report.jobs, report.title or report.id, report.id, report)


def _render_report_page(
    reports: list[Report], title: str, name: str, project: ProjectReport | None = None
) -> str:
    return _render_report_template(
        "page.html.j2",
        f"{title} · {name}",
        project=project,
        reports=reports,
        trace_columns=TRACE_COLUMNS,
    )


def _render_report_template(template: str, title: str, **content: Any) -> str:
    style = _HERE.joinpath("page.css").read_text("utf-8")
    digest = b64encode(hashlib.sha256(style.encode()).digest()).decode()
    environment = Environment(
        loader=FunctionLoader(lambda name: _HERE.joinpath(name).read_text("utf-8")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "when": format_time,
        "size": value_formats.format_size,
        "share": format_share,
    }
    forms = {
        "duration": value_formats.format_duration,
        "number": format_number,
        "money": format_money,
    }
    environment.filters |= forms
    return environment.get_template(template).render(
        title=title,
        draw=charts,
        timeline=timeline_chart,
        # Our own file; escaped it would not be a valid style sheet.
        style=Markup(style),
        policy=f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; "
        "form-action 'none'",
        **forms,
        **content,
    )
