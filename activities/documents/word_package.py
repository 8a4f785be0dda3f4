"""The parts of a Word file, found by relationships, whatever their names and dialect."""

import posixpath
from dataclasses import dataclass, field
from io import BytesIO
from zipfile import BadZipFile, ZipFile

from lxml import etree
from lxml.etree import _Element

from activities.documents.pages import DocumentError

_OFFICE = "http://schemas.openxmlformats.org/"
_PREFIXES = {"w": f"{_OFFICE}wordprocessingml/2006/main", "m": f"{_OFFICE}officeDocument/2006/math"}
# Strict Open XML has the same elements in other namespaces.
_STRICT = {
    b"http://purl.oclc.org/ooxml/wordprocessingml/main": _PREFIXES["w"].encode(),
    b"http://purl.oclc.org/ooxml/officeDocument/math": _PREFIXES["m"].encode(),
}
_RELATIONSHIP = f"{{{_OFFICE}package/2006/relationships}}Relationship"
# Other archive formats, by a typical member, and what to do about each.
_ARCHIVE = "a ZIP archive, not a Word document: unpack it first"
_OTHERS = {
    "xl/workbook.xml": "an Excel workbook: save its sheets as .csv",
    "xl/workbook.bin": "an Excel workbook: save its sheets as .csv",
    "ppt/presentation.xml": "a PowerPoint file: save it as PDF",
    "META-INF/container.xml": "an EPUB book: save it as PDF or HTML",
    "content.xml": "an OpenDocument file: save it as .docx or PDF",
}


def qn(name: str) -> str:
    """Return the qualified name of an element or attribute, such as `w:p`, as python-docx does."""
    prefix, _, local = name.partition(":")
    return f"{{{_PREFIXES[prefix]}}}{local}"


@dataclass
class WordPackage:
    body: _Element
    styles: _Element | None = None
    numbering: _Element | None = None
    notes: dict[str, dict[str, _Element]] = field(default_factory=dict)
    """Notes by id, for each kind (`footnote`, `endnote`)."""
    note_formats: dict[str, str] = field(default_factory=dict)


def open_package(name: str, data: bytes) -> WordPackage:
    """Open a Word file. Raises `DocumentError` for anything else, naming what it is."""
    try:
        with ZipFile(BytesIO(data)) as archive:
            return _read_package(name, archive)
    except BadZipFile as error:
        raise DocumentError(f"{name}: the file is broken ({error}); get an intact copy") from error


def _read_package(name: str, archive: ZipFile) -> WordPackage:
    members = set(archive.namelist())
    main = _related_package_parts(archive, members, "").get("officeDocument", "word/document.xml")
    if main not in members:
        what = next((what for part, what in _OTHERS.items() if part in members), _ARCHIVE)
        raise DocumentError(f"{name}: this is {what}")
    root = _parse_package_member(archive, main)
    if root.tag != qn("w:document"):
        what = next((what for part, what in _OTHERS.items() if part in members), "")
        raise DocumentError(
            f"{name}: this is {what}"
            if what
            else f"{name}: not a Word document (its main part {main} is none); save it as .docx"
        )
    body = root.find(qn("w:body"))
    if body is None:
        raise DocumentError(f"{name}: the file is broken (no body); get an intact copy")
    related = _related_package_parts(archive, members, main)

    def read_part(kind: str) -> _Element | None:
        member = related.get(kind)
        return _parse_package_member(archive, member) if member in members else None

    package = WordPackage(body, read_part("styles"), read_part("numbering"))
    settings = read_part("settings")
    for kind, usual in (("footnote", "decimal"), ("endnote", "lowerRoman")):
        holder = read_part(f"{kind}s")
        notes = [] if holder is None else holder.iterchildren(qn(f"w:{kind}"))
        package.notes[kind] = {note.get(qn("w:id"), ""): note for note in notes}
        package.note_formats[kind] = _word_package_note_format((root, settings), kind) or usual
    return package


def _related_package_parts(archive: ZipFile, members: set[str], part: str) -> dict[str, str]:
    """Return the parts related to a part (to the package without a name), by kind."""
    folder, base = posixpath.split(part)
    member = posixpath.join(folder, "_rels", f"{base}.rels")
    if member not in members:
        return {}
    related: dict[str, str] = {}
    for relation in _parse_package_member(archive, member).iter(_RELATIONSHIP):
        if relation.get("TargetMode") != "External":
            kind = relation.get("Type", "").rpartition("/")[2]
            target = posixpath.normpath(posixpath.join("/", folder, relation.get("Target", "")))
            related.setdefault(kind, target.lstrip("/"))
    return related


def _parse_package_member(archive: ZipFile, member: str) -> _Element:
    data = archive.read(member)
    for strict, usual in _STRICT.items():
        data = data.replace(strict, usual)
    parser = etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=True)
    return etree.fromstring(data, parser)


def _word_package_note_format(roots: tuple[_Element | None, ...], kind: str) -> str:
    """Return the number format of notes: the first section's, else that of the settings."""
    for root in roots:
        if root is not None:
            for properties in root.iter(qn(f"w:{kind}Pr")):
                chosen = properties.find(qn("w:numFmt"))
                if chosen is not None:
                    return str(chosen.get(qn("w:val"), ""))
    return ""
