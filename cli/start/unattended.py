"""The start of a job that nobody watches: it gets ceilings, and people learn what may stop it."""

import time

from cli.checks.leave_facts import check_absences
from cli.checks.leave_hazards import Absence, describe_wait_reasons
from cli.output import print_note
from config.agent_files import load_agent

MODEL_CALLS = 1000
"""Ceiling where neither calls, nor tokens, nor cost have one."""
ANSWER_HOURS = 1.0
"""How long questions and approvals wait before they end by their defaults."""


def unattended_settings(
    agent: str, overrides: dict[str, object], hours: float
) -> dict[str, object]:
    """Return the settings that the agent and the start leave open. Raises ConfigError."""
    limits = load_agent(agent, overrides).limits
    settings: dict[str, object] = {}
    if limits.approve_hours is None:
        settings["limits.approve_hours"] = ANSWER_HOURS
    if limits.clarification_hours > ANSWER_HOURS:
        settings["limits.clarification_hours"] = ANSWER_HOURS
    if limits.job.seconds is None:
        settings["limits.job.seconds"] = int(hours * 3600)
    if not (limits.job.model_calls or limits.job.tokens or limits.job.cost):
        settings["limits.job.model_calls"] = MODEL_CALLS
    return {key: value for key, value in settings.items() if key not in overrides}


async def announce_absence(agent: str, overrides: dict[str, object], hours: float) -> None:
    """Print what would stop the job before somebody is back, and how it waits for each reason."""
    config = load_agent(agent, overrides)
    async for hazard in check_absences([Absence(hours, config, time.time())]):
        print_note(hazard.as_line())
    for reason, text in describe_wait_reasons(config).items():
        print_note(f"{reason}: {text}")
