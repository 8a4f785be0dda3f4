"""Commands that run tests."""

from __future__ import annotations

from activities.projects.runner_commands import lacks_runner


def test_a_module_that_is_not_made_yet_is_no_lacking_runner() -> None:
    assert lacks_runner(1, "/usr/bin/python3: No module named pytest", "python3 -m pytest")
    assert lacks_runner(127, "sh: 1: jest: not found", "jest")
    assert not lacks_runner(1, "ModuleNotFoundError: No module named 'tea'", "python3 -m pytest")
    assert not lacks_runner(1, "/usr/bin/python3: No module named tea", "python3 -m tea.tests")
