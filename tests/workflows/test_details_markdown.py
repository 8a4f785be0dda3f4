"""What the current details of jobs and of projects have in common."""

from __future__ import annotations

from protocol.contract import ContractRow
from protocol.usage import Usage
from workflows import details_markdown


def test_a_text_stays_in_its_cell() -> None:
    assert details_markdown.markdown_table_cell("one |\n two") == "one \\| two"


def test_cost_shows_when_there_is_some() -> None:
    used = Usage(tool_calls=3, prompt_tokens=1000, completion_tokens=200)
    assert details_markdown.markdown_usage_line(used) == "tool calls 3 · tokens 1,200"
    used.cost = 0.5
    assert details_markdown.markdown_usage_line(used) == "tool calls 3 · tokens 1,200 · cost 0.5000"


def test_a_heading_stands_only_over_something() -> None:
    assert details_markdown.markdown_list_lines("Notices", []) == []
    assert details_markdown.markdown_list_lines("Notices", ["a"]) == ["", "### Notices", "", "- a"]


def test_a_contract_is_a_table_of_bounded_length() -> None:
    row = ContractRow(id="S1", item="S1", statement="Cover | tea", status="completed", phase=2)
    met = row.model_copy(update={"todo": 3, "verdict": "met", "quote": "green", "files": ["a.md"]})
    dropped = row.model_copy(update={"id": "S2", "status": "dropped", "reason": "no milk"})
    claimed = row.model_copy(update={"verdict": "met", "claim": "read tea.md"})
    lines = details_markdown.markdown_contract_lines([met, dropped, claimed, *[row] * 99])
    assert lines[5] == "| Cover \\| tea | S1 | 2.3 | a.md |  | **met**: green |"
    assert lines[6].endswith("| **dropped**: no milk |")
    assert lines[7].endswith("|  | the agent says: read tea.md | **met, claimed only** |")
    assert lines[-1] == "and 62 more, in output/completion.json"
    assert details_markdown.markdown_contract_lines([]) == []
