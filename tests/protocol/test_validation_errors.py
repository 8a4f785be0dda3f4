"""Pydantic's errors on one line, quoting input unchanged."""

import pytest

from protocol.validation_errors import lowered_validation_error, validation_error_key


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("Field required", "field required"),
        ("String should match pattern '^[A-Z]+$'", "string should match pattern '^[A-Z]+$'"),
        ("Value error, the key Name must be of type text", "the key Name must be of type text"),
        ("JSON input should be an object", "JSON input should be an object"),
        ("", ""),
    ],
)
def test_only_the_beginning_of_a_message_is_changed(message: str, expected: str) -> None:
    assert lowered_validation_error(message) == expected


def test_a_wrong_key_is_named_by_itself() -> None:
    assert validation_error_key(("graph", "nodes", "my tea", "[key]")) == "graph.nodes.my tea"
    assert validation_error_key(("stages", 0, "task")) == "stages.0.task"
    assert validation_error_key(()) == "the whole"
