"""What a start may not change of who approves calls."""

from pathlib import Path

import pytest

from config.agent_files import load_agent
from config.schema.agent import ConfigError

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIK0wmN/Cr3JXqmLW7u+g9pTh+wyqDHpSQEIQczXkVx9q"
OTHER = KEY.replace("wmN", "wmM")


@pytest.fixture
def signed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker whose configuration wants ada's signature for each move."""
    (tmp_path / "defaults.yaml").write_text(
        f"approve: [list_files, {{tool: move_file, by: [ada]}}]\nsigners: {{ada: {KEY}}}\n"
        "start: {set: [harmless]}\n"
    )
    monkeypatch.setenv("LONGHAUL_CONFIG", str(tmp_path))


@pytest.mark.usefixtures("signed")
@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({"approve": []}, "approve"),
        ({"approve": ["move_file"]}, "approve"),
        ({"signers.ada": OTHER}, "signers.ada"),
        ({"signers.eve": OTHER}, "signers.eve"),
    ],
)
def test_a_start_cannot_choose_who_approves(settings: dict[str, object], key: str) -> None:
    with pytest.raises(ConfigError, match=f"set: {key}: a start may not set it: it decides whose"):
        load_agent("generalist", settings)


@pytest.mark.usefixtures("signed")
def test_a_start_may_ask_for_more_approvals() -> None:
    entry = {"tool": "move_file", "by": ["ada"]}
    config = load_agent("generalist", {"approve": [entry, "write_file"]})
    assert config.approved_tools == ["move_file", "write_file"]
