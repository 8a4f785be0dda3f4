"""The scope of a job whose brief has no statement that code can read."""

import pytest

from activities.preparation.job_scope import read_job_scope


@pytest.mark.parametrize(
    "brief",
    [
        "Écris output/a.md avec le code K1. Le fichier output/b.md doit contenir K2.",
        "> Write output/a.md with K1.\n> Write output/b.md with K2.\n",
        "请编写 output/a.md，内容为 K1。文件 output/b.md 必须包含 K2。",  # noqa: RUF001
    ],
)
def test_a_brief_that_is_one_item_names_its_files(brief: str) -> None:
    [item] = read_job_scope([], brief, brief).items
    assert [each.paths for each in item.statements] == [["output/a.md", "output/b.md"]]


def test_a_brief_may_be_one_item_that_any_work_completes() -> None:
    brief = "Write output/a.md about tea. Write output/b.md about cups."
    assert len(read_job_scope([], brief, brief).items) == 2
    [item] = read_job_scope([], brief, brief, by_statement=False).items
    assert [each.paths for each in item.statements] == [[]]
    listed = read_job_scope(["Tea", "Cups"], brief, brief, by_statement=False).items
    assert [each.text for each in listed] == ["Tea", "Cups"]


def test_the_item_of_a_long_brief_keeps_more_than_its_title() -> None:
    brief = "Hello there, " * 60
    [item] = read_job_scope([], brief, brief).items
    assert len(item.text) <= 120 < len(item.statements[0].text) <= 400


def test_a_heading_of_such_a_brief_is_part_of_its_sentence() -> None:
    brief = "# Crash when the key is empty\n\nRunning `f('')` raises IndexError.\n"
    [item] = read_job_scope([], brief, brief).items
    assert item.text == "Crash when the key is empty: Running `f('')` raises IndexError."
    [item] = read_job_scope([], "## Tea ##", "## Tea ##").items
    assert item.text == "Tea"


def test_sentences_in_which_nothing_was_found_are_named() -> None:
    brief = (
        "Hi team,\n\nWrite output/a.md about tea. Every page links home.\n\n"
        "1. Appendix\n   - glossary\n\n## Background\n\nTea is old.\n"
    )
    scope = read_job_scope([], brief, brief)
    assert [item.text for item in scope.items] == ["Write output/a.md about tea."]
    [notice] = scope.notices
    assert notice == (
        'scope: not taken as asked for: "Every page links home.", "Appendix", "glossary"'
    )
