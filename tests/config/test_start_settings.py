"""What a start may set: starting a job is no shell on the worker."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from activities.preparation.agent_models import change_model_settings
from config.agent_files import amend_agent_config, load_agent
from config.schema.agent import ConfigError
from config.schema.notifications import Notify
from config.schema.start import StartRights
from config.start_settings import check_start_documents, check_start_notify, check_start_places
from protocol.publishing import Publish
from protocol.repository_start import RepositoryStart

pytestmark = pytest.mark.usefixtures("shipped_config")

COMMAND = {"command": "/bin/sh -c id"}
HARMFUL: list[tuple[dict[str, Any], str]] = [
    ({"hooks": {"PreToolUse": [COMMAND]}}, "hooks"),
    ({"hooks.Notification": [COMMAND]}, "hooks"),
    ({"hooks.PreToolUse": [COMMAND], "limits.rewinds": 1}, "hooks"),
    ({"mcp": {"x": {"command": ["/bin/sh", "-c", "id"]}}}, "mcp"),
    ({"mcp.x": {"url": "http://h/", "headers": {"A": "OPENAI_API_KEY"}}}, "mcp"),
    ({"skills": ["/etc"]}, "skills"),
    ({"shell": {"sandbox": "none"}}, "shell.sandbox"),
    ({"shell.readable": ["/root"]}, "shell.readable"),
    ({"shell.path": ["/srv/bin"]}, "shell.path"),
    ({"shell.network": True}, "shell.network"),
    ({"shell.network": ["10.0.0.1:80"]}, "shell.network"),
    ({"shell.environment": {"A": "OPENAI_API_KEY"}}, "shell.environment"),
    ({"shell.environment.A": "OPENAI_API_KEY"}, "shell.environment"),
    ({"web.allow_private": ["10.0.0.0/8"]}, "web.allow_private"),
    ({"web.search": {"kind": "searxng", "url": "http://evil"}}, "web.search"),
    ({"workspace.remote": "ssh://evil/x.git"}, "workspace.remote"),
    ({"workspace": {"remote": "s3://evil/x"}}, "workspace.remote"),
    ({"model.base_url": "http://evil/v1"}, "model.base_url"),
    ({"model": {"base_url": "http://evil/v1"}}, "model.base_url"),
    ({"model.api_key_variable": "AWS_SECRET_ACCESS_KEY"}, "model.base_url"),
    ({"model.name": "dearest"}, "model.name"),
    ({"model.requests_per_minute": 9}, "model.requests_per_minute"),
    ({"model.weight": 9}, "model.weight"),
    ({"fallbacks": [{"tokens_per_minute": 9}]}, "model.requests_per_minute"),
    ({"phase_models": {"tactical": {"requests_per_minute": 9}}}, "model.requests_per_minute"),
    ({"phase_models": {"tactical": {"base_url": "http://evil/v1"}}}, "model.base_url"),
    ({"fallbacks": [{"base_url": "http://evil/v1"}]}, "model.base_url"),
    ({"fallbacks": [{"name": "dearest"}]}, "model.name"),
    ({"judge": {"model": {"base_url": "http://evil/v1"}}}, "model.base_url"),
    ({"embeddings": {"model": "e", "base_url": "http://evil/v1"}}, "model.base_url"),
    ({"notify": {"url": "http://evil", "headers": {"A": "OPENAI_API_KEY"}}}, "notify"),
    ({"notify": {"url_variable": "OPENAI_API_KEY"}}, "notify"),
    ({"prompts.tactical": "../../../../etc/passwd"}, "prompts.tactical"),
    ({"start": {"set": ["*"]}}, "start.set"),
    ({"start.documents": ["/"]}, "start.documents"),
    ({"start.tokens": {"A": ["https://evil"]}}, "start.tokens"),
    ({"start": {"set": ["*"]}, "hooks": {"Stop": [COMMAND]}}, ""),
]
HARMLESS: list[dict[str, Any]] = [
    {"limits.job.model_calls": 5, "limits.phase.tokens": 1000, "limits.min_todos": 1},
    {"model.name": "gpt-5-mini", "model.temperature": 0.5, "model.reasoning_effort": "high"},
    {"fallbacks": [{"temperature": 1}], "phase_models": {"tactical": {"max_output_tokens": 90}}},
    {"verifiers": [{"name": "t", "command": "make test"}]},
    {"tools": ["files", "todos", "job", "shell"], "approve": ["shell"]},
    {"shell.seconds": 5, "shell.network": False, "shell.setup": ["python3 -m venv /layer"]},
    {"review": {"agent": "reviewer", "attempts": 1}},
    {"judge": {"attempts": 1}},
    {"result_schema": {"type": "object"}, "keep_days": 3, "context.tokens": 9000},
    {"notify": {"url": "https://example.org/hook", "on": ["end"]}},
    {"trust_skills": True, "stuck.cycle": {"nudge": 4, "then": 9}, "reflection": False},
    {"workspace.remote": None, "hooks": {}, "model.base_url": None},
]


@pytest.mark.parametrize(("settings", "key"), HARMFUL)
@pytest.mark.parametrize("way", ["start", "fork or resume"])
def test_what_runs_reads_or_redirects_is_refused(
    way: str, settings: dict[str, Any], key: str
) -> None:
    with pytest.raises(ConfigError, match=rf"^set: {key}.*") as refusal:
        if way == "start":
            load_agent("coder", settings)
        else:
            amend_agent_config(load_agent("coder"), settings)
    assert "configuration" in str(refusal.value) or key.startswith("start")


@pytest.mark.parametrize("settings", HARMLESS)
def test_what_harms_nobody_is_taken(settings: dict[str, Any]) -> None:
    load_agent("coder", settings)
    amend_agent_config(load_agent("coder"), settings)


def configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: dict[str, Any]) -> None:
    (tmp_path / "defaults.yaml").write_text(yaml.safe_dump(content))
    monkeypatch.setenv("LONGHAUL_CONFIG", str(tmp_path))


def test_the_configuration_allows_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = {"start": {"set": ["harmless", "hooks", "shell.network", "model.name"]}}
    configured(tmp_path, monkeypatch, content)
    load_agent("coder", {"hooks.Stop": [COMMAND], "shell": {"network": True}})
    load_agent("coder", {"model.name": "dearest", "limits.rewinds": 1})
    with pytest.raises(ConfigError, match=r"set: shell\.environment"):
        load_agent("coder", {"shell.environment": {"A": "B"}})


def test_the_configuration_allows_less(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    configured(tmp_path, monkeypatch, {"start": {"set": ["limits.job"]}})
    load_agent("coder", {"limits.job.model_calls": 5})
    with pytest.raises(ConfigError, match=r"set: limits\.rewinds: .*does not leave it to a start"):
        load_agent("coder", {"limits.rewinds": 6})


def test_unconfined_commands_are_not_for_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configured(tmp_path, monkeypatch, {"shell": {"sandbox": "none"}})
    with pytest.raises(ConfigError, match=r"set: verifiers: .*unconfined on this worker"):
        load_agent("generalist", {"verifiers": [{"name": "t", "command": "id"}]})
    with pytest.raises(ConfigError, match=r"set: tools: .*unconfined"):
        load_agent("generalist", {"tools": ["files", "todos", "job", "shell"]})


def test_a_configured_model_is_for_starts_with_its_own_key_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = {"name": "tea-1", "base_url": "https://tea/v1", "api_key_variable": "TEA_KEY"}
    configured(
        tmp_path,
        monkeypatch,
        {"fallbacks": [other], "prices": {"tea-2": {"prompt": 1, "completion": 1}}},
    )
    load_agent("coder", {f"model.{key}": value for key, value in other.items()})
    load_agent("coder", {"model.name": "tea-2"})
    with pytest.raises(ConfigError, match="the key in OPENAI_API_KEY goes only to"):
        load_agent("coder", {"model.base_url": "https://tea/v1"})
    with pytest.raises(ConfigError, match="the key in TEA_KEY goes only to"):
        load_agent("coder", {"model.api_key_variable": "TEA_KEY"})


def test_no_right_sends_a_key_to_an_address_that_was_not_configured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configured(tmp_path, monkeypatch, {"start": {"set": ["harmless", "model"]}})
    with pytest.raises(ConfigError, match="the key in OPENAI_API_KEY goes only to"):
        load_agent("coder", {"model.base_url": "http://evil/v1"})


@pytest.mark.parametrize(
    ("named", "taken"),
    [
        ("/etc/shadow", False),
        ("texts/a.md", False),
        ("/srv/texts/../secret/a.md", False),
        ("/srv/textsmore/a.md", False),
        ("/proc/self/environ", False),
        ("/srv/texts/a.md", True),
        ("staged:0123/a.md", True),
        ("https://example.org/a.md", True),
    ],
)
def test_documents_of_the_worker_come_from_named_folders(named: str, taken: bool) -> None:
    rights = StartRights(documents=["/srv/texts"])
    check_start_documents(rights, ["staged:1/b.md"])
    if taken:
        check_start_documents(rights, [named])
        return
    with pytest.raises(ConfigError, match=r"a start may not name a file.*start\.documents"):
        check_start_documents(rights, [named])


def test_a_link_does_not_lead_out_of_a_named_folder(tmp_path: Path) -> None:
    (tmp_path / "texts").mkdir()
    (tmp_path / "secret").write_text("x")
    (tmp_path / "texts" / "a.md").symlink_to(tmp_path / "secret")
    with pytest.raises(ConfigError):
        check_start_documents(
            StartRights(documents=[str(tmp_path / "texts")]), [str(tmp_path / "texts" / "a.md")]
        )


RECORDS = Path("/var/longhaul/.longhaul")
FOLDERS = StartRights(folders=["/srv/code"], tokens={"TOKEN": ["https://git.example.org/team/"]})


@pytest.mark.parametrize(
    ("rights", "start", "why"),
    [
        (StartRights(), {"folder": "/home/other"}, r"a folder of the worker's.*start\.folders"),
        (StartRights(), {"folder": "staged:x/tea"}, ""),
        (StartRights(), {"url": "file:///srv/code/x.git"}, ""),
        (StartRights(), {"url": f"file://{RECORDS}/checkpoints/other.git"}, "a repository of the"),
        (StartRights(), {"url": "file:///srv/%2e%2e/var/longhaul/.longhaul/x"}, "a repository of"),
        (FOLDERS, {"url": "file:///srv/other/x.git"}, r"start\.folders with its folder"),
        (FOLDERS, {"folder": "/srv/code/tea"}, ""),
        (FOLDERS, {"folder": "/srv/code/../other"}, "a folder of the worker's"),
        (FOLDERS, {"url": "https://evil/x.git", "token_variable": "TOKEN"}, "of TOKEN may not go"),
        (
            FOLDERS,
            {"url": "https://git.example.org/teams/x.git", "token_variable": "TOKEN"},
            "of TOKEN may not go",
        ),
        (
            FOLDERS,
            {"url": "https://git.example.org/team/../x.git", "token_variable": "TOKEN"},
            "of TOKEN may not go",
        ),
        (
            FOLDERS,
            {"url": "http://git.example.org/team/x.git", "token_variable": "TOKEN"},
            "of TOKEN may not go",
        ),
        (FOLDERS, {"url": "https://git.example.org/team/x.git", "token_variable": "TOKEN"}, ""),
        (
            FOLDERS,
            {"url": "https://git.example.org/team/x.git", "token_variable": "OPENAI_API_KEY"},
            r"start\.tokens with OPENAI_API_KEY",
        ),
    ],
)
def test_folders_and_tokens_are_the_configurations(
    rights: StartRights, start: dict[str, Any], why: str
) -> None:
    def check() -> None:
        check_start_places(rights, RepositoryStart.model_validate(start), None, RECORDS)
        if "url" in start:
            fields = {"remote": start["url"], "token_variable": start.get("token_variable")}
            check_start_places(rights, None, Publish(branch="x", **fields), RECORDS)

    if not why:
        check()
        return
    with pytest.raises(ConfigError, match=why):
        check()


def test_a_project_sends_no_key_of_the_worker_with_its_notices() -> None:
    agent = load_agent("coder")
    check_start_notify(agent, Notify(url="https://example.org/x"))
    with pytest.raises(ConfigError, match="set: notify"):
        check_start_notify(agent, Notify(url="https://e.org", headers={"A": "OPENAI_API_KEY"}))
    with pytest.raises(ConfigError, match="only the configuration of the worker can set it"):
        check_start_notify(agent, Notify(url="https://e.org", digest="08:00"))


def test_a_changed_address_takes_no_other_key_along(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = {
        "phase_models": {"tactical": {"api_key_variable": "TEA_KEY"}},
        "fallbacks": [{"base_url": "https://tea/v1"}],
    }
    configured(tmp_path, monkeypatch, content)
    with pytest.raises(ConfigError, match="the key in TEA_KEY goes only to"):
        change_model_settings(load_agent("coder"), {"model.base_url": "https://tea/v1"}, "tactical")
