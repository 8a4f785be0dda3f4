"""Verdicts of a reviewer are read from calls and from text, whole or not."""

import json
from typing import Any

import pytest

from activities.toolkit.registry import REGISTRY
from activities.tools import verdict
from activities.tools.verdict import JUDGE, read_verdicts

MET = {"id": "S1", "verdict": "met", "quote": "words"}
UNMET = {"id": "S2", "verdict": "unmet", "quote": "q", "finding": "f"}


def judge(*verdicts: Any, **more: Any) -> tuple[str, str]:
    return JUDGE, json.dumps({"verdicts": list(verdicts), **more})


@pytest.mark.parametrize(
    ("calls", "text", "expected"),
    [
        ([judge(MET, UNMET)], "", {"S1": "met", "S2": "unmet"}),
        ([("read_file", '{"path": "a"}'), judge(MET)], "", {"S1": "met"}),
        ([], json.dumps({"verdicts": [MET, UNMET]}), {"S1": "met", "S2": "unmet"}),
        ([], f"Here it is:\n```json\n{json.dumps({'verdicts': [MET]})}\n```\nDone.", {"S1": "met"}),
        # The output limit cut the second verdict.
        ([(JUDGE, judge(MET, UNMET)[1][:-30])], "", {"S1": "met"}),
        ([(JUDGE, json.dumps({"verdicts": json.dumps([MET])}))], "", {"S1": "met"}),
        ([judge({**MET, "verdict": "Cannot_Tell"})], "", {"S1": "cannot tell"}),
        ([judge({**MET, "verdict": "perhaps"})], "", {"S1": "cannot tell"}),
        ([judge({**MET, "id": "s1"}, {**UNMET, "id": "[S1]"})], "", {"S1": "unmet"}),
        ([judge({**UNMET, "id": "S1"}), judge(MET)], "", {"S1": "unmet"}),
        (
            [judge({"id": "S1"}, "S1", None, 3, {**MET, "quote": 3, "finding": ["x"]})],
            "",
            {"S1": "met"},
        ),
        ([judge()], "", {}),
        ([(JUDGE, "{not json")], "", {}),
        ([(JUDGE, "")], "", {}),
        ([(JUDGE, '{"verdicts": [' * 3000)], "", {}),
        ([(JUDGE, '{"a' * 50_000)], "", {}),
    ],
)
def test_verdicts_are_read(
    calls: list[tuple[str, str]], text: str, expected: dict[str, str]
) -> None:
    read = read_verdicts(calls, text)
    assert read is not None
    assert {id_: each.verdict for id_, each in read.verdicts.items()} == expected


@pytest.mark.parametrize(
    ("calls", "text"),
    [
        ([], ""),
        ([], "All is fine, everything is met."),
        ([("read_file", "{}")], '"verdict": "met"'),
    ],
)
def test_who_reads_or_talks_has_not_judged(calls: list[tuple[str, str]], text: str) -> None:
    assert read_verdicts(calls, text) is None


def test_texts_are_bounded_and_whole() -> None:
    long = {**UNMET, "quote": "q" * 9000, "finding": "f\ud83d" * 9000}
    read = read_verdicts([judge(long, findings="also this")], "")
    assert read
    judged = read.verdicts["S2"]
    assert max(len(judged.quote), len(judged.finding)) == verdict.MAX_TEXT
    judged.model_dump_json()
    assert read.findings == "also this"


def test_the_schema_has_no_pattern() -> None:
    assert "pattern" not in json.dumps(REGISTRY[JUDGE].schema)


def test_what_no_statement_has_is_read_with_its_words() -> None:
    new = {"verdict": "unmet", "asked": "Every page links home.", "finding": "no link"}
    read = read_verdicts([judge(MET, new, {**new, "verdict": "met"})], "")
    assert read is not None
    assert list(read.verdicts) == ["S1"]
    assert [(each.text, each.verdict) for each in read.added] == [(new["asked"], "unmet")]
    # With an id it judges that statement.
    both = read_verdicts([judge({**UNMET, "asked": "Every page links home."})], "")
    assert both is not None
    assert both.verdicts["S2"].verdict == "unmet"
    assert not both.added
