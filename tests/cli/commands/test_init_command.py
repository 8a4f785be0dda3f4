"""A configuration folder written by `init`."""

from pathlib import Path

import pytest

from cli.app import main
from cli.checks.config_checks import check_configuration
from cli.start.start_files import project_input


def test_what_is_written_can_be_used_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "mine"
    assert main(["init", str(folder)]) == 0
    shown = capsys.readouterr()
    assert f"export LONGHAUL_CONFIG={folder}" in shown.err
    monkeypatch.setenv("LONGHAUL_CONFIG", str(folder))
    findings = list(check_configuration())
    assert [finding.problem for finding in findings if not finding.ok] == []
    assert "editor" in [finding.name for finding in findings]
    assert project_input(folder / "projects" / "two-steps.yaml")["form"] == "pipeline"


def test_nothing_is_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    assert main(["init", str(tmp_path)]) == 2
    assert "not empty (notes.txt)" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_a_place_that_cannot_be_written_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    assert main(["init", str(tmp_path / "file" / "mine")]) == 2
    assert str(tmp_path / "file") in capsys.readouterr().err
