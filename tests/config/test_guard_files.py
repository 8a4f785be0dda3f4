"""An error in a guard file names file and line, what was found and what was expected."""

import shutil
from pathlib import Path

import pytest

from config.agent_files import load_agent
from config.guard_files import read_guards
from config.layers import SHIPPED
from config.schema.agent import AgentConfig, ConfigError

WHOLE = """\
- name: no-secrets-here
  point: before_tool
  match: {tool: [write_file], path: ['notes/*']}
  decision: deny
  message: Not there.
"""


@pytest.mark.parametrize(
    ("text", "line", "expected"),
    [
        ("a: 1", 1, "expected a list of guards, found keys and values"),
        ("- name: a\n- [", 2, "not valid YAML"),
        ("- 7", 1, "expected a guard with name, point and decision, found '7'"),
        ("\n- name: a\n  point: before_tool", 2, "decision: found nothing, expected decision"),
        (WHOLE.replace("  decision", "  decison"), 4, "unknown key 'decison', expected one of na"),
        (WHOLE.replace("tool:", "tol:"), 3, "match.tol: found the unknown key 'tol', expected on"),
        (WHOLE.replace("deny", "refuse"), 4, "decision: found 'refuse', expected 'allow', 'deny'"),
        (WHOLE.replace("before_tool", "reply").replace("deny", "ask"), 1, "expected allow or deny"),
        (WHOLE.replace("  message: Not there.\n", ""), 1, "message: expected a sentence"),
        (WHOLE.replace("[write_file]", "write_file"), 3, "match.tool: found 'write_file', expect"),
        (WHOLE + "  stage: live\n", 6, "stage: found 'live', expected 'draft', 'experiment', 'ac"),
        (WHOLE + "  message: Again.\n", 6, "message: found twice, expected once"),
        (WHOLE + WHOLE, 6, "name: found 'no-secrets-here', which"),
        (WHOLE.replace("no-secrets-here", "No Secrets"), 1, "name: found 'No Secrets'"),
        (
            WHOLE.replace("path: ['notes/*']", "\n    arguments: {path: '(?=a)'}"),
            4,
            "match.arguments.path: found '(?=a)', expected a pattern in re2 syntax",
        ),
        (WHOLE + "  rewrite: {path: b}\n", 1, "rewrite: expected new arguments with the decision"),
        (
            WHOLE.replace("deny", "rewrite") + "  rewrite:\n    path: '{{ a'\n",
            7,
            "rewrite.path: template:",
        ),
        (
            WHOLE.replace("path: ['notes/*']", "content: [abc], random: 3"),
            3,
            "match.random: expected a content pattern with a group named value",
        ),
        (
            WHOLE.replace("path: ['notes/*']", "content: [!!int tea]"),
            3,
            "match.content.0: 'tea' cannot be read (invalid literal",
        ),
        (WHOLE.replace("- name", "- &a\n  name").replace("Not there.", "*a"), 1, "holds itself"),
        (WHOLE.replace("before_tool", "reply"), 3, "match.tool: holds at no reply"),
        (
            WHOLE.replace("before_tool", "phase_end"),
            3,
            "match.path: holds at no phase_end, expected the point before_tool or after_tool",
        ),
        (
            WHOLE.replace("before_tool", "after_tool")
            .replace("deny", "feedback")
            .replace("path: ['notes/*']", "changes: {path: [a.json], field: b}"),
            3,
            "match.changes: holds at no after_tool, expected the point before_tool",
        ),
    ],
)
def test_mistakes_name_file_and_line(tmp_path: Path, text: str, line: int, expected: str) -> None:
    config = Path(shutil.copytree(SHIPPED, tmp_path / "config"))
    path = config / "guards" / "mine.yaml"
    path.write_text(text)
    agent = config / "agents" / "mine" / "agent.yaml"
    agent.parent.mkdir()
    agent.write_text("guards: [mine]")
    with pytest.raises(ConfigError) as caught:
        load_agent("mine", folder=config)
    message = str(caught.value)
    assert message.startswith(f"{path}:{line}: "), message
    assert expected in message
    assert "\n" not in message


def test_an_unknown_file_is_answered_with_those_there_are(tmp_path: Path) -> None:
    config = Path(shutil.copytree(SHIPPED, tmp_path / "config"))
    with pytest.raises(
        ConfigError, match=r"found 'nothing', expected names of guard files: .*secrets"
    ):
        load_agent("generalist", {"guards": ["nothing"]}, config)


def test_an_agents_own_file_comes_before_the_shared_one_and_is_inherited(tmp_path: Path) -> None:
    config = Path(shutil.copytree(SHIPPED, tmp_path / "config"))
    own = config / "agents" / "mine" / "guards" / "logs.yaml"
    own.parent.mkdir(parents=True)
    own.write_text(WHOLE)
    (config / "agents" / "mine" / "agent.yaml").write_text("guards: [secrets, logs]")
    child = config / "agents" / "child" / "agent.yaml"
    child.parent.mkdir()
    child.write_text("extends: mine")
    for name in ("mine", "child"):
        rules = load_agent(name, folder=config).rules
        assert [guard.name for guard in rules] == ["secrets", "no-secrets-here"]


def test_every_shipped_file_loads_and_the_pinned_form_is_the_same() -> None:
    for path in (SHIPPED / "guards").glob("*.yaml"):
        assert read_guards(path)
    config = load_agent("generalist")
    assert {"secrets", "log-reading", "tested-by-the-tester"} <= {g.name for g in config.rules}
    assert AgentConfig.model_validate_json(config.model_dump_json()).rules == config.rules


@pytest.mark.parametrize(
    ("hooks", "expected"),
    [
        ("{PreTool: []}", "hooks.PreTool"),
        ("{Stop: [{comand: x}]}", "hooks.Stop.0.command: field required"),
        ("{Stop: [{command: ' '}]}", "hooks.Stop.0.command"),
        ("{Stop: [{command: x, matcher: '('}]}", "expected a pattern in re2 syntax"),
        ("{Stop: [{command: x, timeout: 0}]}", "hooks.Stop.0.timeout"),
        ("{Stop: [{command: x, fail: maybe}]}", "hooks.Stop.0.fail"),
    ],
)
def test_mistakes_in_hooks_name_the_key(tmp_path: Path, hooks: str, expected: str) -> None:
    config = Path(shutil.copytree(SHIPPED, tmp_path / "config"))
    agent = config / "agents" / "mine" / "agent.yaml"
    agent.parent.mkdir()
    agent.write_text(f"hooks: {hooks}")
    with pytest.raises(ConfigError) as caught:
        load_agent("mine", folder=config)
    assert expected in str(caught.value)
    assert str(agent) in str(caught.value)
