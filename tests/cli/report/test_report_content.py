"""The data of a report: programs read it, so its form must not change."""

import json
from pathlib import Path
from typing import Any

from cli.report import report_content
from cli.report.report_content import ProjectReport, Report
from cli.report.sanitize import sanitize_data, sanitize_line, sanitize_text
from tests.cli.report.samples import report

FORM = Path(__file__).with_name("form.json")
KEY = "sk-proj-" + "a1B2c3D4e5F6g7H8i9J0" * 2


def form() -> dict[str, Any]:
    """Return field names and types, without descriptions."""
    schema = ProjectReport.model_json_schema(mode="serialization")
    parts = {"ProjectReport": schema, **schema["$defs"]}
    # The parts of a status have a test of their own.
    parts = {name: part for name, part in parts.items() if hasattr(report_content, name)}
    parts = {name: part for name, part in parts.items() if not name.endswith("Status")}
    return {
        name: {k: _type(v) for k, v in part["properties"].items()} for name, part in parts.items()
    }


def _type(schema: dict[str, Any]) -> Any:
    return {k: v for k, v in schema.items() if k not in ("title", "description", "default")}


def test_the_form_is_the_one_that_programs_know() -> None:
    stored_form = json.loads(FORM.read_text(encoding="utf-8"))
    assert form() == stored_form, (
        "a change that breaks readers needs another `version`; then renew form.json"
    )


def test_a_report_reads_back_as_it_was() -> None:
    original = report()
    assert Report.model_validate_json(original.model_dump_json()) == original


def test_texts_of_others_are_made_fit() -> None:
    assert sanitize_line("a\n b\x1b[31m \u202eevil") == "a b\\x1b[31m \\x202eevil"
    assert sanitize_text("a\r\n b\n") == "a\\x0d\n b"
    assert sanitize_line("x" * 1000, 10) == "x" * 9 + "…"
    assert sanitize_line(None) == ""
    assert "\ud800" not in sanitize_line("lone \ud800 surrogate")
    assert "a1B2" not in sanitize_line(f"key {KEY}")
    assert "a1B2" not in sanitize_text(f"key\n{KEY}")
    sanitized = sanitize_data({"event": {"what_happened": f"wrote {KEY}", "step": 3, "why": None}})
    assert "a1B2" not in str(sanitized)
    assert sanitized["event"]["step"] == 3
