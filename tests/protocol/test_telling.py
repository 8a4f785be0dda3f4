"""Errors of Pydantic's are told within a line, what they quote as it stands."""

from __future__ import annotations

import pytest

from protocol.telling import place, said


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("Field required", "field required"),
        ("String should match pattern '^[A-Z]+$'", "string should match pattern '^[A-Z]+$'"),
        ("Value error, the key Name must be of type text", "the key Name must be of type text"),
        ("JSON input should be an object", "JSON input should be an object"),
        ("", ""),
    ],
)
def test_only_the_beginning_of_a_message_is_changed(message: str, told: str) -> None:
    assert said(message) == told


def test_a_wrong_key_is_named_by_itself() -> None:
    assert place(("graph", "nodes", "my tea", "[key]")) == "graph.nodes.my tea"
    assert place(("stages", 0, "task")) == "stages.0.task"
    assert place(()) == "the whole"
