"""Credentials of the worker are known by their value, wherever in its environment they stand."""

import pytest

from activities.redaction.credentials import HIDDEN, hide_credentials, refresh_credential_values
from config.agent_files import load_agent
from config.schema.guards import Hook
from config.schema.mcp_servers import Server
from config.schema.notifications import Notify
from config.schema.shell import ShellConfig
from protocol.data_model import Data
from protocol.notification_requests import Destination
from protocol.publishing import Publish
from protocol.repository_start import RepositoryStart

STOP = {"command": "x", "environment": ["A"]}


@pytest.mark.parametrize(
    ("name", "value", "secret"),
    [
        ("OTEL_EXPORTER_OTLP_HEADERS", "api-key=k3y-0f-tea-4711,x-team=tea", "k3y-0f-tea-4711"),
        (
            "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
            "Authorization=Basic%20dGVhOnRlYXBvdA==",
            "dGVhOnRlYXBvdA==",
        ),
        ("OTEL_EXPORTER_OTLP_METRICS_HEADERS", "a=b, key = c%2F0ffee-4711 ", "c/0ffee-4711"),
        ("TEA_TOKEN", "0010ng-4711", "0010ng-4711"),
    ],
)
def test_a_value_is_hidden(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, secret: str
) -> None:
    message = f"the receiver said: {secret} is not known"
    assert hide_credentials(message) == message
    monkeypatch.setenv(name, value)
    refresh_credential_values()
    assert hide_credentials(message) == f"the receiver said: {HIDDEN} is not known"
    assert hide_credentials("tea for a team, the api-key, Authorization, Basic") == (
        "tea for a team, the api-key, Authorization, Basic"
    )


def test_a_header_that_git_is_given_is_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CONFIG_KEY_3", "http.https://git.example.com/.extraHeader")
    monkeypatch.setenv("GIT_CONFIG_VALUE_3", "Authorization: Basic dGVhOnRlYXBvdA==")
    assert (
        hide_credentials("Authorization: Basic dGVhOnRlYXBvdA==")
        == f"Authorization: Basic {HIDDEN}"
    )


@pytest.mark.parametrize(
    ("data", "named"),
    [
        (Hook(command="x", environment=["A", "B"]), {"A", "B"}),
        (Server(command=["x"], env={"TOKEN": "A"}), {"A"}),
        (Server(url="https://a.example", headers={"X-Team": "A"}), {"A"}),
        (Notify(url_variable="A", headers={"X-Team": "B"}), {"A", "B"}),
        (Destination(on=["end"], command="x", environment=["A"]), {"A"}),
        (ShellConfig(environment={"INDEX": "A"}), {"A"}),
        (RepositoryStart(url="https://a.example/r.git", token_variable="A"), {"A"}),
        (Publish(remote="https://a.example/r.git", branch="b", token_variable="A"), {"A"}),
        (load_agent("generalist", {"hooks": {"Stop": [STOP]}}), {"OPENAI_API_KEY", "A"}),
    ],
)
def test_every_variable_that_the_configuration_names_is_known(data: Data, named: set[str]) -> None:
    assert data.named_variables == named
