"""What the current details of jobs and of projects have in common."""

from __future__ import annotations

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
