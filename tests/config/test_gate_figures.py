"""The figures for gates, guards and stuck detection in the shipped configuration."""

import pytest

from activities.job.compaction_plan import KEPT_RESULTS, SUMMARY_TOKENS
from config.agent_files import agent_names, load_agent
from config.schema.guards import Hook
from protocol.stuck_thresholds import StuckThresholds

FIGURES = {
    "same_result": (3, 5),
    "same_call_error": (3, 4),
    "same_error": (5, 8),
    "cycle": (3, 4),
    "no_action": (2, 5),
    "refused_todo": (2, 4),
    "refused_completion": (2, 3),
    "nothing_new": (15, 40),
    "no_todo": (60, 150),
    "idle_phases": (2, 3),
}


@pytest.mark.parametrize("agent", agent_names())
def test_a_phase_counts_as_stuck_by_the_same_figures_in_every_shipped_agent(agent: str) -> None:
    for stuck in (load_agent(agent).stuck, StuckThresholds()):
        figures = {name: (each.nudge, each.then) for name, each in dict(stuck).items()}
        assert figures == FIGURES


def test_a_question_is_asked_once_and_waits_a_day() -> None:
    limits = load_agent("generalist").limits
    assert (limits.clarifications, limits.clarification_hours) == (1, 24)


def test_the_figures_of_phases_rewinds_and_the_context() -> None:
    config = load_agent("generalist")
    limits = config.limits
    assert (limits.min_todos, limits.max_todos, limits.rewinds) == (5, 20, 5)
    assert (limits.phase.model_calls, limits.history_events) == (500, 1000)
    assert (limits.tool_attempts, limits.tools_offered) == (1 + 3, 30)
    assert (limits.workspace_tokens, config.context.tokens) == (4000, 80_000)
    assert (KEPT_RESULTS, SUMMARY_TOKENS) == (5, 2000)
    assert (config.model.temperature, config.model.patience_seconds) == (0, 10 * 60)
    assert limits.file_bytes == 50_000_000


def test_a_hook_has_ten_seconds_and_fails_closed() -> None:
    hook = Hook(command="check")
    assert (hook.timeout, hook.fail) == (10, "closed")


def test_every_shipped_agent_keeps_secrets_logs_and_ownership() -> None:
    for name in agent_names():
        assert {"secrets", "logs", "ownership"} <= set(load_agent(name).guards)
