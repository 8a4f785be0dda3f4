"""Servers that are spoken to by HTTP."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import pytest
from temporalio.exceptions import ApplicationError

from activities.mcp.call_errors import ServerUnavailable
from activities.redaction.secrets import redact
from engine.free_ports import free_port
from tests.activities.mcp.serving import ODD, agent, answer, answers, call, names, standing, until
from tests.http_server import Handler, served


@contextmanager
def running(ledger: Path, port: int) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, str(ODD), str(ledger), "http", str(port)])
    try:
        until(lambda: answers(port))
        yield process
    finally:
        process.kill()
        process.wait()


def test_calls_over_http(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger, port = tmp_path / "ledger", free_port()
    monkeypatch.setenv("ODD_TOKEN", "Bearer tea")
    served = {"url": f"http://127.0.0.1:{port}/mcp", "headers": {"Authorization": "ODD_TOKEN"}}
    with running(ledger, port) as process:
        job = standing(tmp_path / "job", agent(odd=served))
        assert call(job, "odd__note", '{"text": "tea"}').ok
        assert answer(job) == "done"
        assert not call(job, "odd__refuse").ok
        # Killed during the call: the call arrived, and nothing more is known.
        assert not call(job, "odd__crash").ok
        assert "may have happened" in answer(job)
        assert process.wait() == 3
    with pytest.raises(ApplicationError, match="cannot be reached") as failed:
        call(job, "odd__note", '{"text": "more"}')
    assert failed.value.type == "Dependency"
    with running(ledger, port):
        # Another process, without the earlier session.
        assert call(job, "odd__note", '{"text": "again"}').ok
    assert ledger.read_text().splitlines() == [
        "listed",
        "note {'text': 'tea'}",
        "crash",
        "note {'text': 'again'}",
    ]


class Gateway(Handler):
    """An endpoint of the older protocol, with sessions; `said` is its next answer to a call or to a
    new session.
    """

    said: ClassVar[list[tuple[int, dict[str, Any]]]] = []
    begun: ClassVar[list[str]] = []

    def do_POST(self) -> None:
        request = json.loads(self.body())
        match request["method"]:
            case "initialize":
                self.begun.append(self.path)
                about = {"serverInfo": {"name": "gateway", "version": "1"}, "capabilities": {}}
                self.tell(200, request, {"protocolVersion": "2025-06-18", **about})
            case "tools/list":
                # It does not support pages: the next page is the same list again.
                tool = {"name": "note", "inputSchema": {"type": "object"}}
                self.tell(200, request, {"tools": [tool] * 3})
            case "tools/call" if not self.said:
                self.tell(200, request, {"content": [{"type": "text", "text": "noted"}]})
            case "tools/call":
                status, body = self.said.pop()
                self.tell(status, body)
            case "server/discover":
                self.tell(404, {})
            case _:
                self.tell(202, {})

    def tell(self, status: int, body: dict[str, Any], result: dict[str, Any] | None = None) -> None:
        if result is not None:
            body = {"jsonrpc": "2.0", "id": body["id"], "result": result}
        self.give_json(body, status, Mcp_Session_Id=len(self.begun))


@contextmanager
def serving(handler: type[Handler]) -> Iterator[str]:
    with served(handler) as address:
        yield f"{address}/mcp"


def test_what_a_status_means_for_a_call(tmp_path: Path) -> None:
    class Status(Gateway):
        """Counts only the sessions that this test begins."""

        said: ClassVar[list[tuple[int, dict[str, Any]]]] = []
        begun: ClassVar[list[str]] = []

    def told(status: int, message: str = "", code: int = -32600) -> str:
        error = {"code": code, "message": message}
        body = {"jsonrpc": "2.0", "id": "server-error", "error": error} if message else {}
        Status.said.append((status, body))
        call(job, "gateway__note")
        return answer(job)

    with serving(Status) as url:
        config = agent(gateway={"url": url})
        assert names(config) == ["gateway__note"]
        job = standing(tmp_path / "job", config)
        assert told(422, "out of ink") == "Error: out of ink"
        assert told(400, "session_id: required", -32602) == "Error: session_id: required"
        assert told(429) == "Error: gateway answered 429 Too Many Requests"
        # A gateway may give up on a call that the server continues.
        assert "502 Bad Gateway. The call may have happened" in told(502)
        # The server lost the session and says so in its own words: a new one is opened.
        assert len(Status.begun) == 1
        assert told(404, "Session not found") == "noted"
        assert told(400, "Bad Request: No valid session ID provided") == "noted"
        assert len(Status.begun) == 3
        with pytest.raises(ApplicationError, match=r"refuses access \(401 Unauthorized\)"):
            told(401)


def test_a_call_whose_answer_breaks_off_is_not_made_again(tmp_path: Path) -> None:
    class Breaking(Gateway):
        """Breaks off during a call; a client that asks for the rest meets a server that has
        restarted.
        """

        calls: ClassVar[list[str]] = []

        def tell(
            self, status: int, body: dict[str, Any], result: dict[str, Any] | None = None
        ) -> None:
            if body.get("method") != "tools/call":
                super().tell(status, body, result)
                return
            self.calls.append(body["params"]["name"])
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            self.wfile.write(b"id: 1\nretry: 10\ndata:\n\n")

        def do_GET(self) -> None:
            self.send_error(404)

    Gateway.said.clear()
    with serving(Breaking) as url:
        job = standing(tmp_path / "job", agent(gateway={"url": url}))
        call(job, "gateway__note")
        assert "The call may have happened" in answer(job)
    assert Breaking.calls == ["note"]


def test_a_start_that_is_refused_says_how() -> None:
    class Refusing(Gateway):
        def do_POST(self) -> None:
            self.tell(401, {})

    complaint = r"/mcp\) cannot be reached: it answered 401 Unauthorized\. "
    with serving(Refusing) as url, pytest.raises(ServerUnavailable, match=complaint):
        agent(gateway={"url": f"{url}?key=tea"})


class Guarded(Gateway):
    """Accepts only the newest token."""

    token: ClassVar[Path]
    refused: ClassVar[list[str]] = []
    calls: ClassVar[list[str]] = []

    def do_POST(self) -> None:
        if self.headers.get("Authorization") != f"Bearer {self.token.read_text()}":
            self.refused.append(self.path)
            self.body()
            self.give(b"", "", 401)
            return
        super().do_POST()

    def tell(self, status: int, body: dict[str, Any], result: dict[str, Any] | None = None) -> None:
        if body.get("method") == "tools/call":
            self.calls.append("note")
        super().tell(status, body, result)


def test_a_token_that_is_over_is_had_anew_while_the_worker_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Gateway.said.clear()
    Guarded.token = tmp_path / "token"
    Guarded.token.write_text("tok-first-4711")
    script = tmp_path / "headers.sh"
    script.write_text(
        f'printf \'{{"Authorization": "Bearer %s"}}\' "$(cat {Guarded.token})"; echo "$WHO" >&2'
    )
    monkeypatch.setenv("GATEWAY_USER", "tea")
    settings = {"headers_command": f"sh {script}", "env": {"WHO": "GATEWAY_USER"}}
    with serving(Guarded) as url:
        config = agent(gateway={"url": url, **settings})
        job = standing(tmp_path / "job", config)
        assert call(job, "gateway__note").ok
        assert not Guarded.refused
        Guarded.token.write_text("tok-second-4712")
        assert call(job, "gateway__note").ok, answer(job)
        assert (len(Guarded.refused), Guarded.calls) == (1, ["note", "note"])
        # A command's output is a credential like any other.
        assert redact("tok-first-4711 tok-second-4712") == "[redacted] [redacted]"
        Guarded.token.write_text("tok-third-4713")
        script.write_text("echo broken >&2; exit 7")
        with pytest.raises(ApplicationError, match=r"refuses access \(401 Unauthorized\)"):
            call(job, "gateway__note")
    assert Guarded.calls == ["note", "note"]


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("echo no token >&2; exit 3", "headers_command ended with exit code 3: no token"),
        ("echo s3cret-token", "headers_command gave no headers; expected a JSON object"),
        ("echo '{\"A\": 7}'", "A is no text that a header can hold"),
        # Whichever limit is reached first.
        ("sleep 60", "within 1 s"),
    ],
)
def test_a_command_that_gives_no_headers_is_told(command: str, why: str) -> None:
    with serving(Gateway) as url, pytest.raises(ServerUnavailable) as away:
        agent(gateway={"url": url, "headers_command": command, "start_seconds": 1})
    assert why in str(away.value)
    assert "s3cret" not in str(away.value)
