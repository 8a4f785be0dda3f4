"""`sandbox`: a command is run as those of an agent's jobs, and what it may do is told."""

from pathlib import Path

import pytest

from activities.commands import sandbox
from cli.app import main

WHY = sandbox.sandbox_problem(sandbox.find_bwrap())
confined = pytest.mark.skipif(WHY is not None, reason=f"no sandbox here: {WHY}")
Captured = pytest.CaptureFixture[str]


def test_what_a_command_may_do_is_told(capsys: Captured) -> None:
    assert main(["sandbox", "mender", "--set", 'shell.network=["pypi.org"]']) == 0
    printed = capsys.readouterr().out
    assert "network: pypi.org\n" in printed
    assert "limits: 600 s, " in printed


@confined
def test_a_command_sees_a_folder_and_changes_nothing_of_it(
    tmp_path: Path, capsys: Captured
) -> None:
    (tmp_path / "tea.txt").write_text("green\n")
    line = "cat tea.txt; pwd; rm tea.txt; echo x > /etc/x; exit 3"
    assert main(["sandbox", "mender", "--folder", str(tmp_path), "--", "sh", "-c", line]) == 3
    printed = capsys.readouterr().out
    assert printed.startswith("green\n/workspace/repo\n")
    assert "Read-only file system" in printed
    assert (tmp_path / "tea.txt").read_text() == "green\n"


@confined
def test_set_up_and_limits_that_fail_are_told(tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "requirements.txt").write_text("./nothing\n")
    setting = ["--set", "tests.command=python3 -m unittest", "--set", "shell.setup_network=false"]
    tried = ["sandbox", "mender", *setting, "--folder", str(tmp_path), "--", "false"]
    assert main(tried) == 2
    printed = capsys.readouterr().err
    assert "once more, with what its files say: python3 -m venv" in printed
    assert "of shell.setup failed" in printed
    assert main(["sandbox", "mender", "--set", "shell.seconds=1", "--", "sleep", "5"]) == 1
    assert "ended: it did not end within 1 s" in capsys.readouterr().err
