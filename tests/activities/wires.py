"""Bare repositories behind the servers that people have: HTTP(S) with a password, and ssh."""

import base64
import gzip
import os
import pwd
import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import pytest

from engine.free_ports import free_port
from tests.http_server import Handler, served

USER, PASSWORD = "tea", "0010ng-4711-brewed"
HELPER = f"!f() {{ echo username={USER}; echo password=$TEST_REMOTE_SECRET; }}; f"
Trouble = Literal["", "500", "slow", "cut", "unanswered", "slow fetch"]


@dataclass
class Web:
    """`git http-backend` behind a server that requires a password."""

    url: str = ""
    trouble: Trouble = ""
    """What happens to a push: an error, a late answer, or a connection that is cut during the
    transfer, or after it and before the answer.
    """
    waits: threading.Event = field(default_factory=threading.Event)
    """Set once an answer is waiting."""
    goes_on: threading.Event = field(default_factory=threading.Event)
    """Releases a late answer."""


def authorization(password: str = PASSWORD) -> str:
    return "Basic " + base64.b64encode(f"{USER}:{password}".encode()).decode()


def _backend() -> Path:
    completed = subprocess.run(["git", "--exec-path"], check=True, capture_output=True, text=True)
    path = Path(completed.stdout.strip()) / "git-http-backend"
    if not path.exists():
        pytest.skip(f"{path} is not there: this git was built without its server for HTTP")
    return path


def certificate(folder: Path) -> Path:
    """Write a self-signed certificate for this host; key and certificate are in one file."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not there: on Debian `apt install openssl`")
    path = folder / "certificate.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
         "-nodes", "-days", "2", "-subj", "/CN=tea", "-addext", "subjectAltName=IP:127.0.0.1",
         "-keyout", path, "-out", path.with_suffix(".crt")],
        check=True, capture_output=True,
    )  # fmt: skip
    path.write_bytes(path.read_bytes() + path.with_suffix(".crt").read_bytes())
    return path


@contextmanager
def web(folder: Path, proof: Path | None = None) -> Iterator[Web]:
    """Serve the bare repositories in a folder, with HTTPS if there is a certificate."""
    backend, site = _backend(), Web()

    class Repositories(Handler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._answer(b"")

        def do_POST(self) -> None:
            size = self.headers.get("Content-Length")
            self._answer(self.rfile.read(int(size)) if size else b"".join(self._chunks()))

        def _chunks(self) -> Iterator[bytes]:
            while length := int(self.rfile.readline(), 16):
                yield self.rfile.read(length)
                self.rfile.readline()
                if site.trouble == "cut":
                    return
            self.rfile.readline()

        def _answer(self, body: bytes) -> None:
            if self.headers.get("Authorization") != authorization():
                self._send("401 Not you", {"WWW-Authenticate": 'Basic realm="tea"'}, b"")
                return
            # Before sending much, git asks whether it may.
            is_push = self.path.endswith("/git-receive-pack") and body != b"0000"
            is_fetch = self.path.endswith("/git-upload-pack")
            trouble = site.trouble if is_push else ""
            if is_fetch and site.trouble == "slow fetch":
                trouble = "slow"
            if trouble == "500":
                self._send("500 Out of tea", {}, b"")
                return
            if trouble == "slow":
                site.waits.set()
                site.goes_on.wait(60)
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            output = self._run(body)
            if trouble in ("cut", "unanswered"):
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            head, _, content = output.partition(b"\r\n\r\n")
            headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
            self._send(headers.pop("Status", "200 OK"), headers, content)

        def _run(self, body: bytes) -> bytes:
            url = urlsplit(self.path)  # a whole address when it comes as to a proxy
            variables = {
                "GIT_PROJECT_ROOT": str(folder),
                "GIT_HTTP_EXPORT_ALL": "1",
                "GIT_CONFIG_NOSYSTEM": "1",
                "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
                "REMOTE_USER": USER,
                "REMOTE_ADDR": "127.0.0.1",
                "REQUEST_METHOD": self.command,
                "PATH_INFO": url.path,
                "QUERY_STRING": url.query,
                "CONTENT_TYPE": self.headers.get("Content-Type", ""),
                "CONTENT_LENGTH": str(len(body)),
                "PATH": os.environ["PATH"],
            }
            done = subprocess.run(
                [backend], input=body, env=variables, capture_output=True, check=False
            )
            return done.stdout

        def _send(self, status: str, headers: dict[str, str], body: bytes) -> None:
            code, _, reason = status.partition(" ")
            self.send_response(int(code), reason)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

    tls = None
    if proof:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(proof)
    with served(Repositories, tls) as address:
        site.url = address
        yield site


@dataclass
class Shell:
    """An sshd that accepts this user with one key."""

    folder: Path
    url: str

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text()

    def command(self, key: str = "key", known: str = "known") -> str:
        """The ssh command line, without this machine's own configuration."""
        return (
            f"ssh -F none -i {self.folder / key} -o IdentitiesOnly=yes -o IdentityAgent=none"
            f" -o UserKnownHostsFile={self.folder / known} -o GlobalKnownHostsFile=none"
        )


@contextmanager
def shell(folder: Path) -> Iterator[Shell]:
    """Run an sshd with keys made in the folder."""
    program = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin:/usr/local/sbin")
    if program is None or shutil.which("ssh") is None:
        pytest.skip("sshd or ssh is not there: on Debian `apt install openssh-server`")
    if os.geteuid() == 0:
        # Its service creates this at boot.
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    folder.mkdir()
    for name in ("host", "key", "stranger"):
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True
        )
    port = free_port()
    for file, key in (("known", "host"), ("changed", "stranger")):
        public = (folder / f"{key}.pub").read_text()
        (folder / file).write_text(f"[127.0.0.1]:{port} {public}")
    config = folder / "sshd_config"
    config.write_text(
        f"ListenAddress 127.0.0.1:{port}\nHostKey {folder / 'host'}\nPidFile none\n"
        f"AuthorizedKeysFile {folder / 'key.pub'}\nStrictModes no\nUsePAM no\n"
        "PermitRootLogin yes\nPasswordAuthentication yes\nAcceptEnv GIT_PROTOCOL\n"
    )
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([program, "-D", "-e", "-f", config], stderr=log)
    try:
        _await(port, process, folder / "log")
        user = pwd.getpwuid(os.getuid()).pw_name
        let_in = Shell(folder, f"ssh://{user}@127.0.0.1:{port}")
        login = [*let_in.command().split(), f"-p{port}", "-oBatchMode=yes", f"{user}@127.0.0.1"]
        if subprocess.run([*login, "true"], stdin=subprocess.DEVNULL, check=False).returncode:
            pytest.skip(f"sshd lets {user} in by no key here: {let_in.log}")
        yield let_in
    finally:
        process.terminate()
        process.wait()


def _await(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + 10
    while time.monotonic() < until and process.poll() is None:
        with socket.socket() as trial:
            if trial.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)
    pytest.fail(f"sshd does not start: {log.read_text()}")


@contextmanager
def wired(wire: str, remote: Path, patch: pytest.MonkeyPatch) -> Iterator[str]:
    """Return the address of a bare repository over a connection for which this process's git is set
    up.
    """
    config = remote.with_name("gitconfig")
    patch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    patch.setenv("GIT_CONFIG_GLOBAL", str(config))
    if wire == "https":
        patch.setenv("TEST_REMOTE_SECRET", PASSWORD)
        proof = certificate(remote.parent)
        patch.setenv("GIT_SSL_CAINFO", str(proof))
        config.write_text(f'[credential]\n\thelper = "{HELPER}"\n')
        with web(remote.parent, proof) as served:
            yield f"{served.url}/{remote.name}"
    elif wire == "ssh":
        with shell(remote.with_name("sshd")) as let_in:
            config.write_text(f"[core]\n\tsshCommand = {let_in.command()}\n")
            yield f"{let_in.url}{remote}"
    else:
        yield f"file://{remote}"


def given(patch: pytest.MonkeyPatch, **settings: str) -> None:
    """Configure git through its environment; `__` stands for the dots in a name."""
    patch.setenv("GIT_CONFIG_COUNT", str(len(settings)))
    for number, (name, value) in enumerate(settings.items()):
        patch.setenv(f"GIT_CONFIG_KEY_{number}", name.replace("__", "."))
        patch.setenv(f"GIT_CONFIG_VALUE_{number}", value)
