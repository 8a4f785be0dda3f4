"""Requirements as ReqIF 1.2: a specification for each source document, divided by its sections."""

import re
from collections.abc import Iterable, Mapping, Sequence
from uuid import NAMESPACE_URL, uuid5

from lxml import etree
from lxml.etree import _Element

from activities.requirements.export import COLUMNS, group_duplicates, requirement_rows
from activities.requirements.requirement_store import StoredRequirement

NAMESPACE = "http://www.omg.org/spec/ReqIF/20110401/reqif.xsd"
XHTML = "http://www.w3.org/1999/xhtml"
STANDARD_NAMES = {"id": "ReqIF.ForeignID", "text": "ReqIF.Text", "section": "ReqIF.ChapterName"}
"""Attribute names that tools know; the other columns keep their names."""
PASSAGES = "passages"
"""The attribute that has all passages with their places, as XHTML."""
DUPLICATES, CONTRADICTS = "Duplicate of", "Contradicts"
_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def requirements_as_reqif(
    entries: Sequence[StoredRequirement], time: str, contradictions: Iterable[tuple[str, str]] = ()
) -> str:
    """Return a ReqIF document.

    Args:
        entries: Requirements in order; each becomes a SPEC-OBJECT with all of its passages.
        time: Creation time (ISO 8601 with a zone).
        contradictions: Pairs of requirements that contradict each other, by their names.
    """
    duplicates = group_duplicates(entries)
    root = etree.Element(f"{{{NAMESPACE}}}REQ-IF", nsmap={None: NAMESPACE, "xhtml": XHTML})
    header = _add(root, "THE-HEADER", "REQ-IF-HEADER")
    header.set("IDENTIFIER", "header")
    for tag, text in (
        ("CREATION-TIME", time), ("REQ-IF-TOOL-ID", "Longhaul"), ("REQ-IF-VERSION", "1.0"),
        ("SOURCE-TOOL-ID", "Longhaul"), ("TITLE", "Requirements"),
    ):  # fmt: skip
        _add(header, tag).text = text
    content = _add(root, "CORE-CONTENT", "REQ-IF-CONTENT")
    _add_types(content)
    objects, relations, documents = (
        _add(content, tag) for tag in ("SPEC-OBJECTS", "SPEC-RELATIONS", "SPECIFICATIONS")
    )
    places: dict[str, dict[str, list[str]]] = {}
    for entry in entries:
        rows = requirement_rows([entry], duplicates)
        _add_requirement(objects, rows)
        first = rows[0]
        places.setdefault(first["document"], {}).setdefault(first["section"], []).append(
            first["id"]
        )
    for document, sections in places.items():
        _add_document(documents, objects, document, sections)
    known = {entry.requirement.ref for entry in entries}
    pairs = [(DUPLICATES, other.ref, name) for name in duplicates for other in duplicates[name]]
    for kind, one, other in [*pairs, *((CONTRADICTS, *pair) for pair in contradictions)]:
        if {one, other} <= known:
            relation = _add_named(
                relations, "SPEC-RELATION", _id("relation", f"{kind} {one} {other}")
            )
            _refer(relation, "TARGET", "SPEC-OBJECT-REF", _id("requirement", other))
            _refer(relation, "SOURCE", "SPEC-OBJECT-REF", _id("requirement", one))
            _refer(relation, "TYPE", "SPEC-RELATION-TYPE-REF", _relation_type(kind))
    for node in root.iter(f"{{{NAMESPACE}}}*"):
        if node.get("LAST-CHANGE") is not None:
            node.set("LAST-CHANGE", time)
    body = etree.tostring(root, encoding="unicode", pretty_print=True)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{body}'


def _add_types(content: _Element) -> None:
    types = _add(content, "DATATYPES")
    _add_named(types, "DATATYPE-DEFINITION-STRING", "type-text").set("MAX-LENGTH", "100000")
    _add_named(types, "DATATYPE-DEFINITION-XHTML", "type-xhtml")
    types = _add(content, "SPEC-TYPES")
    for name, columns, prefix in (
        ("Requirement", (*COLUMNS, PASSAGES), ""),
        ("Section", ("section",), "section-"),
    ):
        of_object = _add_named(types, "SPEC-OBJECT-TYPE", f"type-{name.lower()}", name)
        attributes = _add(of_object, "SPEC-ATTRIBUTES")
        for column in columns:
            # Numbers as text: StrictDoc reads no attribute of the type real.
            kind = "XHTML" if column == PASSAGES else "STRING"
            definition = _add_named(
                attributes,
                f"ATTRIBUTE-DEFINITION-{kind}",
                _attribute(column, prefix),
                STANDARD_NAMES.get(column, column),
            )
            data_type = "type-xhtml" if column == PASSAGES else "type-text"
            _refer(definition, "TYPE", f"DATATYPE-DEFINITION-{kind}-REF", data_type)
    _add_named(types, "SPECIFICATION-TYPE", "type-document", "Document")
    for kind in (DUPLICATES, CONTRADICTS):
        _add_named(types, "SPEC-RELATION-TYPE", _relation_type(kind), kind)


def _add_requirement(objects: _Element, rows: Sequence[Mapping[str, str]]) -> None:
    first = rows[0]
    values = _add_object(objects, "requirement", first["id"], first["id"])
    for column in COLUMNS:
        if first[column]:
            _add_value(values, column, first[column])
    value = _add(values, "ATTRIBUTE-VALUE-XHTML")
    _refer(value, "DEFINITION", "ATTRIBUTE-DEFINITION-XHTML-REF", _attribute(PASSAGES))
    division = etree.SubElement(_add(value, "THE-VALUE"), f"{{{XHTML}}}div")
    for row in rows:
        parts = [
            row["document"],
            f"{row['place']} {row['page']}",
            row["source_id"] or row["section"],
        ]
        place = ", ".join(part for part in [*parts, row["from"] and f"by {row['from']}"] if part)
        paragraph = etree.SubElement(division, f"{{{XHTML}}}p")
        paragraph.text = _NOT_IN_XML.sub("", f"{row['quote']} ({place})")


def _add_document(
    documents: _Element, objects: _Element, document: str, sections: Mapping[str, Sequence[str]]
) -> None:
    specification = _add_named(documents, "SPECIFICATION", _id("document", document), document)
    _refer(specification, "TYPE", "SPECIFICATION-TYPE-REF", "type-document")
    children = _add(specification, "CHILDREN")
    for section, names in sections.items():
        under = children
        if section:
            name = f"{document}\n{section}"
            _add_value(
                _add_object(objects, "section", name, section), "section", section, "section-"
            )
            under = _add(_add_place(children, "section-place", name, "section"), "CHILDREN")
        for name in names:
            _add_place(under, "place", name, "requirement")


def _add_object(objects: _Element, kind: str, name: str, title: str) -> _Element:
    """Add an object and return the element of its values."""
    added = _add_named(objects, "SPEC-OBJECT", _id(kind, name), title)
    values = _add(added, "VALUES")
    _refer(added, "TYPE", "SPEC-OBJECT-TYPE-REF", f"type-{kind}")
    return values


def _add_place(parent: _Element, kind: str, name: str, of: str) -> _Element:
    place = _add_named(parent, "SPEC-HIERARCHY", _id(kind, name))
    _refer(place, "OBJECT", "SPEC-OBJECT-REF", _id(of, name))
    return place


def _add_value(values: _Element, column: str, text: str, prefix: str = "") -> None:
    value = _add(values, "ATTRIBUTE-VALUE-STRING")
    value.set("THE-VALUE", _NOT_IN_XML.sub("", text))
    _refer(value, "DEFINITION", "ATTRIBUTE-DEFINITION-STRING-REF", _attribute(column, prefix))


def _add(parent: _Element, *tags: str) -> _Element:
    """Add an element within others and return the innermost."""
    for tag in tags:
        parent = etree.SubElement(parent, f"{{{NAMESPACE}}}{tag}")
    return parent


def _add_named(parent: _Element, tag: str, identifier: str, name: str = "") -> _Element:
    added = _add(parent, tag)
    added.set("IDENTIFIER", identifier)
    added.set("LAST-CHANGE", "")
    if name:
        added.set("LONG-NAME", _NOT_IN_XML.sub("", name))
    return added


def _refer(parent: _Element, role: str, kind: str, identifier: str) -> None:
    _add(parent, role, kind).text = identifier


def _relation_type(kind: str) -> str:
    return f"type-{kind.lower().replace(' ', '-')}"


def _id(kind: str, name: str) -> str:
    """Return an XML ID that stays the same in later exports, by which tools update their copy."""
    return f"{kind}-{uuid5(NAMESPACE_URL, f'longhaul:{kind}:{name}')}"


def _attribute(column: str, prefix: str = "") -> str:
    return f"{prefix}attribute-{column.replace('_', '-')}"
