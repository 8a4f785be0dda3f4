"""Settings of a start."""

import pytest

from cli.start.job_settings import SHIPPED_AGENTS, check_start_config
from config.agent_files import agent_names, load_agent
from config.schema.agent import ConfigError


def test_an_agent_that_was_added_to_the_checkout_is_checked() -> None:
    added = load_agent("generalist").model_copy(update={"name": "critic", "tools": ["reed_file"]})
    with pytest.raises(ConfigError, match="'reed_file' is neither a tool nor a group of tools"):
        check_start_config(added, {})


def test_the_shipped_agents_are_known() -> None:
    assert sorted(SHIPPED_AGENTS) == agent_names()
