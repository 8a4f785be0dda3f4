"""Only public addresses are reached, in whatever way an address is written."""

from ipaddress import ip_address

import pytest
from pydantic import ValidationError

from activities.runtime.addresses import is_public_address, resolve_host
from activities.web.page_addresses import PageRefused, check_page_addresses, parse_page_address
from config.schema.web import Web

PRIVATE = [
    *("127.0.0.1", "127.9.9.9", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254"),
    *("0.0.0.0", "100.64.0.1", "100.100.100.200", "192.0.0.192", "198.18.0.1", "224.0.0.1"),
    *("240.0.0.1", "255.255.255.255", "168.63.129.16", "203.0.113.5"),
    *(
        "::1",
        "::",
        "fe80::1",
        "fec0::1",
        "fc00::1",
        "fd00:ec2::254",
        "ff02::1",
        "2001:db8::1",
        "3fff::1",
    ),
    *("::ffff:127.0.0.1", "::ffff:10.0.0.1", "::127.0.0.1", "64:ff9b::7f00:1", "64:ff9b::a00:1"),
    *("64:ff9b:1::1", "2002:7f00:1::", "2002:a00:1::1", "2001:0:4136:e378:8000:63bf:3fff:fdd2"),
]
PUBLIC = ["1.1.1.1", "93.184.215.14", "2606:4700::1111", "64:ff9b::101:101", "::ffff:1.1.1.1"]


@pytest.mark.parametrize("address", PRIVATE)
def test_addresses_that_are_not_public(address: str) -> None:
    assert not is_public_address(ip_address(address))


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses(address: str) -> None:
    assert is_public_address(ip_address(address))


@pytest.mark.parametrize(
    "host", ["2130706433", "0177.0.0.1", "0x7f000001", "127.1", "localhost", "[::1]", "LOCALHOST"]
)
def test_other_ways_to_write_loopback(host: str) -> None:
    with pytest.raises(PageRefused, match=r"not a public address|not an address"):
        url = parse_page_address(f"http://{host}/")
        check_page_addresses(url, resolve_host(url.raw_host.decode(), 80), Web())


@pytest.mark.parametrize(
    ("address", "complaint"),
    {
        "ftp://example.org/a": "only http",
        "file:///etc/passwd": "only http",
        "example.org": "only http",
        "": "only http",
        "http:///a": "only http",
        "http://[::1/": "not an address",
        "http://a:b@example.org/": "user name or password",
        "http://good.example@evil.example/": "user name or password",
        "http://example.org:99999/": "not an address",
        f"http://example.org/{'x' * 3000}": "longer than 2,000",
    }.items(),
)
def test_addresses_that_cannot_be_asked_for(address: str, complaint: str) -> None:
    with pytest.raises(PageRefused, match=complaint):
        parse_page_address(address)


def test_ports_of_other_services() -> None:
    for port, refused in {25: True, 22: True, 80: False, 443: False, 8080: False}.items():
        url = parse_page_address(f"http://example.org:{port}/")
        if refused:
            with pytest.raises(PageRefused, match="not a web server's"):
                check_page_addresses(url, ["1.1.1.1"], Web())
        else:
            assert check_page_addresses(url, ["1.1.1.1"], Web()) == ["1.1.1.1"]


def test_one_private_address_among_several_refuses_the_host() -> None:
    with pytest.raises(PageRefused, match=r"pages\.example \(10\.0\.0\.1\)"):
        check_page_addresses(
            parse_page_address("http://pages.example/"), ["1.1.1.1", "10.0.0.1"], Web()
        )


def test_what_the_operator_allows() -> None:
    web = Web(allow_private=["10.1.0.0/16", "Wiki.Internal"])
    for host, address, allowed in [
        ("a.example", "10.1.2.3", True),
        ("a.example", "::ffff:10.1.2.3", True),
        ("a.example", "10.2.2.3", False),
        ("wiki.internal", "10.2.2.3", True),
        ("x.wiki.internal", "10.2.2.3", False),
    ]:
        url = parse_page_address(f"http://{host}/")
        if allowed:
            assert check_page_addresses(url, [address], web) == [address]
        else:
            with pytest.raises(PageRefused):
                check_page_addresses(url, [address], web)


@pytest.mark.parametrize("entry", ["", "http://a", "10.0.0.1/8", "*.internal", "a b", "a:80"])
def test_what_cannot_be_allowed(entry: str) -> None:
    with pytest.raises(ValidationError, match="host names"):
        Web(allow_private=[entry])
