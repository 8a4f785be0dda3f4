"""Commands that may reach listed hosts reach those, by name and port, and nothing else."""

import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from activities.commands import sandbox
from activities.commands.host_proxy import PORT
from config.schema.shell import ShellConfig
from tests.http_server import Handler, served

WHY = sandbox.sandbox_problem(sandbox.find_bwrap())
pytestmark = pytest.mark.skipif(WHY is not None, reason=f"no sandbox here: {WHY}")


class Site(Handler):
    """Answers with what it received."""

    def do_GET(self) -> None:
        if self.path == "/away":
            self.give(b"moved", status=302, Location="http://refused.example/secret")
        else:
            self.give(f"{self.command} {self.path} {self.headers['Host']}".encode())

    def do_POST(self) -> None:
        self.give(b"got %d" % len(self.body()))


@pytest.fixture
def site() -> Iterator[str]:
    with served(Site) as address:
        yield address.replace("127.0.0.1", "localhost")


def run(folder: Path, command: str, *hosts: str, seconds: float = 60) -> sandbox.CommandResult:
    shell = ShellConfig.model_validate({"network": list(hosts)})
    return sandbox.run_sandboxed_command(command, folder, shell, seconds)


def python(script: str) -> str:
    return f"python3 - <<'EOF'\n{script}\nEOF\n"


def raw(request: str) -> str:
    """Return a command that sends a request to the proxy and prints the whole answer."""
    return python(
        "import socket\n"
        f"peer = socket.create_connection(('127.0.0.1', {PORT}), 10)\n"
        f"peer.sendall({request!r}.encode())\n"
        "while data := peer.recv(65536): print(data.decode(), end='')"
    )


def test_a_listed_host_is_reached_by_name_and_port(tmp_path: Path, site: str) -> None:
    place = site.removeprefix("http://")
    (tmp_path / "body").write_bytes(b"x" * 300_000)
    ended = run(
        tmp_path, f"curl -sS {site}/a?b=c; echo; curl -sS --data-binary @body {site}/", place
    )
    assert ended.output == f"GET /a?b=c {place}\ngot 300000"
    assert ended.refused == ()


def test_a_tunnel_reaches_a_listed_host(tmp_path: Path, site: str) -> None:
    ended = run(tmp_path, f"curl -sS -p {site}/tunnelled", site.removeprefix("http://"))
    assert ended.output.startswith("GET /tunnelled localhost:")


def test_an_unlisted_host_is_refused_and_named(tmp_path: Path) -> None:
    ended = run(
        tmp_path,
        "curl -sS http://refused.example/; curl -sS https://refused.example/",
        "pypi.org",
        "*.example.org",
    )
    plain, tunnel = ended.output.splitlines()
    hosts = '["pypi.org", "*.example.org", "refused.example:80"]'
    assert plain == (
        "refused.example, port 80, is not among the hosts that shell.network allows "
        "(pypi.org, *.example.org). A person can list it in a fork of this job: "
        f"`starter.py fork JOB --phase N --set 'shell.network={hosts}'`."
    )
    assert "403" in tunnel
    assert ended.refused == ("refused.example:80", "refused.example:443")


def test_a_redirect_to_an_unlisted_host_is_refused(tmp_path: Path, site: str) -> None:
    ended = run(tmp_path, f"curl -sSL {site}/away", site.removeprefix("http://"))
    assert "refused.example, port 80, is not among" in ended.output
    assert ended.refused == ("refused.example:80",)


def test_another_port_of_a_listed_host_is_refused(tmp_path: Path, site: str) -> None:
    port = site.rpartition(":")[2]
    ended = run(tmp_path, raw(f"CONNECT localhost:{port} HTTP/1.1\r\nHost: x\r\n\r\n"), "localhost")
    assert ended.output.startswith(f"HTTP/1.1 403 shell.network refuses localhost:{port}")


def test_a_name_that_leads_inside_is_refused(tmp_path: Path) -> None:
    ended = run(tmp_path, raw("CONNECT localhost:443 HTTP/1.1\r\nHost: x\r\n\r\n"), "localhost")
    assert "which is not a public address. A person can allow it by adding" in ended.output
    assert "localhost:443 to shell.network" in ended.output
    assert ended.refused == ("localhost:443 (not a public address: list it with its port)",)


def test_an_address_is_reached_where_it_is_listed_only(tmp_path: Path, site: str) -> None:
    port = site.rpartition(":")[2]
    request = raw(f"GET http://127.0.0.1:{port}/x HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    assert run(tmp_path, request, f"127.0.0.1:{port}").output.endswith(f"/x 127.0.0.1:{port}")
    assert "403" in run(tmp_path, request, f"localhost:{port}").output
    for address in ("2130706433", "127.1", "[::ffff:127.0.0.1]"):
        other = request.replace("//127.0.0.1:", f"//{address}:")
        assert "403" in run(tmp_path, other, f"localhost:{port}").output, address


def test_the_host_is_that_of_the_address_not_of_the_header(tmp_path: Path, site: str) -> None:
    place = site.removeprefix("http://")
    request = f"GET {site}/x HTTP/1.1\r\nHost: other.example\r\n\r\n"
    ended = run(tmp_path, raw(request + request.replace("/x", "/second")), place)
    assert ended.output.endswith(f"GET /x {place}")
    away = f"GET http://other.example/ HTTP/1.1\r\nHost: {place}\r\n\r\n"
    assert "other.example, port 80, is not among" in run(tmp_path, raw(away), place).output


@pytest.mark.parametrize("request_line", ["GET / HTTP/1.1", "CONNECT / HTTP/1.1", "\0\1\2"])
def test_what_is_no_request_to_a_proxy_is_answered(tmp_path: Path, request_line: str) -> None:
    ended = run(tmp_path, raw(f"{request_line}\r\nHost: x\r\n\r\n"), "pypi.org")
    assert "400 Bad Request" in ended.output


def test_nothing_goes_past_the_proxy(tmp_path: Path) -> None:
    with socket.create_server(("0.0.0.0", 0)) as server:
        port = server.getsockname()[1]
        own = socket.gethostbyname(socket.gethostname())
        tries = [
            f"socket.create_connection(('127.0.0.1', {port}), 2)",
            f"socket.create_connection(('{own}', {port}), 2)",
            "socket.create_connection(('2606:4700:4700::1111', 443), 2)",
            "socket.create_connection(('1.1.1.1', 443), 2)",
            "socket.getaddrinfo('pypi.org', 443)",
            "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('1.1.1.1', 53))",
        ]
        for attempt in tries:
            script = f"import socket\ntry: {attempt}\nexcept OSError: print('held')"
            ended = run(tmp_path, python(script), "pypi.org", f"localhost:{port}")
            assert ended.output == "held\n", attempt


def test_the_proxy_ends_with_its_command(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        before = threading.active_count()
        ended = run(tmp_path, f"curl -sS http://localhost:{port}/", f"localhost:{port}", seconds=2)
        assert ended.trouble == "it did not end within 2 s"
        peer, _ = server.accept()
        peer.settimeout(20)
        received = b""
        while data := peer.recv(1000):
            received += data
        assert received.startswith(b"GET / HTTP/1.1\r\n")
    end = time.monotonic() + 20
    while threading.active_count() > before:
        assert time.monotonic() < end
        time.sleep(0.05)


def test_hosts_are_checked_when_the_configuration_is_read() -> None:
    for wrong in ("https://pypi.org", "pypi.org:0", "*.com:x", "*", "a b", "10.0.0.0/8", ""):
        with pytest.raises(ValueError, match=r"expected a host such as pypi\.org"):
            ShellConfig.model_validate({"network": [wrong]})
    with pytest.raises(ValueError, match="only a sandbox can hold commands to"):
        ShellConfig.model_validate({"network": ["pypi.org"], "sandbox": "none"})
    assert ShellConfig.model_validate({"network": ["::1", "[::1]:80", "*.a.org:8443"]}).hosts
