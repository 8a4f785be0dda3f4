"""Skills taken into a job's files when it begins."""

from pathlib import Path
from typing import Any

import pytest

from activities.checkpoints import Files, Root, open_checkpoints
from activities.preparation.agent_skills import (
    MOST_FILES,
    add_repository_agent_skills,
    read_agent_skills,
)
from activities.toolkit.agent_tools import agent_has_tool
from config.agent_files import load_agent
from config.schema.agent import AgentConfig, ConfigError
from tests.activities.standing import Standing

SKILL = "---\nname: {name}\ndescription: About {name}.\n---\nBody of {name}.\n"


def config(**settings: Any) -> AgentConfig:
    return load_agent("generalist", settings)


@pytest.fixture
def files(root: Root) -> Files:
    return Files.empty(open_checkpoints(root, "job", create=True).store)


def write_skill(folder: Path, name: str) -> Path:
    (place := folder / name).mkdir(parents=True)
    (place / "SKILL.md").write_text(SKILL.format(name=name))
    return place


def test_five_public_skills_are_taken_unchanged(public_skills: Path, files: Files) -> None:
    agent = config(skills=[str(public_skills)])
    skills = read_agent_skills(agent)
    files = skills.put_into(files)
    names = ["db-core", "fastapi", "meta-framework", "playwright-cli", "typer"]
    assert [skill.name for skill in agent.skill_entries] == names
    assert all(40 < len(skill.description) <= 1024 for skill in agent.skill_entries)
    assert not skills.notices
    paths = [path for path in public_skills.rglob("*") if path.is_file()]
    assert len(paths) > 20
    for path in paths:
        content = files.read(f"skills/{path.relative_to(public_skills)}")
        assert content == path.read_bytes()
    assert agent_has_tool(agent, "use_skill")
    assert not agent_has_tool(config(), "use_skill")


def test_a_folder_is_a_skill_or_holds_some(tmp_path: Path, files: Files) -> None:
    alone = write_skill(tmp_path, "alone")
    write_skill(tmp_path / "more", "green")
    write_skill(tmp_path / "more", "black")
    (tmp_path / "more" / "notes").mkdir()
    agent = config(skills=[str(alone), str(tmp_path / "more")])
    read_agent_skills(agent)
    assert [skill.name for skill in agent.skill_entries] == ["alone", "black", "green"]
    with pytest.raises(ConfigError, match=r"skills: .*/nowhere has no SKILL\.md on this worker"):
        read_agent_skills(config(skills=[str(tmp_path / "nowhere")]))
    with pytest.raises(ConfigError, match=r"config/none has no SKILL\.md"):
        read_agent_skills(config(skills=["none"]))


def test_links_are_not_followed_and_scripts_stay_executable(tmp_path: Path, files: Files) -> None:
    skill = write_skill(tmp_path, "tea")
    (skill / "boil.sh").write_text("#!/bin/sh\n")
    (skill / "boil.sh").chmod(0o755)
    (tmp_path / "secret").write_text("key")
    (skill / "link").symlink_to(tmp_path / "secret")
    (skill / ".git").mkdir()
    (skill / ".git" / "config").write_text("[core]")
    files = read_agent_skills(config(skills=[str(skill)])).put_into(files)
    assert [entry.path for entry in files.walk()] == ["skills/tea/SKILL.md", "skills/tea/boil.sh"]
    assert (entry := files.entry("skills/tea/boil.sh")) and entry.executable


def test_what_is_odd_is_said_and_the_rest_is_taken(tmp_path: Path) -> None:
    write_skill(tmp_path / "a", "tea")
    write_skill(tmp_path / "b", "tea")
    (tmp_path / "b" / "silent").mkdir()
    (tmp_path / "b" / "silent" / "SKILL.md").write_text("Body alone.")
    large = write_skill(tmp_path / "c", "large")
    for number in range(MOST_FILES):
        (large / f"{number}.txt").touch()
    agent = config(skills=[str(tmp_path / each) for each in "abc"])
    skills = read_agent_skills(agent)
    assert [skill.name for skill in agent.skill_entries] == ["tea"]
    notices = "\n".join(skills.notices)
    assert "/b/tea: left out, another skill is called tea" in notices
    assert "silent: it has no description, and is left out" in notices
    assert "large: left out, with it skills have more than 2,000 files" in notices


def test_skills_of_a_repository_take_the_place_of_the_agents_own(tmp_path: Path) -> None:
    job = Standing.begin(tmp_path / "job")
    agent = config(skills=[str(write_skill(tmp_path, "tea"))])
    job.put(read_agent_skills(agent).put_into)
    job.pin(agent)
    for name in ("tea", "milk"):
        text = SKILL.format(name=name).replace("Body", "Nearer body")
        job.write(f"repo/.agents/skills/{name}/SKILL.md", text)
    job.write("repo/.agents/skills/README.md", "Skills.")
    job.write("repo/.agents/skills/silent/SKILL.md", "Body alone.")

    snapshot = job.open()
    assert add_repository_agent_skills(snapshot, "elsewhere") == []
    notices = add_repository_agent_skills(snapshot, "repo")
    assert [skill.name for skill in snapshot.config.skill_entries] == ["tea", "milk"]
    assert b"Nearer body of tea" in snapshot.files.read("skills/tea/SKILL.md")
    assert b"Nearer body of milk" in snapshot.files.read("skills/milk/SKILL.md")
    top = "skill repo/.agents/skills"
    assert f"{top}/tea: takes the place of the agent's own" in notices
    assert f"{top}/silent: it has no description, and is left out" in notices
