"""The tool by which a reviewer judges, and the reading of its verdicts."""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from activities.text.safe_text import replace_surrogates
from activities.toolkit.registry import tool
from activities.toolkit.tool_context import ToolContext
from activities.toolkit.tool_errors import ToolError
from protocol.scope_ledger import Statement, Verdict

JUDGE = "judge_statements"
MAX_VERDICTS = 500
MAX_TEXT = 400
"""Characters of a quote and of a finding."""
MAX_FINDINGS = 1800
MAX_READ = 400_000
"""Characters of a reply in which verdicts are looked for."""
NOT_HERE = "Only a review judges statements."
_WORDS: dict[str, Verdict] = {
    "met": "met",
    "unmet": "unmet",
    "not met": "unmet",
    "cannot tell": "cannot tell",
    "can't tell": "cannot tell",
}
_SEVERITY: list[Verdict] = ["met", "cannot tell", "unmet"]


class StatementVerdict(BaseModel):
    """The verdict on one statement."""

    model_config = ConfigDict(extra="ignore")

    id: str = Field("", max_length=20, description="Its id; none with `asked`.")
    asked: str = Field(
        "",
        max_length=MAX_TEXT,
        description="For what the brief asks for and no statement has: its words, to the letter.",
    )
    verdict: Literal["met", "unmet", "cannot tell"]
    quote: str = Field(
        "", max_length=MAX_TEXT, description="Words of the work that show it, to the letter."
    )
    finding: str = Field(
        "", max_length=MAX_TEXT, description="For unmet: what is missing, and where."
    )


@tool("verdict", effect="reads", phases=("strategic",))
def judge_statements(
    context: ToolContext,
    verdicts: Annotated[
        list[StatementVerdict],
        Field(max_length=MAX_VERDICTS, description="One for each statement."),
    ],
    findings: Annotated[
        str, Field(max_length=MAX_FINDINGS, description="What else the agent has to know.")
    ] = "",
) -> str:
    """Judge each statement: is it met by the work? This ends the review."""
    raise ToolError(NOT_HERE)


class ReadVerdicts(NamedTuple):
    verdicts: dict[str, Statement]
    findings: str
    added: Sequence[Statement] = ()
    """What no statement has: the words of the brief, judged."""


def read_verdicts(calls: Sequence[tuple[str, str]], text: str) -> ReadVerdicts | None:
    """Return the verdicts of a reply; None if it only reads or talks.

    A verdict that cannot be read is left out: what it would have judged counts as not judged. Of
    several on one statement the worst counts.

    Args:
        text: Its text, in which verdicts as a JSON object count as a call.
    """
    judging = [raw for name, raw in calls if name == JUDGE]
    if not judging and (calls or '"verdict' not in text):
        return None
    verdicts: dict[str, Statement] = {}
    added: dict[str, Statement] = {}
    findings = ""
    for raw in judging or [text]:
        for entry in _verdict_objects(raw):
            if "verdict" not in entry:
                findings = _bounded_text(entry["findings"])
                continue
            word = str(entry["verdict"]).casefold().replace("_", " ").strip()
            id_ = str(entry.get("id") or "").strip().strip("[]():").upper()
            asked = _bounded_text(entry.get("asked"))
            judged = Statement(
                text=asked,
                verdict=_WORDS.get(word, "cannot tell"),
                quote=_bounded_text(entry.get("quote")),
                finding=_bounded_text(entry.get("finding")),
            )
            # One with both judges the statement that has the id.
            kept, key = (
                (verdicts, id_) if id_ else (added, " ".join(re.findall(r"\w+", asked.casefold())))
            )
            kept[key] = max(
                kept.get(key, judged),
                judged,
                key=lambda each: _SEVERITY.index(each.verdict or "cannot tell"),
            )
    return ReadVerdicts(verdicts, findings, list(added.values()))


def _bounded_text(value: Any) -> str:
    return replace_surrogates(value).strip()[:MAX_TEXT] if isinstance(value, str) else ""


def _verdict_objects(raw: str) -> Iterator[dict[str, Any]]:
    """Yield objects with a verdict on an id or on what is asked, and `{"findings": …}`.

    They are also found in JSON that breaks off, and in prose.
    """
    text, decoder, place = raw[:MAX_READ], json.JSONDecoder(), 0
    for _ in range(10 * MAX_VERDICTS):
        if (place := text.find("{", place)) < 0:
            return
        try:
            value, place = decoder.raw_decode(text, place)
        except (ValueError, RecursionError):
            place += 1
            continue
        listed = value.get("verdicts", [value])
        if isinstance(listed, str):
            # Some models send a list as the text of its JSON.
            yield from _verdict_objects(listed)
        for entry in listed if isinstance(listed, list) else []:
            if isinstance(entry, dict) and "verdict" in entry and {"id", "asked"} & entry.keys():
                yield entry
        if "verdicts" in value and value.get("findings"):
            yield {"findings": value["findings"]}
