"""Export of requirements as ReqIF 1.2, by the library `reqif` (extra `reqif`)."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import NAMESPACE_URL, uuid5

from reqif.models.reqif_core_content import ReqIFCoreContent
from reqif.models.reqif_data_type import ReqIFDataTypeDefinitionString
from reqif.models.reqif_namespace_info import ReqIFNamespaceInfo
from reqif.models.reqif_req_if_content import ReqIFReqIFContent
from reqif.models.reqif_reqif_header import ReqIFReqIFHeader
from reqif.models.reqif_spec_hierarchy import ReqIFSpecHierarchy
from reqif.models.reqif_spec_object import ReqIFSpecObject, SpecObjectAttribute
from reqif.models.reqif_spec_object_type import ReqIFSpecObjectType, SpecAttributeDefinition
from reqif.models.reqif_specification import ReqIFSpecification
from reqif.models.reqif_specification_type import ReqIFSpecificationType
from reqif.models.reqif_types import SpecObjectAttributeType
from reqif.object_lookup import ReqIFObjectLookup
from reqif.reqif_bundle import ReqIFBundle
from reqif.unparser import ReqIFUnparser

from activities.requirements.export import COLUMNS, requirement_rows
from activities.requirements.requirement import Requirement

NAMESPACE = "http://www.omg.org/spec/ReqIF/20110401/reqif.xsd"
STANDARD_NAMES = {"id": "ReqIF.ForeignID", "text": "ReqIF.Text", "section": "ReqIF.ChapterName"}
"""Attribute names that tools know; the other columns keep their names."""

_DATA_TYPE = "type-text"
_REQUIREMENT_TYPE = "type-requirement"
_DOCUMENT_TYPE = "type-document"


def requirements_as_reqif(requirements: Iterable[Requirement], time: str) -> str:
    """Return a ReqIF document with one specification for each source document.

    Args:
        requirements: Requirements in order; each becomes a SPEC-OBJECT with its first passage.
        time: Creation time (ISO 8601 with a zone).
    """
    objects: list[ReqIFSpecObject] = []
    hierarchies: dict[str, list[ReqIFSpecHierarchy]] = {}
    for row in requirement_rows(requirements):
        identifier = _stable_reqif_id("requirement", row["id"])
        objects.append(
            ReqIFSpecObject(
                identifier,
                [_reqif_attribute_value(name, row[name]) for name in COLUMNS if row[name]],
                _REQUIREMENT_TYPE,
                last_change=time,
                long_name=row["id"],
            )
        )
        hierarchies.setdefault(row["document"], []).append(
            ReqIFSpecHierarchy(
                identifier=_stable_reqif_id("place", row["id"]),
                spec_object=identifier,
                level=1,
                last_change=time,
                is_self_closed=False,
            )
        )
    specifications = [
        ReqIFSpecification(
            _stable_reqif_id("document", document),
            last_change=time,
            long_name=document,
            specification_type=_DOCUMENT_TYPE,
            children=children,
        )
        for document, children in hierarchies.items()
    ]
    return _unparse_reqif_bundle(objects, specifications, time)


def _unparse_reqif_bundle(
    objects: list[ReqIFSpecObject], specifications: list[ReqIFSpecification], time: str
) -> str:
    """Return the XML of a document with these objects and specifications."""
    content = ReqIFReqIFContent(
        data_types=[
            ReqIFDataTypeDefinitionString(_DATA_TYPE, last_change=time, max_length="100000")
        ],
        spec_types=_reqif_spec_types(time),
        spec_objects=objects,
        spec_relations=[],
        specifications=specifications,
    )
    bundle = ReqIFBundle(
        ReqIFNamespaceInfo.empty(namespace=NAMESPACE, configuration=None),
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


def _reqif_spec_types(time: str) -> list[ReqIFSpecObjectType | ReqIFSpecificationType]:
    definitions = [
        SpecAttributeDefinition(
            SpecObjectAttributeType.STRING,
            _reqif_attribute_id(name),
            _DATA_TYPE,
            last_change=time,
            long_name=STANDARD_NAMES.get(name, name),
        )
        for name in COLUMNS
    ]
    return [
        ReqIFSpecObjectType(
            _REQUIREMENT_TYPE,
            last_change=time,
            long_name="Requirement",
            attribute_definitions=definitions,
        ),
        ReqIFSpecificationType(_DOCUMENT_TYPE, last_change=time, long_name="Document"),
    ]


def _stable_reqif_id(kind: str, name: str) -> str:
    """Return an XML ID that stays the same in later exports, by which tools update their copy."""
    return f"{kind}-{uuid5(NAMESPACE_URL, f'longhaul:{kind}:{name}')}"


def _reqif_attribute_id(name: str) -> str:
    return f"attribute-{name.replace('_', '-')}"


def _reqif_attribute_value(name: str, value: str) -> SpecObjectAttribute:
    return SpecObjectAttribute(SpecObjectAttributeType.STRING, _reqif_attribute_id(name), value)
