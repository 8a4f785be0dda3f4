"""Free ports are such that the system gives to nobody else."""

import socket
from pathlib import Path

from engine.free_ports import free_port


def test_a_port_in_use_is_passed_over_for_one_that_connections_do_not_get() -> None:
    ephemeral = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        busy = server.getsockname()[1]
        port = free_port(busy)
        assert port != busy
        assert port < ephemeral
    assert free_port(port) == port
    assert free_port(port, avoid=port) != port
