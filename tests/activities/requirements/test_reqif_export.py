"""Requirements as ReqIF, held against the standard's schema and read back by the library."""

from pathlib import Path

import pytest
import xmlschema
from reqif import PATH_TO_REQIF_ROOT
from reqif.parser import ReqIFParser

from activities.requirements.reqif_export import requirements_as_reqif
from activities.requirements.requirement import Requirement
from activities.requirements.requirement_store import StoredRequirement

TIME = "2026-11-25T20:00:00Z"


def requirement(number: int, text: str, document: str) -> Requirement:
    return Requirement.model_validate(
        {
            "id": f"REQ-{number:03}",
            "text": text,
            "force": "must",
            "type": "functional",
            "source": document,
            "citations": [
                {"id": f"CIT-{number:04}", "document": document, "page": 3, "quote": text}
            ],
            "reasoning": "It says must.",
            "confidence": 0.9,
            "status": "draft",
        }
    )


def reqif(requirements: list[Requirement]) -> str:
    return requirements_as_reqif([stored(each) for each in requirements], TIME)


def stored(requirement: Requirement) -> StoredRequirement:
    return StoredRequirement(requirement, None, None, False, None, None, None, None)


REQUIREMENTS = [
    requirement(1, 'Names & numbers <must> be "kept".', "documents/policy.pdf"),
    requirement(2, "Rollen müssen geprüft werden.", "documents/policy.pdf"),
    requirement(3, "Cups must be warm.", "documents/tea.md"),
]


def test_it_fits_the_schema_of_the_standard(tmp_path: Path):
    file = tmp_path / "requirements.reqif"
    file.write_text(reqif(REQUIREMENTS), encoding="utf-8")
    schema = xmlschema.XMLSchema(Path(PATH_TO_REQIF_ROOT) / "reqif" / "reqif_schema" / "reqif.xsd")
    schema.validate(str(file))


def test_it_reads_back_as_written():
    bundle = ReqIFParser.parse_from_string(reqif(REQUIREMENTS))
    content = bundle.core_content.req_if_content
    texts = [each.attribute_map["attribute-text"].value for each in content.spec_objects]
    assert texts == [each.text for each in REQUIREMENTS]
    assert [(each.long_name, len(each.children)) for each in content.specifications] == [
        ("documents/policy.pdf", 2),
        ("documents/tea.md", 1),
    ]
    definitions = content.spec_types[0].attribute_definitions
    assert {"ReqIF.Text", "ReqIF.ForeignID"} <= {each.long_name for each in definitions}


def test_a_requirement_has_the_same_identifier_in_every_export():
    """When a tool imports again, it takes a new identifier for a new requirement."""

    def identifiers(requirements: list[Requirement]) -> dict[str, tuple[str, ...]]:
        bundle = ReqIFParser.parse_from_string(reqif(requirements))
        content = bundle.core_content.req_if_content
        names = {each.identifier: each.long_name for each in content.spec_objects}
        return {
            names[place.spec_object]: (place.spec_object, place.identifier, document.identifier)
            for document in content.specifications
            for place in document.children
        }

    every = identifiers(REQUIREMENTS)
    assert len(set(every.values())) == len(REQUIREMENTS)
    assert identifiers(REQUIREMENTS[1:]) == {each.id: every[each.id] for each in REQUIREMENTS[1:]}


@pytest.mark.parametrize("requirements", [[], REQUIREMENTS[:1]])
def test_few_or_none_are_a_whole_document(requirements: list[Requirement]):
    bundle = ReqIFParser.parse_from_string(reqif(requirements))
    assert not bundle.exceptions
