"""Temporal and the workspaces, found from the environment."""

import asyncio
import time
from pathlib import Path

import pytest

from engine import connection, root_location, web_ui
from engine.connection import connect_client
from engine.setup_errors import SetupError
from engine.web_ui import answering_web_ui_link, job_web_ui_link
from tests.soak import patient


@pytest.fixture(autouse=True)
def bare(monkeypatch):
    for name in (
        "TEMPORAL_ADDRESS", "TEMPORAL_NAMESPACE", "TEMPORAL_PROFILE", "TEMPORAL_UI_ADDRESS",
        "LONGHAUL_TASK_QUEUE", "LONGHAUL_WORKSPACES",
    ):  # fmt: skip
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("address", ["localhost:1", "no-such-host.invalid:7233", "nonsense"])
async def test_no_server_is_one_line_that_names_it(address):
    with pytest.raises(SetupError) as raised:
        await connect_client(address)
    assert address in str(raised.value)
    assert "`make demo ARGS=--keep`" in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("scheme", ["http", "https", "tcp"])
async def test_an_address_with_a_scheme_is_refused_in_one_line(monkeypatch, recwarn, scheme):
    monkeypatch.setenv("TEMPORAL_ADDRESS", f"{scheme}://me:secret@localhost:1")
    with pytest.raises(SetupError, match=f"{scheme}://localhost:1, expected host:port") as raised:
        await connect_client()
    assert "secret" not in str(raised.value)
    assert not recwarn.list


async def test_a_server_that_never_answers_is_given_up():
    async def silent(reader, writer):
        await reader.read()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    began = time.monotonic()
    with pytest.raises(SetupError, match="no answer"):
        await connect_client(f"127.0.0.1:{port}")
    assert time.monotonic() - began < patient(4 * connection.CONNECT_SECONDS)
    server.close()


async def test_a_server_without_tls_that_is_asked_by_it_is_said_to_be_one(monkeypatch):
    async def plain(_, writer):
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    monkeypatch.setenv("TEMPORAL_TLS", "true")
    server = await asyncio.start_server(plain, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    with pytest.raises(SetupError, match=r"\(it speaks no TLS, asked by TLS"):
        await connect_client(f"127.0.0.1:{port}")
    server.close()


def test_temporals_own_configuration_is_used(monkeypatch, tmp_path):
    file = tmp_path / "temporal.toml"
    file.write_text('[profile.other]\naddress = "far:7233"\nnamespace = "mine"\n')
    monkeypatch.setenv("TEMPORAL_CONFIG_FILE", str(file))
    monkeypatch.setenv("TEMPORAL_PROFILE", "other")
    options = connection.client_options()
    assert (options["target_host"], options["namespace"]) == ("far:7233", "mine")
    assert job_web_ui_link("job") is None
    monkeypatch.setenv("TEMPORAL_PROFILE", "absent")
    with pytest.raises(SetupError, match="configuration"):
        connection.client_options()


def test_a_configuration_file_that_is_not_there_is_told(monkeypatch, tmp_path):
    monkeypatch.setenv("TEMPORAL_CONFIG_FILE", str(tmp_path / "none.toml"))
    with pytest.raises(SetupError, match=r"TEMPORAL_CONFIG_FILE names .*none\.toml, and there is"):
        connection.client_options()
    monkeypatch.setenv("TEMPORAL_CONFIG_FILE", "")
    assert connection.client_options()["target_host"] == "localhost:7233"


def test_defaults():
    assert connection.client_options()["target_host"] == "localhost:7233"
    assert connection.task_queue() == "longhaul"
    assert root_location.workspaces_root() == Path.cwd() / "workspaces"
    assert job_web_ui_link("job") == "http://localhost:8233/namespaces/default/workflows/job"
    assert (
        job_web_ui_link("a/b c") == "http://localhost:8233/namespaces/default/workflows/a%2Fb%20c"
    )


async def test_a_link_is_given_only_where_a_web_ui_answers(monkeypatch):
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    base = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    monkeypatch.setattr(web_ui, "DEFAULT_UI", base)
    link = f"{base}/namespaces/default/workflows/job"
    assert await answering_web_ui_link("job") == link
    server.close()
    await server.wait_closed()
    assert await answering_web_ui_link("job") is None
    monkeypatch.setenv("TEMPORAL_UI_ADDRESS", base)  # said by a person, whose browser reaches it
    assert await answering_web_ui_link("job") == link
