"""A summary that leaves out what is still to be done is not taken as it is."""

import pytest

from activities.job import context_summary
from activities.job.compaction_plan import SUMMARY_TOKENS
from activities.text.tokens import count_tokens
from protocol.phase import Phase
from protocol.todo_list import Todo

PHASE = Phase(
    number=3,
    kind="tactical",
    purpose="work",
    name="Brew",
    todos=[
        Todo(id=1, content="Boil the water.", done=True),
        Todo(id=2, content="Warm the pot."),
        Todo(id=13, content="Pour the tea."),
    ],
)
NEEDED = context_summary.required_summary_mentions(PHASE, ["notes/pot.md", "output/tea.md"])


@pytest.mark.parametrize(
    ("summary", "missing"),
    [
        ("todo 2 waits, Todo #13 too; notes/pot.md and output/tea.md exist", ""),
        ("Next: warm the  POT. and then todo 13. notes/pot.md output/tea.md", ""),
        ("todo 13. notes/pot.md output/tea.md", "todo 2"),
        ("todo 2, todo 130: notes/pot.md output/tea.md", "todo 13"),
        ("todo 2 and todo 13; output/tea.md", "notes/pot.md"),
        ("", "todo 2, todo 13, notes/pot.md, output/tea.md"),
    ],
)
def test_what_is_missing_is_named(summary: str, missing: str) -> None:
    assert str(NEEDED.missing_from(summary)) == missing
    assert bool(NEEDED.missing_from(summary)) is bool(missing)


def test_what_is_missing_is_written_by_the_system() -> None:
    summary = context_summary.complete_context_summary("Only todo 13 matters.", NEEDED)
    assert summary.startswith("Only todo 13 matters.")
    assert "- todo 2: Warm the pot." in summary
    assert "- notes/pot.md" in summary
    assert not NEEDED.missing_from(summary)


def test_a_name_that_is_not_utf_8_can_be_told() -> None:
    needed = context_summary.required_summary_mentions(PHASE, ["notes/caf\udce9"])
    assert "- notes/caf?" in context_summary.complete_context_summary("", needed).encode().decode()


def test_a_summary_is_bounded_and_still_complete() -> None:
    summary = context_summary.complete_context_summary("word " * 50_000, NEEDED)
    assert count_tokens(summary) <= SUMMARY_TOKENS
    assert not NEEDED.missing_from(summary)


def test_without_a_model_the_last_calls_and_what_is_open_are_kept() -> None:
    messages = [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"function": {"name": "read_file", "arguments": f'{{"path":"{n}"}}'}}],
        }
        for n in range(100)
    ]
    summary = context_summary.fallback_summary(
        "Earlier: the kettle leaks. " + "Tea. " * 1_500, messages, NEEDED
    )
    assert "the kettle leaks" in summary
    assert "Not summarised" in summary
    assert 'read_file {"path":"99"}' in summary
    assert not NEEDED.missing_from(summary)
    assert count_tokens(summary) <= SUMMARY_TOKENS


def test_what_is_cut_in_a_transcript_is_said_to_go_on() -> None:
    written = {"function": {"name": "write_file", "arguments": "y" * 30}}
    long = {"role": "tool", "content": "x" * 30, "tool_calls": [written]}
    assert context_summary.summary_transcript_line(long, 20) == (
        f"tool: {'x' * 20} [TRUNCATED] write_file({'y' * 20} [TRUNCATED])"
    )
    assert "TRUNCATED" not in context_summary.summary_transcript_line(long, 30)


def test_the_question_holds_what_must_be_kept_and_bounds_the_rest() -> None:
    messages = [{"role": "tool", "content": "x" * 100_000}] * 500
    prompt = context_summary.summary_request(PHASE, NEEDED, "the notes so far", messages, None)
    assert len(prompt) < context_summary.TRANSCRIPT_CHARACTERS + 5_000
    for part in ("- todo 2: Warm the pot.", "- output/tea.md", "the notes so far", "[TRUNCATED"):
        assert part in prompt
    again = context_summary.summary_request(
        PHASE, NEEDED, "", messages, NEEDED.missing_from("todo 2")
    )
    assert "left out: todo 13, notes/pot.md, output/tea.md" in again
