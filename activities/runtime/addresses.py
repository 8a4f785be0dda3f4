"""Host names and IP addresses: what a name resolves to, and what is on the public internet."""

import socket
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

Address = IPv4Address | IPv6Address

# Python counts these as public: protocol assignments, including one cloud's metadata service,
# another cloud's host, and documentation addresses.
_SPECIAL4 = (IPv4Network("192.0.0.0/24"), IPv4Network("168.63.129.16/32"))
_SPECIAL6 = IPv6Network("3fff::/20")
_GLOBAL = IPv6Network("2000::/3")
_NAT64 = IPv6Network("64:ff9b::/96")


def resolve_host(host: str, port: int) -> list[str]:
    """Resolve with the system's resolver, which also reads 127.1, 0x7f000001 and the like."""
    entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in entries))


def is_public_address(address: Address) -> bool:
    """Return whether an address and any IPv4 address embedded in it are public."""
    if isinstance(address, IPv4Address):
        special = any(address in network for network in _SPECIAL4)
        return address.is_global and not (address.is_multicast or address.is_reserved or special)
    if address.ipv4_mapped is not None:
        return is_public_address(address.ipv4_mapped)
    if address in _NAT64:
        return is_public_address(IPv4Address(int(address) & 0xFFFFFFFF))
    if address.teredo is not None:
        return False
    if address.sixtofour is not None and not is_public_address(address.sixtofour):
        return False
    return address in _GLOBAL and address.is_global and address not in _SPECIAL6
