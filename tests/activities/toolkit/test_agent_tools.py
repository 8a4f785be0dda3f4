"""The tools of an agent, as its configuration describes them."""

import pytest

import activities.tool_catalogue  # noqa: F401 - fills the registry, as the worker does
from activities.toolkit.agent_tools import agent_tools, agent_tools_by_name
from activities.toolkit.registry import REGISTRY
from config.agent_files import load_agent

PLAIN = "Run a shell command in a sandbox, in the top folder of the workspace."


@pytest.mark.parametrize(
    ("shell", "added"),
    [
        ({}, ""),
        (
            {"shell.setup": ["true"]},
            " Programs installed for this job are in /layer/bin, which is in PATH.",
        ),
        (
            {"shell.network": ["pypi.org", "*.npmjs.org"]},
            " Over HTTP it reaches these hosts only: pypi.org, *.npmjs.org.",
        ),
    ],
)
def test_the_command_tool_says_what_is_configured(shell: dict[str, object], added: str) -> None:
    config = load_agent("generalist", {"tools": ["files", "todos", "job", "shell"], **shell})
    [command] = [entry for entry in agent_tools(config) if entry.name == "run_command"]
    assert command.summary == PLAIN + added
    assert agent_tools_by_name(config)["run_command"] == command
    assert REGISTRY["run_command"].summary == PLAIN
