"""The engines, each as a function from a file to the text of its pages.

`python -m benchmarks.pdf.engines NAME FILE` prints the pages as JSON, in a process that may hang or
crash.
"""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

Engine = Callable[[Path], list[str]]


def pdftotext(path: Path) -> list[str]:
    """Poppler's engine, the reference for the others."""
    out = subprocess.run(
        ["pdftotext", "-enc", "UTF-8", str(path), "-"], capture_output=True, check=True
    ).stdout.decode(errors="replace")
    return out.removesuffix("\f").split("\f")


def longhaul(path: Path) -> list[str]:
    from activities.documents import read_document_pages  # noqa: PLC0415

    return [page.text for page in read_document_pages(path.name, path.read_bytes())]


def pypdf(path: Path) -> list[str]:
    import pypdf  # noqa: PLC0415

    return [page.extract_text() for page in pypdf.PdfReader(path).pages]


def pypdf_mended(path: Path) -> list[str]:
    """Use a gap rule that caps the width of a space, which may be missing in a font."""
    from pypdf.generic import _font  # noqa: PLC0415

    make = _font.Font.from_font_resource.__func__  # type: ignore[attr-defined]

    def bounded(cls: type, resource: object) -> object:
        font = make(cls, resource)
        font.space_width = min(font.space_width, 250)
        return font

    _font.Font.from_font_resource = classmethod(bounded)  # type: ignore[assignment, method-assign]
    import pypdf  # noqa: PLC0415

    return [page.extract_text(space_width=120.0) for page in pypdf.PdfReader(path).pages]


def pypdfium2(path: Path) -> list[str]:
    import pypdfium2  # noqa: PLC0415

    pages = pypdfium2.PdfDocument(path)
    return [page.get_textpage().get_text_range() for page in pages]


def pdfminer(path: Path) -> list[str]:
    from pdfminer.high_level import extract_text  # noqa: PLC0415

    return list(extract_text(path).removesuffix("\f").split("\f"))


def playa(path: Path) -> list[str]:
    import playa  # noqa: PLC0415

    with playa.open(path) as document:
        return [page.extract_text() for page in document.pages]


def pdf_oxide(path: Path) -> list[str]:
    import pdf_oxide  # noqa: PLC0415

    document = pdf_oxide.PdfDocument(str(path))
    return [document.extract_text(number) for number in range(document.page_count())]


def liteparse(path: Path) -> list[str]:
    import liteparse  # noqa: PLC0415

    result = liteparse.LiteParse(ocr_enabled=False, quiet=True).parse(str(path))
    return [page.text for page in result.pages]


def pdf_inspector(path: Path) -> list[str]:
    import pdf_inspector  # noqa: PLC0415

    return [pdf_inspector.extract_text(str(path))]


def pdftext(path: Path) -> list[str]:
    from pdftext.extraction import paginated_plain_text_output  # noqa: PLC0415

    return list(paginated_plain_text_output(str(path)))


def docling_parse(path: Path) -> list[str]:
    from docling_parse.pdf_parser import DoclingPdfParser  # noqa: PLC0415

    document = DoclingPdfParser(loglevel="fatal").load(str(path))
    return [
        "\n".join(line.text for line in page.textline_cells) for _, page in document.iterate_pages()
    ]


ENGINES: dict[str, Engine] = {
    "longhaul": longhaul,
    "pypdfium2": pypdfium2,
    "pdf_oxide": pdf_oxide,
    "liteparse": liteparse,
    "pdftext": pdftext,
    "docling-parse": docling_parse,
    "pdfminer.six": pdfminer,
    "playa-pdf": playa,
    "pypdf": pypdf,
    "pypdf, gap rule mended": pypdf_mended,
    "pdf-inspector": pdf_inspector,
    "pdftotext": pdftotext,
}

if __name__ == "__main__":
    pages = ENGINES[sys.argv[1]](Path(sys.argv[2]))
    sys.stdout.write(json.dumps([re.sub(r"[\ud800-\udfff]", "\ufffd", page) for page in pages]))
