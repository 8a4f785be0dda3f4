"""Every YAML block of the documentation is taken as it is printed."""

import re
import shutil
from pathlib import Path

import pytest

from activities.job.plan_and_todo_files import parse_agent_todo_file
from config.agent_files import load_agent
from config.guard_files import read_guards
from config.layers import SHIPPED
from config.team_files import TeamsFile
from config.yaml_files import parse_yaml
from protocol.project_start import ProjectStart
from protocol.trial_start import TrialStart
from scripts.docs.command_reference import command_options, registered_commands
from tests.docs.reading import ROOT, blocks, documentation_pages

PAGES = {
    str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in documentation_pages()
}
BLOCKS = [(name, code) for name, text in PAGES.items() for code in blocks(text, "yaml")]
GUARD = "- {name: a, point: before_tool, decision: deny, message: Ask first.}"


@pytest.mark.parametrize(("name", "code"), BLOCKS)
def test_a_block_is_read(name: str, code: str, tmp_path: Path) -> None:
    content = parse_yaml(code, "the block")
    if isinstance(content, list):
        path = tmp_path / "guards.yaml"
        path.write_text(code, encoding="utf-8")
        assert read_guards(path)
    elif "teams.yaml" in code:
        TeamsFile.model_validate({"teams": content})
    elif "configurations" in content:
        TrialStart.model_validate(content)
    elif "form" in content:
        ProjectStart.model_validate({"instructions": "Brew.", **content})
    elif "jobs" in content:
        [run] = [step["run"] for step in content["jobs"]["mend"]["steps"] if "start" in step["run"]]
        options = {word for word in run.split() if word.startswith("--")}
        assert options <= command_options(registered_commands()["start"])
    elif isinstance(content.get("todos"), list):
        read = parse_agent_todo_file(code.encode())
        assert [bool(todo.content and todo.done_when) for todo in read.todos] == [True] * read.count
    else:
        config = Path(shutil.copytree(SHIPPED, tmp_path / "config"))
        for guards in re.findall(r"guards/[\w-]+\.yaml", PAGES[name]):
            (config / guards).write_text(GUARD)
        agent = config / "agents" / "mine" / "agent.yaml"
        agent.parent.mkdir()
        base = "" if "extends" in content else "extends: generalist\n"
        agent.write_text(f"{base}{code}", encoding="utf-8")
        loaded = load_agent("mine", folder=config)
        assert set(content) - {"extends"} <= loaded.model_fields_set
