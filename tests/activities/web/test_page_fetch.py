"""A page is fetched within bounds, or refused with a sentence; nothing hangs or fills up."""

import datetime
import gzip
import itertools
import socket
import ssl
import time
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from activities.web.page_addresses import PageRefused, Resolve
from activities.web.page_fetch import FetchedPage, download_page
from config.schema.web import Web
from tests.activities.web import sites
from tests.activities.web.sites import PAGE, Answer, Site, serving
from tests.soak import patient

LIMIT = 1_000_000
WEB = Web(allow_private=["127.0.0.1"], page_bytes=LIMIT)
HURRIED = WEB.model_copy(update={"page_seconds": 2})
IMPATIENT = WEB.model_copy(update={"read_seconds": 1})
ANSWERS: dict[str, Answer] = {
    "/endless": sites.endless,
    "/drip": sites.drip,
    "/headers": sites.dripping_headers,
    "/silent": sites.silent,
    "/bomb": sites.bomb,
    "/packed": lambda site: site.give(gzip.compress(PAGE), content_encoding="gzip"),
    "/packed-of-old": lambda site: site.give(gzip.compress(PAGE), content_encoding="x-gzip"),
    "/packed-in-parts": lambda site: site.give(
        gzip.compress(PAGE[:9]) + gzip.compress(PAGE[9:]) + bytes(9), content_encoding="GZIP"
    ),
    "/deflated": lambda site: site.give(zlib.compress(PAGE), content_encoding="deflate"),
    "/deflated-bare": lambda site: site.give(
        zlib.compress(PAGE, wbits=-15), content_encoding="deflate"
    ),
    "/cut": lambda site: site.give(gzip.compress(PAGE)[:-20], content_encoding="gzip"),
    "/cut-in-trailer": lambda site: site.give(gzip.compress(PAGE)[:-2], content_encoding="gzip"),
    "/brotli": lambda site: site.give(PAGE, content_encoding="br"),
    "/damaged": lambda site: site.give(b"\x1f\x8bxx", content_encoding="gzip"),
    "/huge": lambda site: site.give(b"x", content_length=LIMIT * 1000),
    "/short": lambda site: site.give(PAGE, content_length=len(PAGE) + 10),
    "/long": lambda site: site.give(PAGE + b"more", content_length=len(PAGE)),
    "/picture": lambda site: site.give(b"x", "image/png"),
    "/missing": lambda site: site.give(b"", status=404),
    "/broken": lambda site: site.give(b"", status=500),
    "/talkative": sites.talkative,
    "/circle": lambda site: site.move("/circle"),
    "/once": lambda site: site.move("/page?x=1#part"),
    "/away": lambda site: site.move("http://10.0.0.1/secret"),
    "/metadata": lambda site: site.move("http://169.254.169.254/latest/meta-data/"),
    "/file": lambda site: site.move("file:///etc/passwd"),
    "/odd": lambda site: site.move("http://[::1/"),
    "/user": lambda site: site.move("http://a:b@example.org/"),
}


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    with serving(ANSWERS) as port:
        yield f"http://127.0.0.1:{port}"


def refused(address: str, web: Web = WEB, resolver: Resolve | None = None) -> str:
    started = time.monotonic()
    with pytest.raises(PageRefused) as caught:
        download_page(address, web, resolver=resolver) if resolver else download_page(address, web)
    assert time.monotonic() - started < patient(25)
    text = str(caught.value)
    assert "\n" not in text
    return text


def test_a_page_comes_as_it_is(site: str) -> None:
    assert download_page(f"{site}/page#part", WEB) == FetchedPage(
        f"{site}/page", f"{site}/page", "text/html", None, PAGE
    )
    for path in ("packed", "packed-of-old", "packed-in-parts", "deflated", "deflated-bare"):
        assert download_page(f"{site}/{path}", WEB).data == PAGE


def test_a_private_address_needs_the_operators_word(site: str) -> None:
    assert "web.allow_private" in refused(f"{site}/page", Web())


def test_redirects_are_followed_and_each_is_checked(site: str) -> None:
    moved = download_page(f"{site}/once", WEB)
    assert (moved.url, moved.final_url) == (f"{site}/once", f"{site}/page?x=1")
    assert "10.0.0.1 is not a public" in refused(f"{site}/away")
    assert "169.254.169.254 is not a public" in refused(f"{site}/metadata")
    assert "only http" in refused(f"{site}/file")
    assert "not an address" in refused(f"{site}/odd")
    assert "user name" in refused(f"{site}/user")
    Site.seen.clear()
    assert "more than 5 redirects" in refused(f"{site}/circle")
    assert len(Site.seen) == 6


def test_size_and_time_are_bounded(site: str) -> None:
    for path in ("endless", "bomb", "huge"):
        assert f"larger than {LIMIT:,} bytes" in refused(f"{site}/{path}")
    slow = (("drip", HURRIED), ("headers", HURRIED), ("silent", IMPATIENT))
    with ThreadPoolExecutor() as side_by_side:
        refusals = list(side_by_side.map(lambda one: refused(f"{site}/{one[0]}", one[1]), slow))
    assert "took more than 2 s" in refusals[0]
    assert "took more than 2 s" in refusals[1]
    assert "silent for more than 1 s" in refusals[2]


def test_answers_that_are_no_page(site: str) -> None:
    assert "type image/png" in refused(f"{site}/picture")
    assert "404 Not Found" in refused(f"{site}/missing")
    assert "500 Internal Server Error. Try again later" in refused(f"{site}/broken")
    assert "broke off or is damaged" in refused(f"{site}/damaged")
    assert "broke off or is damaged" in refused(f"{site}/short")
    assert "(what is packed breaks off before its end)" in refused(f"{site}/cut")
    assert "(what is packed breaks off before its end)" in refused(f"{site}/cut-in-trailer")
    assert "(packed as br, where only gzip was asked for)" in refused(f"{site}/brotli")
    assert download_page(f"{site}/long", WEB).data == PAGE
    assert "no connection" in refused("http://127.0.0.1:1/")
    refusal = refused(f"{site}/talkative")
    assert "418 I'm a teapot. Check" in refusal
    assert "instructions" not in refusal

    def failing(error: int) -> str:
        def resolver(*_: object) -> list[str]:
            raise socket.gaierror(error, "so it says")

        return refused("http://nowhere.invalid/", WEB, resolver)

    assert "no such host (so it says)" in failing(socket.EAI_NONAME)
    assert "cannot be looked up now (so it says)" in failing(socket.EAI_AGAIN)


def test_the_connection_is_made_to_the_address_that_was_checked(site: str) -> None:
    """A moment later the name has another address: it is resolved once, not by the client."""
    port = site.rpartition(":")[2]
    hosts: list[str] = []

    def rebinding(host: str, _: int) -> list[str]:
        hosts.append(host)
        return ["127.0.0.1"] if len(hosts) == 1 else ["10.0.0.1"]

    Site.seen.clear()
    page = download_page(f"http://pages.invalid:{port}/page", WEB, resolver=rebinding)
    assert page.data == PAGE
    assert hosts == ["pages.invalid"]
    [(_, headers)] = Site.seen
    assert headers["Host"] == f"pages.invalid:{port}"
    # The same for an address that becomes private on the way.
    hosts.clear()
    assert "(10.0.0.1)" in refused(f"http://pages.invalid:{port}/once", WEB, rebinding)


def test_a_second_address_is_tried_and_a_resolver_that_hangs_is_left(site: str) -> None:
    port = site.rpartition(":")[2]
    web = WEB.model_copy(update={"allow_private": ["127.0.0.0/8"]})
    page = download_page(
        f"http://a.invalid:{port}/", web, resolver=lambda *_: ["127.0.0.9", "127.0.0.1"]
    )
    assert page.data == PAGE
    assert "no such host" in refused("http://a.invalid/", web, lambda *_: [])

    def hanging(*_: object) -> list[str]:
        time.sleep(30)
        return []

    assert "took more than 2 s" in refused("http://a.invalid/", HURRIED, hanging)


def test_proxies_of_the_environment_are_not_used(
    site: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert download_page(f"{site}/page", WEB).data == PAGE


def test_certificates_are_verified_against_the_name(tmp_path: Path) -> None:
    certificate = _certificate(tmp_path, "pages.example")
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(certificate)
    trust = ssl.create_default_context(cafile=str(certificate))

    def local(*_: object) -> list[str]:
        return ["127.0.0.1"]

    with serving(tls=server) as port:
        good = f"https://pages.example:{port}/"
        assert download_page(good, WEB, resolver=local, trust=trust).data == PAGE
        for address, trusted in itertools.product((good, good.replace("pages", "other")), (0, 1)):
            if address == good and trusted:
                continue
            with pytest.raises(PageRefused, match=r"(?i)certificate"):
                download_page(address, WEB, resolver=local, trust=trust if trusted else None)


def _certificate(folder: Path, host: str) -> Path:
    """Key and self-signed certificate for the host, in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, host)])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = folder / "site.pem"
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        + certificate.public_bytes(serialization.Encoding.PEM)
    )
    return path
