"""Reduce an image, or a page of a PDF, to a size that a model can look at."""

from io import BytesIO

import pypdfium2
from PIL import Image, ImageFile, ImageOps, UnidentifiedImageError

from activities.documents.pages import DocumentError, Picture

MIME = {"PNG": "image/png", "JPEG": "image/jpeg", "WEBP": "image/webp", "GIF": "image/gif"}
"""The formats that models accept, by the decoder's name."""
LONGEST = 1568
"""Pixels of the longer side up to which models do not reduce an image themselves."""
MOST_PIXELS = 1_200_000
MOST_BYTES = 1_000_000
MOST_DECODED = 50_000_000
"""Most pixels of an image before it is reduced."""
PDF = b"%PDF-"
JPEG_QUALITY = 80


def read_picture(name: str, data: bytes, page: int) -> Picture:
    """Return the image, or the page with that number, from 1.

    Raises:
        DocumentError: it is neither, is damaged or too large, or has no such page.
    """
    if data[:1024].lstrip().startswith(PDF):
        image, about = _render_page_picture(name, data, page)
        return _shrink_to_picture(image, about)
    image, is_damaged = _open_image(name, data)
    kind, width, height = str(image.format), *image.size
    about = f"{kind}, {width:,} x {height:,}{', damaged' if is_damaged else ''}"
    is_small = max(width, height) <= LONGEST and width * height <= MOST_PIXELS
    if not is_damaged and is_small and len(data) <= MOST_BYTES:
        return Picture(data, MIME[kind], width, height, about)
    return _shrink_to_picture(ImageOps.exif_transpose(image), about)


def _open_image(name: str, data: bytes) -> tuple[Image.Image, bool]:
    """Return the image, and whether it is damaged; the readable part is shown all the same."""
    why: Exception | None = None
    # The bound below says what to do. Opening reads the header only.
    Image.MAX_IMAGE_PIXELS = None
    for is_damaged in (False, True):
        # This setting affects only this process, which ends with its one image.
        ImageFile.LOAD_TRUNCATED_IMAGES = is_damaged
        try:
            image = Image.open(BytesIO(data), formats=list(MIME))
            if (count := image.width * image.height) > MOST_DECODED:
                raise DocumentError(
                    f"{name}: {count:,} pixels, more than {MOST_DECODED:,}; scale it down"
                )
            image.load()
            return image, is_damaged
        except UnidentifiedImageError:
            continue
        except (OSError, ValueError, SyntaxError) as error:
            why = error
    reason = f"the image cannot be read ({why})" if why else "no PNG, JPEG, WebP, GIF or PDF"
    raise DocumentError(f"{name}: {reason}")


def _render_page_picture(name: str, data: bytes, page: int) -> tuple[Image.Image, str]:
    try:
        document = pypdfium2.PdfDocument(data)
        count = len(document)
        if not 1 <= page <= count:
            raise DocumentError(f"{name}: it has {count:,} pages, and no page {page:,}")
        sheet = document[page - 1]
        width, height = sheet.get_size()
        # Render at the final size: a poster's page would take gigabytes.
        scale = min(LONGEST / max(width, height), (MOST_PIXELS / (width * height)) ** 0.5)
        image = sheet.render(scale=scale).to_pil()
    except (pypdfium2.PdfiumError, ZeroDivisionError) as error:
        raise DocumentError(f"{name}: this page cannot be drawn ({error})") from None
    return image, f"PDF, page {page:,} of {count:,}"


def _shrink_to_picture(image: Image.Image, about: str) -> Picture:
    """Return the image within the limits, as PNG or, if that is too large, as JPEG."""
    if image.mode not in ("RGB", "L"):
        opaque = image.convert("RGBA")
        image = Image.new("RGB", opaque.size, "white")
        image.paste(opaque, mask=opaque.getchannel("A"))
    scale = min(1.0, (MOST_PIXELS / (image.width * image.height)) ** 0.5)
    size = min(LONGEST, int(image.width * scale)), min(LONGEST, int(image.height * scale))
    image.thumbnail((max(1, size[0]), max(1, size[1])))
    data, mime = _encode_picture(image, "PNG"), MIME["PNG"]
    if len(data) > MOST_BYTES:
        data, mime = _encode_picture(image, "JPEG"), MIME["JPEG"]
    return Picture(data, mime, image.width, image.height, about)


def _encode_picture(image: Image.Image, kind: str) -> bytes:
    out = BytesIO()
    image.save(out, kind, quality=JPEG_QUALITY, optimize=True)
    return out.getvalue()
