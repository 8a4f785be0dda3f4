"""`config check`, `config schema`, `tools`."""

import json
import shutil
from pathlib import Path

import pytest

from activities.checkpoints import Root
from activities.toolkit.registry import REGISTRY
from cli.checks.config_checks import check_configuration
from cli.tool_listing import agent_tool_listing
from config.agent_files import agent_names
from config.layers import SHIPPED
from config.learned_guards import LearnedGuards, LearnedRevision
from config.schema.guards import Guard


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the shipped configuration."""
    for name in ("LONGHAUL_MODEL", "LONGHAUL_MAX_MODEL_CALLS"):
        monkeypatch.delenv(name, raising=False)
    return Path(shutil.copytree(SHIPPED, tmp_path / "config"))


def agent(folder: Path, text: str) -> Path:
    path = folder / "agents" / "mine" / "agent.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return path


def problems(folder: Path, *names: str, root: Path | None = None) -> dict[str, str]:
    checks = check_configuration(names, root=root, folder=folder)
    return {one.name: one.problem for one in checks if not one.ok}


def learned(root: Path) -> Path:
    """Store a learned guard in the root; return the file of its one revision."""
    guard = Guard(name="no-x", point="before_tool", decision="deny", message="Write no x.")
    one = LearnedRevision(
        name="no-x", stage="active", at=1, since=1, why="seen", agent="creator", guard=guard
    )
    return LearnedGuards(root).put_revision(one)


def test_every_shipped_agent_is_fine(offline):
    ran = offline("config", "check")
    assert ran.code == 0
    assert [line.split(":")[0] for line in ran.out.splitlines()] == [
        f"✓ {name}" for name in agent_names()
    ]
    assert "creator: extends the defaults, model " in ran.out
    checks = json.loads(offline("config", "check", "creator", "reviewer", "--json").out)
    assert [(one["name"], one["ok"], one["extends"]) for one in checks] == [
        ("creator", True, None),
        ("reviewer", True, None),
    ]
    assert checks[0]["tools"] > checks[1]["tools"] > 2


def test_the_guards_of_the_root_are_checked(offline, workspaces):
    path = learned(workspaces)
    ran = offline("config", "check", "creator")
    assert (ran.code, "✓ learned guards: no-x" in ran.out) == (0, True)
    path.write_text(path.read_text().replace("decision: deny", "decision: denied"))
    ran = offline("config", "check", "creator")
    assert ran.code == 1
    assert f"✗ learned guard no-x: {path}: guard.decision: " in ran.out
    assert "found 'denied'" in ran.out
    assert str(path) in offline("doctor").out


def test_guards_lists_those_in_use_and_names_the_others(offline, workspaces):
    Root.open(workspaces, create=True)
    learned(workspaces)
    store, prompt = LearnedGuards(workspaces), "Say what\n" * 20
    for name, more in (("ask", {"prompt": prompt}), ("old", {"stage": "retired"})):
        fields = {"stage": "experiment", "at": 1, "since": 1, "why": "seen", "agent": "creator"}
        store.put_revision(LearnedRevision(name=name, **fields | more))
    lines = offline("guards").out.splitlines()
    assert [line.split(";")[0].split("  ")[0] for line in lines] == [
        "no-x",
        "1 proposed for prompts: ask",
        "1 retired: old",
    ]


def test_an_unknown_agent_is_a_mistake(offline):
    assert "the agents are coder" in offline("config", "check", "creator", "nobody").error
    assert "the agents are coder" in offline("tools", "nobody").error


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("limits: {min_todo: 3}", "limits.min_todo: unknown key"),
        ("tools: [files, todos, job, nothing]", "tools: 'nothing' is neither a tool nor a group"),
        ("tools: [files]", "tools: without todo_complete, todo_write, job_complete no job can end"),
        ("tools: [files, verdict]", "tools: a reviewer only reads; take out write_file"),
        ("approve: [nothing]", "approve: 'nothing' is neither a tool"),
        ("limits: {job: {cost: 2}}", "limits.job.cost: the price of the model"),
        ("mcp: {files: {command: [a]}}", "mcp: files is the name of a tool or a group"),
        ("prompts: {tactical: none.md}", "none.md: prompt template is missing"),
        ("review: {agent: creator}", "review.agent: agent creator: tools: a reviewer only"),
        ("guards: [none]", "guards: found 'none', expected names of guard files"),
        ("folders: [../notes]", "folders: The path '../notes' holds .."),
        ("extends: coder\nshell: {readable: [cache]}", "shell.readable: expected absolute paths"),
    ],
)
def test_what_is_wrong_with_an_agent_is_told_by_file_and_key(folder, text, expected):
    path = agent(folder, text)
    problem_by_name = problems(folder)
    assert list(problem_by_name) == ["mine"]
    assert expected in problem_by_name["mine"]
    assert problem_by_name["mine"].startswith(str(folder if "prompts" in text else path))
    assert problems(folder, "creator") == {}


def test_a_guard_on_a_tool_that_there_is_none_of_is_told(folder):
    guard = "- {name: kept, point: before_tool, match: {tool: [%s]}, decision: deny, message: No.}"
    agent(folder, "guards: [kept]")
    for name in ("delete_file", "tracker__close", "tracker*", "*_file"):
        (folder / "guards" / "kept.yaml").write_text(guard % f"'{name}'")
        assert problems(folder, "mine") == {}
    (folder / "guards" / "kept.yaml").write_text(guard % "delete_files")
    assert "guards: kept: no tool is called 'delete_files'" in problems(folder, "mine")["mine"]


def test_a_guard_on_an_argument_that_its_tools_do_not_take_is_told(folder):
    agent(folder, "guards: [kept]")

    def told(tools: str, match: str, rest: str = "decision: deny, message: No.") -> str:
        guard = f"- {{name: kept, point: before_tool, match: {{tool: [{tools}], {match}}}, {rest}}}"
        (folder / "guards" / "kept.yaml").write_text(guard)
        return problems(folder, "mine").get("mine", "")

    assert told("write_file, move_file", "arguments: {path: x, old: x}") == ""
    # A server's tool may have any argument.
    assert told("'*_file'", "arguments: {file: x}") == ""
    assert told("write_file", "arguments: {file: x}").endswith(
        "guards: kept: write_file takes no argument 'file'; expected content or path"
    )
    both = told("write_file, append_file", "ignoring: [old]")
    assert "write_file and append_file take no argument 'old'" in both
    rewritten = told("write_file", "path: [x]", "decision: rewrite, rewrite: {file: y}")
    assert "takes no argument 'file'" in rewritten


def test_the_tools_of_a_server_need_not_be_known(folder):
    agent(folder, "mcp: {web2: {command: [server]}}\napprove: [web2, web2__fetch]")
    [check] = check_configuration(["mine"], folder=folder)
    assert check.ok
    assert "tools and those of its servers" in check.summary


def test_files_that_no_agent_names_are_checked_too(folder):
    (folder / "guards" / "paths.yaml").write_text("- {name: a}")
    (folder / "prompts" / "judge.md").write_text("no version")
    (folder / "guards" / "folder.yaml").mkdir()
    indicators = folder / "requirements" / "indicators.yaml"
    indicators.write_text(indicators.read_text().replace("languages:", "language:", 1))
    problem_by_name = problems(folder)
    assert set(problem_by_name) == {
        "guards/folder.yaml", "guards/paths.yaml", "prompts/judge.md",
        "requirements/indicators.yaml",
    }  # fmt: skip
    assert "cannot be read (Is a directory)" in problem_by_name["guards/folder.yaml"]
    assert "found nothing, expected point" in problem_by_name["guards/paths.yaml"]
    assert "language" in problem_by_name["requirements/indicators.yaml"]
    # Every agent reports it already, so it is not listed again.
    (folder / "guards" / "logs.yaml").write_text("- {name: b}")
    assert "guards/logs.yaml" not in problems(folder)


def test_schema_prints_a_schema_of_each_kind(offline):
    schema = json.loads(offline("config", "schema").out)
    assert schema["$schema"].endswith("2020-12/schema")
    assert "extends" in schema["properties"]
    assert json.loads(offline("config", "schema", "guards", "--json").out)["type"] == "array"
    assert "'nothing'" in offline("config", "schema", "nothing").error


def test_tools_lists_the_registry(offline):
    lines = offline("tools").out.splitlines()
    assert len(lines) == len(REGISTRY) + 1
    [line] = [line for line in lines if " write_file " in line]
    assert line.split()[:2] == ["files", "write_file"]
    assert line.endswith("writes   local     Write a text file; an existing one is replaced.")
    tools = {tool["tool"]: tool for tool in json.loads(offline("tools", "--json").out)}
    assert tools["write_file"]["parameters"]["required"] == ["path", "content"]
    assert (tools["fetch_page"]["effect"], tools["fetch_page"]["local"]) == ("outside", False)


def test_tools_of_an_agent_are_told_by_kind_of_phase(offline):
    kinds = json.loads(offline("tools", "creator", "--json").out)["kinds"]
    names = {kind: {tool["tool"]: tool for tool in kinds[kind]} for kind in kinds}
    assert "job_complete" in names["strategic"]
    assert "job_complete" not in names["tactical"]
    assert "cite_document" in names["tactical"]
    assert "secrets" in names["tactical"]["write_file"]["guards"]
    assert "tested-by-the-tester" not in names["tactical"]["read_file"]["guards"]
    out = offline("tools", "creator").out
    assert out.startswith(f"strategic: {len(names['strategic'])} tools")
    assert offline("tools", "reviewer").out.startswith("review: 5 tools")


def test_guards_of_others_are_not_an_agents_own():
    of_tester = [tool for tools in agent_tool_listing("tester").kinds.values() for tool in tools]
    assert all("tested-by-the-tester" not in tool.guards for tool in of_tester)
    assert any("secrets" in tool.guards for tool in of_tester)
