"""What servers declare when a job starts, and how it is pinned."""

from pathlib import Path

import pytest

from activities.mcp.call_errors import ServerUnavailable
from activities.mcp.declarations import declare_tools, unique_mcp_tool_name
from activities.toolkit.agent_tools import agent_tools_by_name, check_agent_server_names
from activities.toolkit.registry import REGISTRY
from activities.toolkit.tool_offer import offer_tools
from config.agent_files import load_agent
from config.schema.agent import ConfigError
from config.schema.mcp_servers import Server
from tests.activities.mcp.serving import agent, answer, call, names, odd, public, standing


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    return tmp_path / "ledger"


def test_tools_have_a_name_that_endpoints_take_and_a_page(ledger: Path) -> None:
    config = agent(odd=odd(ledger))
    assert names(config) == sorted(names(config))
    assert "odd__note" in names(config)
    [odd_one] = [name for name in names(config) if name.startswith("odd__with")]
    assert odd_one.isascii()
    entry = agent_tools_by_name(config)["odd__note"]
    assert entry.page.startswith("# odd__note(text, times?)\n\nNote a text.\n\nIt is kept.")
    assert "- `text`: What to note." in entry.page
    assert entry.schema["function"]["parameters"]["required"] == ["text"]
    assert entry.phases == ("tactical",)
    assert not entry.route.local


def test_a_tool_of_ones_own_keeps_its_name(ledger: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(REGISTRY, "odd__note", REGISTRY["read_file"])
    [named] = names(agent(odd=odd(ledger, tools=["note"])))
    assert named.startswith("odd__note_")


def test_effects_are_what_the_server_says_unless_the_agent_knows_better(ledger: Path) -> None:
    config = agent(odd=odd(ledger, effects={"note": "repeatable", "look": "once"}))
    effects = {declared.tool: declared.effect for declared in config.server_tools}
    assert effects["stumble"] == "reads"
    assert effects["fall"] == "repeatable"
    assert effects["crash"] == "once"
    assert effects["note"] == "repeatable"
    assert agent_tools_by_name(config)["odd__look"].at_most_once
    assert not agent_tools_by_name(config)["odd__note"].at_most_once


def test_a_tool_with_a_wrong_schema_is_left_out_and_said_so(ledger: Path) -> None:
    config = load_agent("generalist", {"mcp": {"odd": odd(ledger)}})
    [note] = declare_tools(config)
    assert note.startswith("the tool wrong of odd is left out: its schema is not valid")
    assert "odd__wrong" not in names(config)


def test_only_the_tools_that_are_asked_for(ledger: Path) -> None:
    assert names(agent(odd=odd(ledger, tools=["note"]))) == ["odd__note"]
    with pytest.raises(ConfigError, match=r"mcp\.odd\.tools: nothing is no tool of the server"):
        agent(odd=odd(ledger, tools=["nothing"]))


def test_the_list_stays_when_the_server_changes_its_own(tmp_path: Path, ledger: Path) -> None:
    config = agent(odd=odd(ledger))
    assert "odd__context" in names(config)
    job = standing(tmp_path / "job", config)
    assert "odd__context" not in names(agent(odd=odd(ledger)))
    assert "odd__context" in names(job.open().config)
    assert call(job, "odd__context", '{"context": "a"}').ok


def test_a_server_that_is_not_there(ledger: Path) -> None:
    missing_server = {"command": ["no-such-program"]}
    with pytest.raises(
        ServerUnavailable, match=r"MCP server gone \(no-such-program\) cannot be reached"
    ):
        agent(gone=missing_server)
    config = load_agent(
        "generalist", {"mcp": {"gone": {**missing_server, "away": "degrade"}, "odd": odd(ledger)}}
    )
    notes = declare_tools(config)
    assert notes[0].startswith("the job goes on without the tools of gone. The MCP server gone")
    assert list(config.unavailable_servers) == ["gone"]
    assert "odd__look" in names(config)


def test_a_variable_that_is_not_set_is_named(ledger: Path) -> None:
    with pytest.raises(ServerUnavailable, match="the worker's variable NO_SUCH_TOKEN is not set"):
        agent(odd=odd(ledger, env={"TOKEN": "NO_SUCH_TOKEN"}))


def test_a_server_has_no_name_of_ours() -> None:
    config = load_agent("generalist", {"mcp": {"files": {"command": ["x"]}}})
    with pytest.raises(ConfigError, match="files is the name of a tool or a group of tools"):
        check_agent_server_names(config)


def test_many_tools_are_deferred_like_ours(ledger: Path) -> None:
    config = agent(odd=odd(ledger))
    everything = [entry.name for entry in offer_tools(config, "tactical").offered]
    assert "odd__note" in everything
    assert all("__" not in entry.name for entry in offer_tools(config, "strategic").offered)
    config.limits.tools_offered = 5
    offer = offer_tools(config, "tactical", ["odd__look"])
    assert offer.offered[-1].name == "odd__look"
    assert "odd__note" in [entry.name for entry in offer.deferred]


def test_names_are_unique_and_fit() -> None:
    first = unique_mcp_tool_name("a", "b" * 80, set())
    assert len(first) == 64
    assert unique_mcp_tool_name("a", "b" * 81, {first}) != first
    assert unique_mcp_tool_name("a", "b.c", set()) != unique_mcp_tool_name("a", "b c", set())
    assert unique_mcp_tool_name("a", "b", set()) == "a__b"


@pytest.mark.parametrize(
    ("declaration", "complaint"),
    [
        ({}, "either command or url"),
        ({"command": ["x"], "url": "http://x/"}, "either command or url"),
        ({"url": "ftp://x"}, "expected http:// or https://"),
        ({"url": "http://x/", "cwd": "workspace"}, "env and cwd are of a server with a command"),
        ({"command": ["x"], "headers": {"A": "B"}}, "headers are of a server with a url"),
        ({"command": ["x", "{workspace}"]}, "needs cwd: workspace"),
        ({"url": "http://x/", "headers": {"Authorization": "Bearer abc"}}, "match pattern"),
        ({"command": ["x"], "colour": "red"}, "Extra inputs"),
    ],
)
def test_a_server_is_of_one_kind(declaration: dict[str, object], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        Server.model_validate(declaration)


def test_the_reference_servers_declare_all_they_have(tmp_path: Path) -> None:
    config = agent(
        everything=public("everything", "stdio"),
        fs=public("filesystem", "{workspace}", cwd="workspace"),
    )
    assert len(names(config)) == 29
    job = standing(tmp_path / "job", config)
    assert call(job, "fs__list_allowed_directories").ok
    assert answer(job) == "Allowed directories:\n."
