"""A report as a single HTML file: no scripts, nothing external, readable in print."""

import hashlib
from base64 import b64encode
from importlib.resources import files
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from cli.jobs.outline_text import outline_with
from cli.report import charts, report_sections, value_formats
from cli.report.report_content import AnyReport, ProjectReport, Report, TrialReport
from protocol.outline import Outline
from protocol.status import AnyStatus

_HERE = files(__package__)


def render_html_page(report: AnyReport) -> str:
    """Render the page of a job, of a project with its jobs, or of a trial."""
    style = _HERE.joinpath("page.css").read_text("utf-8")
    digest = b64encode(hashlib.sha256(style.encode()).digest()).decode()
    environment = Environment(
        loader=FunctionLoader(lambda name: _HERE.joinpath(name).read_text("utf-8")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters: dict[str, Any] = {
        "when": value_formats.format_time,
        "share": value_formats.format_share,
        "duration": value_formats.format_duration,
        "number": value_formats.format_number,
        "money": value_formats.format_money,
    }
    environment.filters |= filters
    links = report.links if isinstance(report, TrialReport) else None
    jobs = report.jobs if isinstance(report, ProjectReport) else [report]
    return environment.get_template("page.html.j2").render(
        report=report,
        kind=report.status.__class__.__name__.removesuffix("Status"),
        jobs=[job for job in jobs if isinstance(job, Report)],
        outline=_whole_outline(report.status, links),
        outline_of=_whole_outline,
        charts=charts,
        deliverables_section=report_sections.deliverables_section,
        evidence_section=report_sections.evidence_section,
        incident_sections=report_sections.incident_sections,
        habits_section=report_sections.habits_section,
        people_sections=report_sections.people_sections,
        # Our own file; escaped it would not be a valid style sheet.
        style=Markup(style),
        policy=f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; "
        "form-action 'none'",
    )


def _whole_outline(status: AnyStatus, links: dict[str, str] | None = None) -> Outline:
    """Return an outline with all notices."""
    return outline_with(status, status.notices[::-1], links)
