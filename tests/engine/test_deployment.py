"""The version of a worker, from our own variables or those of a controller."""

from pathlib import Path

import pytest

from engine.deployment import unversioned_build_id, version_label, worker_deployment

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


def test_an_unversioned_build_is_named_by_the_code_of_its_workflows(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    names = []
    for kind, code in (("green_tea", "HOT = 70"), ("black_tea", "HOT = 95"), ("herbs", "HOT = 95")):
        (tmp_path / kind).mkdir()
        (tmp_path / kind / "brew.py").write_text(code)
        names.append(unversioned_build_id((kind,)))
    assert names[0] != names[1] == names[2]
    assert unversioned_build_id() not in names
