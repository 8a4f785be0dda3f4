"""Each alert for Prometheus is about metrics that exist, and has a section in the runbook."""

import json
import re
import shutil
import subprocess
from typing import Any

import pytest
import yaml

from tests.docs.reading import ROOT, anchors

RULES = ROOT / "examples/prometheus/longhaul.rules.yaml"
DASHBOARD = ROOT / "examples/grafana/longhaul.dashboard.json"
RUNBOOK = "docs/alerts.md"
METRIC = re.compile(r"\b(?:longhaul|temporal)_[a-z_]+\b")
RARE = {
    "longhaul_notifications_lost_total",
    "longhaul_refusals_total",
    "temporal_activity_execution_failed_total",
    "temporal_request_failure_total",
    "temporal_workflow_task_execution_failed_total",
}
"""Metrics that are there once something was refused, lost or failed."""


def alerts() -> list[dict[str, Any]]:
    [group] = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    rules: list[dict[str, Any]] = group["rules"]
    return rules


def alert_metrics() -> set[str]:
    """Return the metrics of alerts and dashboard that a worker which has done a job serves."""
    panels = json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]
    expressions = [rule["expr"] for rule in alerts()]
    expressions += [target["expr"] for panel in panels for target in panel["targets"]]
    return {name for each in expressions for name in METRIC.findall(each)} - RARE


@pytest.mark.parametrize("alert", alerts(), ids=lambda alert: alert["alert"])
def test_each_alert_has_a_section_in_the_runbook(alert: dict[str, Any]) -> None:
    page, _, anchor = alert["annotations"]["runbook"].partition("#")
    assert page == RUNBOOK
    assert anchor == alert["alert"].lower()
    assert anchor in anchors(ROOT / page)
    assert alert["annotations"]["summary"].endswith(".")
    assert alert["labels"]["severity"] in ("warning", "critical")


def test_each_section_of_the_runbook_is_about_an_alert() -> None:
    text = (ROOT / RUNBOOK).read_text(encoding="utf-8")
    named = re.findall(r"^### (Longhaul\w+)$", text, re.MULTILINE)
    assert named == [alert["alert"] for alert in alerts()]


@pytest.mark.skipif(not shutil.which("promtool"), reason="promtool is not installed")
def test_prometheus_accepts_the_rules() -> None:
    subprocess.run(["promtool", "check", "rules", str(RULES)], check=True)
