"""Free ports of this machine for processes that we start."""

import random
import socket

_PORTS = range(20_000, 32_000)
"""Below the ephemeral ports: the system could assign one of those before its process binds it."""


def free_port(preferred: int | None = None, *, avoid: int | None = None) -> int:
    """Return the preferred port if it is free, else a free one outside the ephemeral range."""
    if preferred is not None and preferred != avoid and _is_port_free(preferred):
        return preferred
    while True:
        port = random.SystemRandom().choice(_PORTS)
        if port != avoid and _is_port_free(port):
            return port


def _is_port_free(port: int) -> bool:
    with socket.socket() as probe:
        # As servers do: a port can be bound while its last connections are closing.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
