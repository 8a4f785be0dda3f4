"""A person's words as the answer to a server's question."""

from typing import Any

import pytest
from mcp.types import ElicitRequestFormParams, ElicitRequestURLParams

from activities.mcp.elicitation import NOBODY, Elicited, Misread

COUNT: dict[str, Any] = {"type": "integer", "minimum": 1}
SIZE: dict[str, Any] = {"type": "string", "enum": ["small", "large"], "default": "small"}
SURE: dict[str, Any] = {"type": "boolean"}


def form(required: list[str] | None = None, **properties: dict[str, Any]) -> Elicited:
    schema = {"type": "object", "properties": properties, "required": required or []}
    return Elicited("q", ElicitRequestFormParams(message="How?", requested_schema=schema))


URL = Elicited("q", ElicitRequestURLParams(message="Sign in.", url="https://example.com/in"))


@pytest.mark.parametrize(
    ("question", "text", "content"),
    [
        (form(["count"], count=COUNT), "3", {"count": 3}),
        (form(["size"], size=SIZE), " large ", {"size": "large"}),
        (form(["sure"], sure=SURE), "Yes.", {"sure": True}),
        (form(["sure"], sure=SURE), "no", {"sure": False}),
        (form(["count"], count=COUNT, size=SIZE), "count=2", {"size": "small", "count": 2}),
        (form(size=SIZE, sure=SURE), '{"sure": true}', {"size": "small", "sure": True}),
        (form(["n"], n={"type": "string"}), "no milk", {"n": "no milk"}),
        (form(), "accept", {}),
        (URL, "done", None),
    ],
)
def test_an_answer_is_read(question: Elicited, text: str, content: dict[str, Any] | None) -> None:
    read = question.read_answer(text)
    assert (read.action, read.content) == ("accept", content)


@pytest.mark.parametrize(
    ("question", "text", "complaint"),
    [
        (form(["count"], count=COUNT), "many", "'many' is not of type 'integer'"),
        (form(["count"], count=COUNT), "0", "0 is less than the minimum of 1"),
        (form(["count"], count=COUNT, size=SIZE), "size=large", "'count' is a required property"),
        (form(["count"], count=COUNT, size=SIZE), "two, please", "'two, please' is not name=value"),
        (form(["count"], count=COUNT), '{"cups": 1, "count": 1}', "'cups' was unexpected"),
        (form(), "hm", "neither `accept` nor `decline`"),
        (URL, "hm", "neither `accept` nor `decline`"),
    ],
)
def test_what_does_not_fit_says_why(question: Elicited, text: str, complaint: str) -> None:
    with pytest.raises(Misread, match=complaint.replace("(", r"\(").replace(")", r"\)")):
        question.read_answer(text)


@pytest.mark.parametrize("question", [form(["count"], count=COUNT), form(), URL])
def test_decline_always_says_no(question: Elicited) -> None:
    assert question.read_answer("Decline.").action == "decline"


def test_silence_agrees_to_nothing_but_proposals() -> None:
    assert form(["size"], size=SIZE).lapsed().content == {"size": "small"}
    for question in (form(["count"], count=COUNT, size=SIZE), form(), form(sure=SURE), URL):
        assert question.lapsed().action == "cancel"
        assert question.default == NOBODY


def test_a_question_shows_its_form_without_credentials() -> None:
    assert "https://example.com/in" in URL.question
    question = form(["count"], count={**COUNT, "description": "Cups."}, size=SIZE).question
    assert question == (
        "How? Answer with count=… (integer: Cups.); size=… (small | large); or `decline`."
    )
    secret = Elicited(
        "q", ElicitRequestFormParams(message="Is it AKIAIOSFODNN7EXAMPLE?", requested_schema={})
    )
    assert "AKIAIOSFODNN7EXAMPLE" not in secret.question
