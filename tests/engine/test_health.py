"""What a worker needs before it counts as ready."""

from pathlib import Path

import pytest

from config.schema.agent import ConfigError
from engine.health import check_agents
from engine.heartbeat_profile import QuickHeartbeats, heartbeat_interceptors
from engine.setup_errors import SetupError


def test_a_worker_that_can_load_no_agent_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_agents()
    (tmp_path / "defaults.yaml").write_text("limits: {nonsense: 3}\n")
    monkeypatch.setenv("LONGHAUL_CONFIG", str(tmp_path))
    with pytest.raises(ConfigError, match=r"no agent can be loaded: .*limits\.nonsense"):
        check_agents()


def test_the_profile_of_heartbeats_is_named_by_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("LONGHAUL_HEARTBEAT")
    assert heartbeat_interceptors() == []
    monkeypatch.setenv("LONGHAUL_HEARTBEAT", "quick")
    assert [type(each) for each in heartbeat_interceptors()] == [QuickHeartbeats]
    monkeypatch.setenv("LONGHAUL_HEARTBEAT", "fast")
    with pytest.raises(SetupError, match="expected quick or default"):
        heartbeat_interceptors()
