"""The version of a worker, from our own variables or those of a controller."""

from __future__ import annotations

import pytest

from engine.deployment import version_label, worker_deployment

OURS = {"LONGHAUL_DEPLOYMENT": "tea", "LONGHAUL_BUILD_ID": "1"}
INJECTED = {"TEMPORAL_DEPLOYMENT_NAME": "jobs/longhaul", "TEMPORAL_WORKER_BUILD_ID": "0-1-9f3c"}


@pytest.mark.parametrize(
    ("variables", "label"),
    [
        ({}, ""),
        (OURS, "version tea.1, "),
        (INJECTED, "version jobs/longhaul.0-1-9f3c, "),
        ({**INJECTED, **OURS}, "version tea.1, "),
    ],
    ids=["neither", "ours", "the controller's", "both"],
)
def test_ours_count_before_those_of_the_controller(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], label: str
) -> None:
    for name in {**OURS, **INJECTED}:
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert version_label(worker_deployment()) == label
