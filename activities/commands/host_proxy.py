"""An HTTP proxy through which sandboxed commands reach the hosts that the configuration lists.

The proxy runs in the worker. Its listening socket belongs to the sandbox's network namespace: the
sandbox's first process opens it and passes it to the worker before the command begins. The proxy
resolves names, connects to the addresses that it checked, and refuses everything else.
"""

from __future__ import annotations

import json
import os
import selectors
import socket
import threading
from contextlib import ExitStack, suppress
from ipaddress import ip_address
from urllib.parse import urlsplit

import h11

from activities.runtime.addresses import is_public_address, resolve_host
from config.schema.shell import HostEntry, parse_host_entry, plain_host
from protocol.errors import Refusal
from protocol.short_text import fork_command

PORT = 3128
BUNDLES = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt")
"""Where distributions keep the certificates that the machine trusts."""
TRUST = ("PIP_CERT", "NODE_EXTRA_CA_CERTS", "CARGO_HTTP_CAINFO")
"""Variables of programs that bring certificates of their own, and lack those of a proxy."""
"""Port of the proxy on the sandbox's 127.0.0.1."""
MAX_CONNECTIONS = 64
MAX_REFUSED = 20
CONNECT_SECONDS = 15
IDLE_SECONDS = 600
_CHUNK = 65_536
_HOP_HEADERS = frozenset(
    {b"connection", b"host", b"keep-alive", b"proxy-authorization", b"proxy-connection", b"te"}
    | {b"trailer", b"upgrade"}
)
PASS_LISTENER = f"""
import os, socket, sys
listener = socket.create_server(("127.0.0.1", {PORT}), backlog=64)
with socket.socket(fileno=int(sys.argv[1])) as channel:
    socket.send_fds(channel, [b"1"], [listener.fileno()])
listener.close()
os.execv(sys.argv[2], sys.argv[2:])
"""
"""Script of the sandbox's first process: argument 1 is a descriptor, the rest is the command."""


MAX_LISTED = 500


class PlaceRefused(Refusal):
    """A place that the configuration does not allow; the message says why and what to do.

    Args:
        brief: Short reason, shown after the place.
    """

    def __init__(self, text: str, brief: str = "") -> None:
        super().__init__(text)
        self.brief = brief


class HostProxy:
    """The proxy of one command, used as a context manager; the sandbox gets `child_end`."""

    def __init__(self, hosts: list[str]) -> None:
        self._entries = [parse_host_entry(text) for text in hosts]
        self._hosts = tuple(hosts)
        self._channel, self.child_end = socket.socketpair()
        self._room = threading.BoundedSemaphore(MAX_CONNECTIONS)
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._closed = False
        self.refused: list[str] = []

    def __enter__(self) -> HostProxy:
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._closed = True
            for each in [*self._open, self._channel]:
                with suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)
        self.child_end.close()

    def start_serving(self) -> None:
        """Begin to serve; call this once the sandbox's process has `child_end`."""
        self.child_end.close()
        threading.Thread(target=self._serve_listener, daemon=True).start()

    def _track(self, stack: ExitStack, each: socket.socket) -> None:
        """Shut the socket down when the command ends, and close it with the stack."""
        stack.callback(self._untrack, each)
        with self._lock:
            self._open.add(each)
            if self._closed:
                raise ConnectionAbortedError

    def _untrack(self, each: socket.socket) -> None:
        with self._lock:
            self._open.discard(each)
            each.close()

    def _serve_listener(self) -> None:
        with suppress(OSError, ValueError), ExitStack() as stack, self._channel:
            descriptors = socket.recv_fds(self._channel, 1, 1)[1]
            if not descriptors:
                return
            listener = socket.socket(fileno=descriptors[0])
            self._track(stack, listener)
            while True:
                self._room.acquire()
                client = listener.accept()[0]
                threading.Thread(target=self._serve_client, args=(client,), daemon=True).start()

    def _serve_client(self, client: socket.socket) -> None:
        try:
            with suppress(OSError), ExitStack() as stack:
                self._track(stack, client)
                client.settimeout(IDLE_SECONDS)
                self._answer_request(stack, client)
        finally:
            self._room.release()

    def _answer_request(self, stack: ExitStack, client: socket.socket) -> None:
        parser = h11.Connection(h11.SERVER)
        try:
            request = _read_proxy_request(client, parser)
            if request is None:
                return
            host, port = _proxy_target_host_and_port(request)
        except (h11.RemoteProtocolError, ValueError) as error:
            _send_proxy_answer(client, 400, "Bad Request", f"This is a proxy for HTTP: {error}.")
            return
        try:
            server = self._connect_place(host, port)
        except PlaceRefused as error:
            place = (f"[{host}]:{port}" if ":" in host else f"{host}:{port}") + error.brief
            with self._lock:
                if place not in self.refused and len(self.refused) < MAX_REFUSED:
                    self.refused.append(place)
            # Clients show only the reason phrase of a refused CONNECT.
            _send_proxy_answer(client, 403, f"shell.network refuses {place}"[:200], str(error))
            return
        except OSError as error:
            _send_proxy_answer(
                client, 502, "Bad Gateway", f"{host}:{port} cannot be reached: {error}."
            )
            return
        self._track(stack, server)
        if request.method == b"CONNECT":
            client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            server.sendall(parser.trailing_data[0])
            _relay_tunnel(client, server)
        else:
            _relay_request(client, parser, server, request, port)

    def _fork_allowing(self, host: str, port: int) -> str:
        listed = json.dumps([*self._hosts, f"{host}:{port}"])
        if len(listed) > MAX_LISTED:
            listed = json.dumps(["…", f"{host}:{port}"], ensure_ascii=False)
        return fork_command(f"shell.network={listed}")

    def _connect_place(self, host: str, port: int) -> socket.socket:
        """Connect to one of the host's checked addresses. Raises PlaceRefused, OSError."""
        entries = [entry for entry in self._entries if entry.covers_place(host, port)]
        if not entries:
            raise PlaceRefused(
                f"{host}, port {port}, is not among the hosts that shell.network allows "
                f"({', '.join(self._hosts)}). A person can list it in a fork of this job: "
                f"{self._fork_allowing(host, port)}."
            )
        addresses = resolve_host(host, port)
        if private := _private_proxy_target(entries, addresses):
            raise PlaceRefused(
                f"{host} leads to {private}, which is not a public address. A person can allow it "
                f"by adding {host}:{port} to shell.network in a fork of this job: "
                f"{self._fork_allowing(host, port)}.",
                " (not a public address: list it with its port)",
            )
        trouble: OSError = OSError("no address")
        for address in addresses:
            try:
                server = socket.create_connection((address, port), CONNECT_SECONDS)
            except OSError as error:
                trouble = error
            else:
                server.settimeout(IDLE_SECONDS)
                return server
        raise trouble


def proxy_variables(hosts: list[str]) -> dict[str, str]:
    address = f"http://127.0.0.1:{PORT}"
    listed = {parse_host_entry(text).host for text in hosts}
    # Reach servers that the command itself starts without the proxy.
    direct = ",".join(name for name in ("localhost", "127.0.0.1", "::1") if name not in listed)
    variables = {"npm_config_proxy": address, "npm_config_https_proxy": address}
    if bundle := next(filter(os.path.exists, BUNDLES), ""):
        variables |= dict.fromkeys(TRUST, bundle)
    for name, value in {"http_proxy": address, "https_proxy": address, "no_proxy": direct}.items():
        variables |= {name: value, name.upper(): value}
    return {**variables, "npm_config_noproxy": direct, "NODE_USE_ENV_PROXY": "1"}


def _private_proxy_target(entries: list[HostEntry], addresses: list[str]) -> str | None:
    if any(entry.may_be_private for entry in entries):
        return None
    return next((text for text in addresses if not is_public_address(ip_address(text))), None)


def _read_proxy_request(client: socket.socket, parser: h11.Connection) -> h11.Request | None:
    while True:
        event = parser.next_event()
        if isinstance(event, h11.Request):
            return event
        if event is not h11.NEED_DATA:
            return None
        parser.receive_data(client.recv(_CHUNK))


def _proxy_target_host_and_port(request: h11.Request) -> tuple[str, int]:
    target = request.target.decode("ascii")
    is_tunnel = request.method == b"CONNECT"
    parts = urlsplit(f"//{target}" if is_tunnel else target)
    port = parts.port if is_tunnel else parts.port or 80
    if not parts.hostname or not port or (not is_tunnel and parts.scheme.lower() != "http"):
        raise ValueError(f"{json.dumps(target[:200])} is not the address of a host")
    return plain_host(parts.hostname), port


def _send_proxy_answer(client: socket.socket, status: int, reason: str, text: str) -> None:
    body = f"{text}\n".encode(errors="replace")
    head = (
        f"HTTP/1.1 {status} {reason}\r\nContent-Type: text/plain; charset=utf-8\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    client.sendall(head.encode("ascii", "replace") + body)


def _relay_tunnel(client: socket.socket, server: socket.socket) -> None:
    other = {client: server, server: client}
    with selectors.DefaultSelector() as ready:
        for each in other:
            ready.register(each, selectors.EVENT_READ)
        while ready.get_map() and (events := ready.select(IDLE_SECONDS)):
            for key, _ in events:
                source = next(each for each in other if each is key.fileobj)
                if data := source.recv(_CHUNK):
                    other[source].sendall(data)
                else:
                    ready.unregister(source)
                    other[source].shutdown(socket.SHUT_WR)


def _relay_request(
    client: socket.socket,
    parser: h11.Connection,
    server: socket.socket,
    request: h11.Request,
    port: int,
) -> None:
    """Send one request and relay the response; data after it may be meant for another host."""
    sender = h11.Connection(h11.CLIENT)
    parts = urlsplit(request.target.decode("ascii"))
    path = f"{parts.path or '/'}{f'?{parts.query}' if parts.query else ''}"
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    # The server chooses the site by this header, so it has to name the checked host.
    authority = f"{host}:{port}" if port != 80 else f"{host}"
    headers = [(b"Host", authority.encode("ascii")), (b"Connection", b"close")]
    for name, value in request.headers:
        if name not in _HOP_HEADERS:
            headers.append((bytes(name), bytes(value)))
    head = h11.Request(method=request.method, target=path, headers=headers)
    server.sendall(sender.send(head) or b"")
    _relay_body(parser, sender, server)
    with selectors.DefaultSelector() as ready:
        ready.register(client, selectors.EVENT_READ)
        ready.register(server, selectors.EVENT_READ)
        while events := ready.select(IDLE_SECONDS):
            sources = {key.fileobj for key, _ in events}
            if server in sources:
                data = server.recv(_CHUNK)
                if not data:
                    return
                client.sendall(data)
            elif data := client.recv(_CHUNK):
                if parser.their_state is h11.SEND_BODY:
                    parser.receive_data(data)
                    _relay_body(parser, sender, server)
            else:
                ready.unregister(client)


def _relay_body(parser: h11.Connection, sender: h11.Connection, server: socket.socket) -> None:
    """Forward the body that has arrived so far. Raises OSError if it is malformed."""
    try:
        while parser.their_state is h11.SEND_BODY:
            event = parser.next_event()
            if not isinstance(event, h11.Data | h11.EndOfMessage):
                return
            server.sendall(sender.send(event) or b"")
    except h11.ProtocolError as error:
        raise ConnectionAbortedError(str(error)) from error
