import json
import re

import pytest

from activities.text.json_values import MAX_DEPTH, read_json_value
from protocol.endings import JobResult, TypedResult


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"price": 1e400}', "$.price: not a finite number"),
        ('{"a": [1, {"b": -1e999}]}', "$.a[1].b: not a finite number"),
        ('[1, NaN]', "$[1]: not a finite number"),
        ('{"a b": Infinity}', "$['a b']: not a finite number"),
        (f'{{"n": {"9" * 400}}}', "$.n: not a finite number"),
        (f'{{"n": -{"9" * 9000}}}', "$.n: not a finite number"),
        ('["\\ud83d"]', "$[0]: the text holds half of a character"),
        ('{"a": {"\\udc00": 1}}', "$.a: the text holds half of a character"),
        ('{"a": 1, "a": 2}', "$: the key 'a' stands twice"),
        ('[{"x": {"a": 1, "b": 1, "a": 1}}]', "$[0].x: the key 'a' stands twice"),
        ('{"x": {"a": 1, "a": 2}, "x": 3}', "$: the key 'x' stands twice"),
        ("[" * 900 + "]" * 900, "nested too deeply"),
        ("[" * 200_000 + "]" * 200_000, "nested too deeply"),
        ('{"a":' * (MAX_DEPTH + 1) + "1" + "}" * (MAX_DEPTH + 1), "nested too deeply: more than"),
        ('{"a": 1,}', "not valid JSON in line 1"),
        ("", "not valid JSON in line 1"),
    ],
)  # fmt: skip
def test_what_cannot_be_handed_over_is_refused_with_its_place(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=re.escape(problem)) as refused:
        read_json_value(text)
    str(refused.value).encode()


@pytest.mark.parametrize(
    "value",
    [
        None, 0, -1.5e308, 10**299, "", "\U0001f600 \u0000", [], {}, {"a": {"a": [{"a": 1}]}},
        {"": 1}, True,
    ],
)  # fmt: skip
def test_everything_else_is_read_as_it_is(value: object) -> None:
    assert read_json_value(json.dumps(value)) == value


def test_what_is_accepted_can_be_written_and_read_again() -> None:
    deep = read_json_value('{"a":[' * (MAX_DEPTH // 2) + "1" + "]}" * (MAX_DEPTH // 2))
    result = JobResult(status="completed", result=TypedResult(path="r.json", bytes=1, content=deep))
    assert JobResult.model_validate_json(result.model_dump_json()) == result
