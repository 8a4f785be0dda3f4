"""Images and pages of PDFs, made small enough to be looked at."""

import random
from collections.abc import Callable
from io import BytesIO
from typing import Any

import pypdfium2
import pytest
from PIL import Image

from activities.documents.bounded_reader import draw_bounded
from activities.documents.pages import DocumentError
from activities.documents.picture import LONGEST, MOST_BYTES, MOST_PIXELS


def encoded(kind: str, size: tuple[int, int], mode: str = "RGB", **options: Any) -> bytes:
    out = BytesIO()
    Image.new(mode, size, **options).save(out, kind)
    return out.getvalue()


def noise(size: tuple[int, int]) -> bytes:
    out = BytesIO()
    pixels = random.Random(7).randbytes(3 * size[0] * size[1])
    Image.frombytes("RGB", size, pixels).save(out, "PNG")
    return out.getvalue()


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "GIF"])
def test_a_small_image_is_shown_as_it_is(kind: str) -> None:
    data = encoded(kind, (800, 600), "P" if kind == "GIF" else "RGB")
    picture = draw_bounded("a", data, 1)
    assert picture.data == data
    assert (picture.mime, picture.width, picture.height) == (f"image/{kind.lower()}", 800, 600)
    assert picture.about == f"{kind}, 800 x 600"
    assert picture.tokens == 641


@pytest.mark.parametrize(
    ("encode", "mime"),
    [
        (lambda: encoded("PNG", (2560, 1600)), "image/png"),
        (lambda: encoded("PNG", (5000, 20)), "image/png"),
        (lambda: encoded("PNG", (1, 4000), "LA"), "image/png"),
        (lambda: encoded("WEBP", (3000, 3000), "RGBA"), "image/png"),
        (lambda: noise((1500, 1400)), "image/jpeg"),
    ],
)
def test_a_large_image_is_made_smaller(encode: Callable[[], bytes], mime: str) -> None:
    data = encode()
    picture = draw_bounded("a", data, 1)
    assert picture.mime == mime
    assert max(picture.width, picture.height) <= LONGEST
    assert picture.width * picture.height <= MOST_PIXELS
    assert len(picture.data) <= MOST_BYTES
    shown = Image.open(BytesIO(picture.data))
    assert shown.size == (picture.width, picture.height)
    # Equal in every attempt.
    assert draw_bounded("a", data, 1) == picture


@pytest.mark.parametrize("kind", ["PNG", "JPEG"])
def test_what_can_be_read_of_a_damaged_image_is_shown(kind: str) -> None:
    data = noise((300, 300)) if kind == "PNG" else encoded(kind, (300, 300))
    picture = draw_bounded("a", data[: len(data) // 2], 1)
    assert picture.about == f"{kind}, 300 x 300, damaged"
    assert Image.open(BytesIO(picture.data)).size == (300, 300)


def test_what_is_transparent_is_white() -> None:
    picture = draw_bounded("a", encoded("PNG", (3000, 1000), "RGBA"), 1)
    assert Image.open(BytesIO(picture.data)).convert("RGB").getpixel((5, 5)) == (255, 255, 255)


def test_a_page_of_a_pdf_is_drawn() -> None:
    document, out = pypdfium2.PdfDocument.new(), BytesIO()
    document.new_page(595, 842)
    document.new_page(14_000, 14_000)
    document.save(out)
    first, second = (draw_bounded("a.pdf", out.getvalue(), page) for page in (1, 2))
    assert first.about == "PDF, page 1 of 2"
    assert (first.mime, first.width, first.height) == ("image/png", 920, 1303)
    assert second.width * second.height <= MOST_PIXELS + LONGEST
    with pytest.raises(DocumentError, match=r"a\.pdf: it has 2 pages, and no page 3"):
        draw_bounded("a.pdf", out.getvalue(), 3)


@pytest.mark.parametrize(
    ("encode", "why"),
    [
        (lambda: b"", "no PNG, JPEG, WebP, GIF or PDF"),
        (lambda: b"<svg/>", "no PNG, JPEG, WebP, GIF or PDF"),
        (lambda: encoded("BMP", (9, 9)), "no PNG, JPEG, WebP, GIF or PDF"),
        (lambda: encoded("PNG", (900, 900))[:20], "the image cannot be read"),
        (lambda: b"%PDF-1.4 and nothing more", "this page cannot be drawn"),
        (lambda: encoded("PNG", (8000, 8000), "1"), "more than 50,000,000; scale it down"),
    ],
)
def test_what_cannot_be_looked_at_is_said(encode: Callable[[], bytes], why: str) -> None:
    with pytest.raises(DocumentError, match=why):
        draw_bounded("a", encode(), 1)


@pytest.mark.parametrize("size", [(10_000, 6_000), (20_000, 10_000)])
def test_an_image_of_too_many_pixels_says_what_to_do(size: tuple[int, int]) -> None:
    with pytest.raises(DocumentError, match=r"000 pixels, more than 50,000,000; scale it down"):
        draw_bounded("a.png", encoded("PNG", size, "1"), 1)


def test_an_image_of_40_megapixels_is_shown_smaller() -> None:
    picture = draw_bounded("a.png", encoded("PNG", (8000, 5000)), 1)
    assert picture.about == "PNG, 8,000 x 5,000"
    assert picture.width * picture.height <= MOST_PIXELS
