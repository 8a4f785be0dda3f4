"""What an agent's files say about learning: its settings, and the guards it has already."""

from __future__ import annotations

from config.agent_files import agent_names, load_agent
from config.schema.agent import AgentConfig
from config.schema.agent_sections import Learning
from config.schema.guards import Guard


def load_learning_settings(agent: str) -> Learning:
    """Return the agent's settings; the defaults for an agent that no longer exists."""
    return _load_agent_or_generalist(agent).learning


def load_own_guards(agent: str) -> list[Guard]:
    """Return the guards in the agent's files; those of the defaults for an agent that no longer
    exists.
    """
    return _load_agent_or_generalist(agent).rules


def _load_agent_or_generalist(name: str) -> AgentConfig:
    return load_agent(name if name in agent_names() else "generalist")
