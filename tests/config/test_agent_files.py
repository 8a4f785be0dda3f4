"""Every error in the configuration names file and key."""

import shutil
from pathlib import Path

import pytest

from config.agent_files import amend_agent_config, load_agent
from config.agent_inheritance import overridden_agent_value
from config.layers import SHIPPED
from config.schema.agent import ConfigError
from config.templates import render_template
from config.yaml_files import parse_yaml


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the shipped configuration."""
    for name in ("LONGHAUL_MODEL", "LONGHAUL_MAX_MODEL_CALLS"):
        monkeypatch.delenv(name, raising=False)
    return Path(shutil.copytree(SHIPPED, tmp_path / "config"))


def agent(folder: Path, text: str | bytes, name: str = "mine") -> Path:
    path = folder / "agents" / name / "agent.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def problem(folder: Path, name: str = "mine", **overrides: object) -> str:
    settings = {key.replace("__", "."): value for key, value in overrides.items()}
    with pytest.raises(ConfigError) as caught:
        load_agent(name, settings, folder)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "limits: {min_todo: 3}",
            "limits.min_todo: unknown key, expected min_todos?",
        ),
        ("mod: {}", "mod: unknown key, expected model?"),
        (
            "context: {zzz: 1}",
            "context.zzz: unknown key, expected tokens, share",
        ),
        (
            "model: {base_url: 'models.example/v1'}",
            "model.base_url: expected an address that begins",
        ),
        ("fallbacks: [{base_url: '127.0.0.1:8000'}]", "base_url: expected an address that begins"),
        ("judge: {model: {wndow: 1}}", "wndow: unknown key, expected window?"),
        ("phase_models: {tactical: {wndow: 1}}", "wndow: unknown key, expected window?"),
        ("hooks: {Stop: [{command: a, matchr: b}]}", "matchr: unknown key, expected matcher?"),
        ("limits: {min_todos: many}", "limits.min_todos: input should be a valid integer"),
        ("limits: {min_todos: 9, max_todos: 8}", "min_todos 9 is over max_todos 8"),
        ("settings: {chunk_tokens: 100, chunk_overlap: 100}", "chunk_overlap 100 is not under"),
        ("limits: {job: {cost: '2'}}", "limits.job.cost: input should be a valid number"),
        ("limits: {job: {tokens: 2.0}}", "limits.job.tokens: input should be a valid integer"),
        ("limits: {phase: {seconds: true}}", "limits.phase.seconds: input should be a valid int"),
        ("limits: {phase: {cost: 0}}", "limits.phase.cost: input should be greater than 0"),
        ("limits: {phase: {cost: .inf}}", "limits.phase.cost: input should be"),
        ("limits: {phase: {money: 1}}", "limits.phase.money: unknown key"),
        ("tools: files", "tools: input should be a valid list, found 'files'"),
        ("graph: {nodes: {my tea: {key: id}}}", "graph.nodes.my tea: string should match"),
        ("prices: {m: {prompt: 1}}", "prices.m.completion: field required"),
        ("prices: {m: {prompt: -1, completion: 1}}", "prices.m.prompt: input should be greater"),
        ("model: 7", "model: input should be an object"),
        ("tools: []", "tools: list should have at least 1"),
        ("todos: {final: []}", "todos.final"),
        ("a: [", "not valid YAML"),
        ("mod:\n  - a\n b: 1", "agent.yaml:3:2: not valid YAML: while"),
        ("limits:\n  rewinds: 1\ntools: [a]\n'limits':\n  min_todos: 3", "agent.yaml:4:1"),
        ("limits: {}\ntools: [a]\nlimits: {}", "'limits' is given twice, first in line 1"),
        ("limits:\n  job: {cost: 2, cost: 3}", "the key 'cost' is given twice, first in line 2"),
        ("limits:\n  <<: &a {rewinds: 1, rewinds: 2}", "the key 'rewinds' is given twice"),
        (b"\xff\xfe\xfa", "not UTF-8 text"),
        ("- a", "expected keys and values"),
        ("extends: [a]", "extends: expected the name of an agent"),
        ("extends: mine", "extends: circle mine -> mine"),
    ],
)
def test_mistakes_name_file_and_key(folder: Path, text: str | bytes, expected: str) -> None:
    path = agent(folder, text)
    message = problem(folder)
    assert str(path) in message
    assert expected in message


def test_an_address_that_may_hold_a_password_is_not_repeated(folder: Path) -> None:
    agent(folder, "model: {base_url: 'user:sesame@models.example/v1'}")
    assert "sesame" not in problem(folder)


def test_a_merged_key_may_be_given_again() -> None:
    # `over` is merged into `c` before it is parsed itself.
    text = "a: &a {x: 1, y: 1}\nb:\n  c:\n  - &over {<<: *a, x: 2}\nd: {<<: *over, y: 3}"
    parsed = parse_yaml(text, "not valid")
    assert parsed["b"]["c"] == [{"x": 2, "y": 1}]
    assert parsed["d"] == {"x": 2, "y": 3}


def test_words_of_yaml_1_1_are_strings() -> None:
    text = "on: [yes, No, off, y, 12:30, 2024-13-01]\ntrue: [0x1F, 7_000, .5, ~, False]"
    assert parse_yaml(text, "a") == {
        "on": ["yes", "No", "off", "y", "12:30", "2024-13-01"],
        True: [31, 7000, 0.5, None, False],
    }


def test_what_is_parsed_twice_is_changed_once() -> None:
    parse_yaml("tea: [hot]", "not valid")["tea"].append("sweet")
    assert parse_yaml("tea: [hot]", "not valid") == {"tea": ["hot"]}


def test_an_unknown_agent_is_answered_with_those_there_are(folder: Path) -> None:
    for name in ("nobody", "../creator", "", "Creator", "x" * 1000):
        assert "the agents are coder, creator, generalist" in problem(folder, name)


@pytest.mark.parametrize("text", ["extends: nobody", "extends: [creator]", "extends: {}"])
def test_what_is_extended_must_be_an_agent(folder: Path, text: str) -> None:
    path = agent(folder, text)
    message = problem(folder)
    assert message.startswith(f"{path}: extends: expected the name of an agent, found ")
    assert "the agents are coder, creator" in message


def test_a_reviewer_must_be_an_agent(folder: Path) -> None:
    path = agent(folder, "review: {agent: nobody}")
    assert problem(folder).startswith(f"{path}: review.agent: expected the name of an agent")


def test_a_key_is_told_with_the_file_that_it_stands_in(folder: Path) -> None:
    parent = agent(folder, "limits: {rewinds: many}", "parent")
    own = agent(folder, "extends: parent\nlimits: {min_todos: 3}")
    assert problem(folder).startswith(f"{parent}: limits.rewinds: ")
    own.write_text("extends: parent\nlimits: {rewinds: none}")
    assert problem(folder).startswith(f"{own}: limits.rewinds: ")
    own.write_text("hooks: {Stop: [{command: a}, {comand: b}]}")
    assert problem(folder).startswith(f"{own}: hooks.Stop.1.command: ")
    defaults = folder / "defaults.yaml"
    defaults.write_text(defaults.read_text().replace("temperature: 0", "temperature: hot"))
    own.write_text("{}")
    assert problem(folder).startswith(f"{defaults}: model.temperature: ")


def test_an_agent_extends_another(folder: Path) -> None:
    agent(folder, "extends: creator\nsettings: {chunk_tokens: 900}\nfolders: [notes]\n")
    mine, creator = (load_agent(name, folder=folder) for name in ("mine", "creator"))
    assert mine.settings.chunk_tokens == 900
    assert mine.settings.chunk_overlap == creator.settings.chunk_overlap
    assert (mine.tools, mine.folders) == (creator.tools, ["notes"])
    assert mine.instructions_template == creator.instructions_template
    (folder / "agents" / "mine" / "instructions.md").write_text("Only tables.")
    agent(folder, "extends: mine", "child")
    assert load_agent("child", folder=folder).instructions_template == "Only tables."


def test_a_circle_of_several_is_told(folder: Path) -> None:
    agent(folder, "extends: b", "a")
    agent(folder, "extends: a", "b")
    assert "circle a -> b -> a" in problem(folder, "a")


def test_an_empty_agent_is_the_defaults(folder: Path) -> None:
    agent(folder, "")
    assert load_agent("mine", folder=folder).limits.min_todos == 5


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (None, "prompt template is missing; prompts.tactical names it"),
        (b"no header", "version: expected 2 in the front matter, found None"),
        (b"---\nversion: 0\n---\nx", "found 0"),
        (b"---\nversion: [\n---\nx", "tactical.md:3:1: not valid YAML"),
        (b"---\nversion: 2\n---\n{{ agent", "template: "),
        (b"---\nversion: 2\n---\n{{ agnet }}", "agnet is not offered"),
        (b"---\nversion: 2\n---\n{{ plan }}", "plan is not offered"),  # but in the orientation
        (b"\xff\xfe", "not UTF-8"),
    ],
)
def test_a_bad_template_fails_the_start(folder: Path, content: bytes | None, expected: str) -> None:
    path = folder / "prompts" / "tactical.md"
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    message = problem(folder, "generalist")
    assert str(path) in message
    assert expected in message


def test_bad_instructions_name_their_file(folder: Path) -> None:
    path = folder / "agents" / "creator" / "instructions.md"
    path.write_text("{% if %}")
    assert str(path) in problem(folder, "creator")
    path.write_text("{{ agent }}")  # available in the system prompt only
    message = problem(folder, "creator")
    assert str(path) in message
    assert message.endswith("agent is not offered; the names are instructions")


def test_a_folder_whose_name_no_agent_may_have_is_told_so(folder: Path) -> None:
    agent(folder, "", "My Critic")
    message = problem(folder, "My Critic")
    assert str(folder / "agents" / "My Critic") in message
    assert "rename the folder" in message


def test_calls_and_working_time_are_limited_unless_something_is_said(folder: Path) -> None:
    limits = load_agent("generalist", folder=folder).limits
    assert limits.phase.model_dump(exclude_none=True) == {"model_calls": 500}
    assert limits.job.model_dump(exclude_none=True) == {"model_calls": 1000, "seconds": 172800}
    settings: dict[str, object] = {"limits.job.cost": 2, "limits.phase.model_calls": None}
    limits = load_agent("generalist", settings, folder).limits
    assert limits.job.cost == 2
    assert limits.phase.model_calls is None


def test_overrides_come_last_and_are_told_apart_from_the_file(folder: Path) -> None:
    config = load_agent("creator", {"limits.min_todos": 2, "model.name": "m"}, folder)
    assert (config.limits.min_todos, config.limits.max_todos, config.model.name) == (2, 20, "m")
    assert problem(folder, "creator", limits__min_todos=0).startswith("set: limits.min_todos")
    assert problem(folder, "creator", limits__min_todos=50).startswith("set: limits")
    assert "unknown key" in problem(folder, "creator", nothing__here=1)
    assert "unknown key" in problem(folder, "creator", **{"": 1})
    assert "tools" in problem(folder, "creator", tools__x=1)


def test_a_pinned_configuration_is_amended_by_what_is_given_alone(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent(folder, "phase_models: {tactical: {name: small}}\nlimits: {rewinds: 2}")
    pinned = load_agent("mine", {}, folder)
    agent(folder, "limits: {rewinds: 9}")
    (folder / "prompts" / "tactical.md").write_text("---\nversion: 2\n---\nedited")
    (folder / "prompts" / "own.md").write_text("---\nversion: 2\n---\nof its own")
    monkeypatch.setenv("LONGHAUL_MODEL", "of the environment")

    assert amend_agent_config(pinned, {}, folder) == pinned
    settings = {"limits.max_todos": 30, "prompts.strategic": "own.md", "model.name": "large"}
    amended = amend_agent_config(pinned, settings, folder)
    assert (amended.limits.rewinds, amended.limits.max_todos) == (2, 30)
    assert amended.templates["strategic"] == "of its own"
    assert amended.templates["tactical"] == pinned.templates["tactical"]
    assert (amended.model.name, amended.model_for("tactical").name) == ("large", "small")
    assert (pinned.limits.max_todos, pinned.model.name) != (30, "large")
    with pytest.raises(ConfigError, match=r"set: limits\.nothing"):
        amend_agent_config(pinned, {"limits.nothing": 1}, folder)


def test_a_section_that_is_set_leaves_its_other_keys_as_they_are(folder: Path) -> None:
    agent(folder, "model: {name: small, temperature: 0.5}")
    settings: dict[str, object] = {"model": {"timeout_seconds": 900}}
    pinned = load_agent("mine", settings, folder)
    assert (pinned.model.name, pinned.model.temperature) == ("small", 0.5)
    # A fork is amended with the same data: without a model's name it could not begin.
    assert amend_agent_config(pinned, settings, folder) == pinned


def test_a_fork_gets_the_reviewer_it_asks_for_and_keeps_its_guards(folder: Path) -> None:
    agent(folder, "description: reads", "first")
    agent(folder, "description: reads twice", "second")
    agent(folder, "review: {agent: first}")
    pinned = load_agent("mine", {}, folder)
    agent(folder, "description: edited since", "first")

    fewer = amend_agent_config(pinned, {"review.calls": 3}, folder)
    assert fewer.reviewer == pinned.reviewer
    # A fork's models are chosen anew; its parent keeps the pinned ones.
    assert fewer.reviewer is not None
    fewer.reviewer.model.name = "another"
    assert fewer.reviewer != pinned.reviewer
    other = amend_agent_config(pinned, {"review.agent": "second"}, folder)
    assert other.reviewer is not None
    assert other.reviewer.name == "second"
    assert amend_agent_config(pinned, {"review": None}, folder).reviewer is None
    with pytest.raises(ConfigError, match=r"set: guards: found \['x'\].*a new job"):
        amend_agent_config(pinned, {"guards": ["x"]}, folder)
    assert amend_agent_config(pinned, {"guards": pinned.guards}, folder).rules == pinned.rules


def test_the_environment_overrides(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LONGHAUL_MODEL", "other")
    monkeypatch.setenv("LONGHAUL_MAX_MODEL_CALLS", "7")
    monkeypatch.setenv("LONGHAUL_MAX_JOB_MODEL_CALLS", "8")
    monkeypatch.setenv("LONGHAUL_MAX_SECONDS", "9")
    config = load_agent("creator", folder=folder)
    assert (config.model.name, config.limits.phase.model_calls) == ("other", 7)
    assert (config.limits.job.model_calls, config.limits.job.seconds) == (8, 9)
    monkeypatch.setenv("LONGHAUL_MAX_MODEL_CALLS", "many")
    message = problem(folder, "creator")
    assert message.startswith("LONGHAUL_MAX_MODEL_CALLS: limits.phase.model_calls: ")
    assert "found 'many'" in message
    for wrong in ("0", "-1", "1.5", "true", "9" * 5000):
        monkeypatch.setenv("LONGHAUL_MAX_MODEL_CALLS", wrong)
        assert problem(folder, "creator").startswith("LONGHAUL_MAX_MODEL_CALLS: limits.phase")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("version: 2\n", "version: input should be 1, found 2"),
        ("version: 1\nasking: {phrases: ['(']}\nclaiming: {phrases: []}\n", "asking.phrases.0"),
        ("version: 1\nasking: {phrases: []}\n", "claiming: field required"),
        ("version: 1\nbegging: []\n", "begging: unknown key"),
        ("a: [", "not valid YAML"),
    ],
)
def test_a_bad_phrase_file_fails_the_start(folder: Path, text: str, expected: str) -> None:
    path = folder / "phrases" / "fr.yaml"
    path.write_text(text)
    message = problem(folder, "generalist")
    assert str(path) in message
    assert expected in message


def test_phrases_of_another_language_are_added_by_a_file(folder: Path) -> None:
    text = "version: 1\nasking: {phrases: [dois-je]}\nclaiming: {phrases: [fini]}\n"
    (folder / "phrases" / "fr.yaml").write_text(text)
    wording = load_agent("generalist", folder=folder).wording
    assert [one.phrases[:1] for one in wording.claiming][-1] == ("fini",)
    assert len(wording.asking) == 3


def test_templates_are_strict() -> None:
    assert render_template("{{ a }} {{ b }}", a=1, b="{{ c }}") == "1 {{ c }}"
    with pytest.raises(ConfigError, match="template: 'a' is undefined"):
        render_template("{{ a }}")
    with pytest.raises(ConfigError, match="template: ZeroDivisionError"):
        render_template("{{ 1 / a }}", a=0)


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        ({"workspace.remote": "a"}, "a"),
        ({"workspace": {"remote": "a"}}, "a"),
        ({"workspace.remote": "a", "workspace": {"remote": "b"}}, "b"),
        ({"workspace": "a", "limits": {}}, None),
        ({}, None),
    ],
)
def test_an_override_is_found_however_it_is_nested(
    overrides: dict[str, object], expected: str | None
) -> None:
    assert overridden_agent_value(overrides, "workspace.remote") == expected
