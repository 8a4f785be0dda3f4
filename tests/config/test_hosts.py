"""Which hosts an entry of `shell.network` covers."""

import pytest

from config.schema.shell import parse_host_entry, plain_host


@pytest.mark.parametrize(
    ("entry", "host", "port", "covered"),
    [
        ("pypi.org", "pypi.org", 443, True),
        ("pypi.org", "PyPI.org.", 80, True),
        ("pypi.org", "pypi.org", 8080, False),
        ("pypi.org", "www.pypi.org", 443, False),
        ("pypi.org", "notpypi.org", 443, False),
        ("*.pypi.org", "a.b.pypi.org", 443, True),
        ("*.pypi.org", "pypi.org", 443, False),
        ("*.pypi.org", "notpypi.org", 443, False),
        ("pypi.org:8443", "pypi.org", 8443, True),
        ("pypi.org:8443", "pypi.org", 443, False),
        ("10.0.0.5", "10.0.0.5", 80, True),
        ("[0:0::1]:80", "[::1]", 80, True),
        ("::1", "::1", 81, False),
    ],
)
def test_an_entry_covers_its_names_and_ports(
    entry: str, host: str, port: int, covered: bool
) -> None:
    assert parse_host_entry(entry).covers_place(plain_host(host), port) is covered


def test_only_one_exact_place_may_be_private() -> None:
    private = ("localhost:4873", "10.0.0.5", "[::1]:80")
    assert all(parse_host_entry(entry).may_be_private for entry in private)
    public = ("localhost", "*.internal", "*.internal:4873")
    assert not any(parse_host_entry(entry).may_be_private for entry in public)
