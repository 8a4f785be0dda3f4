"""Configuration folders that override what ships."""

import os
from pathlib import Path

import pytest

from cli.checks.config_checks import check_configuration
from config.agent_files import agent_file, agent_names, load_agent
from config.guard_files import agent_guard_files
from config.layers import SHIPPED, configuration_layers
from config.schema.agent import ConfigError


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Return two folders, the second of which overrides the first."""
    folders = [tmp_path / "house", tmp_path / "team"]
    write(folders[0] / "agents/critic/agent.yaml", "extends: generalist\ndescription: House\n")
    write(folders[1] / "guards/tone.yaml", "[]\n")
    monkeypatch.setenv("LONGHAUL_CONFIG", os.pathsep.join(map(str, folders)))
    return folders


def test_an_agent_of_ones_own_stands_beside_those_that_ship(own: list[Path]) -> None:
    assert {"critic", "creator"} <= set(agent_names())
    assert load_agent("critic").description == "House"
    assert agent_file("critic") == own[0] / "agents/critic/agent.yaml"
    assert agent_file("creator").is_relative_to(SHIPPED)


def test_the_later_folder_wins(own: list[Path]) -> None:
    write(own[1] / "agents/critic/agent.yaml", "extends: generalist\ndescription: Team\n")
    assert load_agent("critic").description == "Team"


def test_an_agent_that_extends_its_own_name_changes_the_one_that_ships(own: list[Path]) -> None:
    shipped = load_agent("creator")
    write(own[0] / "agents/creator/agent.yaml", "extends: creator\nlimits: {rewinds: 2}\n")
    write(own[1] / "agents/creator/agent.yaml", "extends: creator\nneeds_documents: false\n")
    changed = load_agent("creator")
    assert (changed.limits.rewinds, changed.needs_documents) == (2, False)
    assert changed.tools == shipped.tools
    assert changed.instructions_template == shipped.instructions_template


def test_an_agent_of_the_same_name_that_extends_nothing_replaces_it(own: list[Path]) -> None:
    write(own[1] / "agents/creator/agent.yaml", "description: Ours\n")
    write(own[1] / "agents/creator/instructions.md", "Only this. {{ instructions }}")
    replaced = load_agent("creator")
    assert replaced.instructions_template == "Only this. {{ instructions }}"
    assert not replaced.needs_documents


def test_an_agent_that_extends_itself_above_nothing_is_a_circle(own: list[Path]) -> None:
    path = write(own[1] / "agents/alone/agent.yaml", "extends: alone\n")
    with pytest.raises(ConfigError, match=rf"{path}: extends: circle alone -> alone"):
        load_agent("alone")


def test_defaults_are_merged_and_mistakes_name_their_file(own: list[Path]) -> None:
    path = write(own[0] / "defaults.yaml", "limits: {rewinds: 3}\n")
    assert load_agent("generalist").limits.rewinds == 3
    path.write_text("limits: {rewind: 3}\n")
    with pytest.raises(ConfigError, match=rf"{path}: limits.rewind"):
        load_agent("generalist")


def test_guards_prompts_phrases_and_graph_are_looked_for_above_what_ships(own: list[Path]) -> None:
    rule = "- {name: quiet, point: reply, match: {content: ['!!']}, decision: deny, message: Shh}\n"
    source = write(own[1] / "guards/tone.yaml", rule)
    agent = "extends: generalist\nguards: [secrets, tone]\nprompts: {tactical: short.md}\n"
    write(own[0] / "agents/critic/agent.yaml", agent)
    write(own[0] / "prompts/short.md", "---\nversion: 2\n---\nWork.\n")
    write(
        own[1] / "graph/schema.yaml",
        "nodes: {Tea: {key: name, properties: {name: {type: text}}}}\n",
    )
    config = load_agent("critic")
    assert config.templates["tactical"] == "Work.\n"
    assert "quiet" in [rule.name for rule in config.rules]
    assert agent_guard_files(config)["quiet"] == source
    assert "Tea" in config.graph_schema.nodes
    assert set(load_agent("generalist").graph_schema.nodes) > {"Tea"}


def test_a_check_says_where_an_agent_is_from_and_reads_files_that_nobody_names(
    own: list[Path],
) -> None:
    findings = {finding.name: finding for finding in check_configuration()}
    assert str(own[0] / "agents/critic/agent.yaml") in findings["critic"].summary
    assert "agent.yaml" not in findings["creator"].summary
    path = write(own[1] / "guards/tone.yaml", "- name: x\n")
    problems = [finding.problem for finding in check_configuration() if not finding.ok]
    assert any(problem.startswith(f"{path}:1") for problem in problems)


@pytest.mark.parametrize("make", [False, True])
def test_a_folder_that_cannot_be_one_is_refused(
    make: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "nothing"
    if make:
        folder.mkdir()
    monkeypatch.setenv("LONGHAUL_CONFIG", str(folder))
    with pytest.raises(ConfigError, match=f"LONGHAUL_CONFIG: {folder}: .*(no such|none of them)"):
        configuration_layers()
