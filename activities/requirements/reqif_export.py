"""Export of requirements as ReqIF 1.2, by the library `reqif` (extra `reqif`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from uuid import NAMESPACE_URL, uuid5

from reqif.models.reqif_core_content import ReqIFCoreContent
from reqif.models.reqif_data_type import (
    ReqIFDataTypeDefinitionString,
    ReqIFDataTypeDefinitionXHTML,
)
from reqif.models.reqif_namespace_info import ReqIFNamespaceInfo
from reqif.models.reqif_req_if_content import ReqIFReqIFContent
from reqif.models.reqif_reqif_header import ReqIFReqIFHeader
from reqif.models.reqif_spec_hierarchy import ReqIFSpecHierarchy
from reqif.models.reqif_spec_object import ReqIFSpecObject, SpecObjectAttribute
from reqif.models.reqif_spec_object_type import ReqIFSpecObjectType, SpecAttributeDefinition
from reqif.models.reqif_spec_relation import ReqIFSpecRelation
from reqif.models.reqif_spec_relation_type import ReqIFSpecRelationType
from reqif.models.reqif_specification import ReqIFSpecification
from reqif.models.reqif_specification_type import ReqIFSpecificationType
from reqif.models.reqif_types import SpecObjectAttributeType
from reqif.object_lookup import ReqIFObjectLookup
from reqif.reqif_bundle import ReqIFBundle
from reqif.unparser import ReqIFUnparser

from activities.requirements.export import COLUMNS, group_duplicates, requirement_rows
from activities.requirements.requirement import Requirement
from activities.requirements.requirement_store import StoredRequirement

NAMESPACE = "http://www.omg.org/spec/ReqIF/20110401/reqif.xsd"
XHTML = "http://www.w3.org/1999/xhtml"
STANDARD_NAMES = {"id": "ReqIF.ForeignID", "text": "ReqIF.Text", "section": "ReqIF.ChapterName"}
"""Attribute names that tools know; the other columns keep their names."""
PASSAGES = "passages"
"""The attribute that has all passages with their places, as XHTML."""
DUPLICATES, CONTRADICTS = "Duplicate of", "Contradicts"

_DATA_TYPE = "type-text"
_XHTML_TYPE = "type-passages"
_REQUIREMENT_TYPE = "type-requirement"
_SECTION_TYPE = "type-section"
_DOCUMENT_TYPE = "type-document"


def requirements_as_reqif(
    entries: Sequence[StoredRequirement], time: str, contradictions: Iterable[tuple[str, str]] = ()
) -> str:
    """Return a ReqIF document: a specification for each source document, divided by its sections.

    Args:
        entries: Requirements in order; each becomes a SPEC-OBJECT with all of its passages.
        time: Creation time (ISO 8601 with a zone).
        contradictions: Pairs of requirements that contradict each other, by their names.
    """
    duplicates = group_duplicates(entries)
    objects: list[ReqIFSpecObject] = []
    sections: dict[str, dict[str, list[ReqIFSpecHierarchy]]] = {}
    for entry in entries:
        rows = requirement_rows([entry], duplicates)
        objects.append(_reqif_object(rows, time))
        first = rows[0]
        under = sections.setdefault(first["document"], {}).setdefault(first["section"], [])
        level = 2 if first["section"] else 1
        under.append(_reqif_place("place", first["id"], objects[-1].identifier, level, time))
    specifications = []
    for document, of_document in sections.items():
        children: list[ReqIFSpecHierarchy] = []
        for section, places in of_document.items():
            if not section:
                children += places
                continue
            name = f"{document}\n{section}"
            objects.append(
                ReqIFSpecObject(
                    _stable_reqif_id("section", name),
                    [_reqif_attribute_value("section", section, "section-")],
                    _SECTION_TYPE,
                    last_change=time,
                    long_name=section,
                )
            )
            place = _reqif_place("section-place", name, objects[-1].identifier, 1, time)
            place.children = places
            children.append(place)
        specifications.append(
            ReqIFSpecification(
                _stable_reqif_id("document", document),
                last_change=time,
                long_name=document,
                specification_type=_DOCUMENT_TYPE,
                children=children,
            )
        )
    relations = _reqif_relations(entries, duplicates, contradictions, time)
    return _unparse_reqif_bundle(objects, relations, specifications, time)


def _reqif_relations(
    entries: Sequence[StoredRequirement],
    duplicates: Mapping[str, Sequence[Requirement]],
    contradictions: Iterable[tuple[str, str]],
    time: str,
) -> list[ReqIFSpecRelation]:
    known = {entry.requirement.ref for entry in entries}
    pairs = [
        *((DUPLICATES, other.ref, name) for name in duplicates for other in duplicates[name]),
        *((CONTRADICTS, *pair) for pair in contradictions),
    ]
    return [
        ReqIFSpecRelation(
            _stable_reqif_id("relation", f"{kind} {one} {other}"),
            _reqif_relation_type(kind),
            _stable_reqif_id("requirement", one),
            _stable_reqif_id("requirement", other),
            last_change=time,
        )
        for kind, one, other in pairs
        if {one, other} <= known
    ]


def _reqif_object(rows: list[dict[str, str]], time: str) -> ReqIFSpecObject:
    first = rows[0]
    values = [_reqif_attribute_value(name, first[name]) for name in COLUMNS if first[name]]
    items = "".join(
        f"<xhtml:p>{escape(row['quote'])} ({escape(_passage_place(row))})</xhtml:p>" for row in rows
    )
    values.append(
        SpecObjectAttribute(
            SpecObjectAttributeType.XHTML,
            _reqif_attribute_id(PASSAGES),
            f"<xhtml:div>{items}</xhtml:div>",
        )
    )
    identifier = _stable_reqif_id("requirement", first["id"])
    return ReqIFSpecObject(
        identifier, values, _REQUIREMENT_TYPE, last_change=time, long_name=first["id"]
    )


def _passage_place(row: dict[str, str]) -> str:
    parts = [row["document"], f"{row['place']} {row['page']}", row["source_id"] or row["section"]]
    return ", ".join(part for part in [*parts, row["from"] and f"by {row['from']}"] if part)


def _reqif_place(kind: str, name: str, of: str, level: int, time: str) -> ReqIFSpecHierarchy:
    return ReqIFSpecHierarchy(
        identifier=_stable_reqif_id(kind, name),
        spec_object=of,
        level=level,
        last_change=time,
        is_self_closed=False,
    )


def _unparse_reqif_bundle(
    objects: list[ReqIFSpecObject],
    relations: list[ReqIFSpecRelation],
    specifications: list[ReqIFSpecification],
    time: str,
) -> str:
    """Return the XML of a document with these objects and specifications."""
    content = ReqIFReqIFContent(
        data_types=[
            ReqIFDataTypeDefinitionString(_DATA_TYPE, last_change=time, max_length="100000"),
            ReqIFDataTypeDefinitionXHTML(_XHTML_TYPE, last_change=time, is_self_closed=True),
        ],
        spec_types=_reqif_spec_types(time),
        spec_objects=objects,
        spec_relations=relations,
        specifications=specifications,
    )
    bundle = ReqIFBundle(
        _reqif_namespaces(),
        ReqIFReqIFHeader(
            identifier="header",
            creation_time=time,
            req_if_tool_id="Longhaul",
            req_if_version="1.0",
            source_tool_id="Longhaul",
            title="Requirements",
        ),
        ReqIFCoreContent(content),
        tool_extensions_tag_exists=False,
        lookup=ReqIFObjectLookup.empty(),
        exceptions=[],
    )
    text: str = ReqIFUnparser.unparse(bundle)
    return text


def _reqif_namespaces() -> ReqIFNamespaceInfo:
    namespaces = ReqIFNamespaceInfo.empty(namespace=NAMESPACE, configuration=None)
    namespaces.namespace_xhtml = XHTML
    return namespaces


def _reqif_spec_types(
    time: str,
) -> list[ReqIFSpecObjectType | ReqIFSpecificationType | ReqIFSpecRelationType]:
    # Numbers as text: StrictDoc reads no attribute of the type real.
    kinds = {PASSAGES: (SpecObjectAttributeType.XHTML, _XHTML_TYPE)}
    text = (SpecObjectAttributeType.STRING, _DATA_TYPE)

    def definition(name: str, prefix: str = "") -> SpecAttributeDefinition:
        kind, data_type = kinds.get(name, text)
        return SpecAttributeDefinition(
            kind,
            prefix + _reqif_attribute_id(name),
            data_type,
            last_change=time,
            long_name=STANDARD_NAMES.get(name, name),
        )

    return [
        ReqIFSpecObjectType(
            _REQUIREMENT_TYPE,
            last_change=time,
            long_name="Requirement",
            attribute_definitions=[definition(name) for name in (*COLUMNS, PASSAGES)],
        ),
        ReqIFSpecObjectType(
            _SECTION_TYPE,
            last_change=time,
            long_name="Section",
            attribute_definitions=[definition("section", "section-")],
        ),
        ReqIFSpecificationType(_DOCUMENT_TYPE, last_change=time, long_name="Document"),
        *(
            ReqIFSpecRelationType(_reqif_relation_type(kind), last_change=time, long_name=kind)
            for kind in (DUPLICATES, CONTRADICTS)
        ),
    ]


def _reqif_relation_type(kind: str) -> str:
    return f"type-{kind.lower().replace(' ', '-')}"


def _stable_reqif_id(kind: str, name: str) -> str:
    """Return an XML ID that stays the same in later exports, by which tools update their copy."""
    return f"{kind}-{uuid5(NAMESPACE_URL, f'longhaul:{kind}:{name}')}"


def _reqif_attribute_id(name: str) -> str:
    return f"attribute-{name.replace('_', '-')}"


def _reqif_attribute_value(name: str, value: str, prefix: str = "") -> SpecObjectAttribute:
    return SpecObjectAttribute(
        SpecObjectAttributeType.STRING, prefix + _reqif_attribute_id(name), value
    )
