"""What a start refuses of a configuration that its schema lets through."""

from typing import Any

import pytest

from activities.preparation.agent_models import check_agent_context_windows
from config.agent_files import load_agent
from config.schema.agent import AgentConfig, ConfigError


def config(**settings: Any) -> AgentConfig:
    return load_agent("generalist", settings)


@pytest.mark.parametrize(
    "settings",
    [
        {"model.window": 10_000},
        {"phase_models": {"tactical": {"name": "small", "window": 8192}}},
        {"fallbacks": [{"name": "small", "window": 8192}]},
    ],
)
def test_a_window_that_one_reply_fills_is_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(
        ConfigError, match=r"model.window: found \d+ .*lower model.max_output_tokens"
    ):
        check_agent_context_windows(config(**settings))
    check_agent_context_windows(
        config(**settings, **{"context.share": 1.0, "model.max_output_tokens": 1000})
    )
    check_agent_context_windows(config())
