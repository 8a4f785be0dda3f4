"""The front matter of SKILL.md: what is read, what gives a warning, what is ignored."""

import pytest

from config.schema.skills import MOST_DESCRIPTION, Skill
from config.skill_files import parse_skill, skill_body

BODY = "# Tea\n\nBoil, then brew."


def written(*lines: str) -> str:
    return "\n".join(["---", *lines, "---", BODY])


def test_a_skill_is_read_as_published() -> None:
    text = written(
        "name: tea-making",
        "description: >",
        "  Makes tea.",
        "  Use when tea is wanted.",
        "license: MIT",
        "allowed-tools: Bash(kettle:*)",
        "metadata: {author: somebody}",
    )
    parsed = parse_skill(text, "tea-making")
    assert parsed.skill == Skill(
        name="tea-making", description="Makes tea. Use when tea is wanted."
    )
    assert not parsed.warnings
    assert skill_body(text) == BODY
    assert skill_body(text.replace("\n", "\r\n")).startswith("# Tea")
    assert skill_body("no front matter") == "no front matter"


@pytest.mark.parametrize(
    ("lines", "name", "warning"),
    [
        (["name: tea", "description: Makes: tea."], "tea", "not valid YAML"),
        (["description: Makes tea."], "tea", "does not fit the format"),
        (["name: Tea Making", "description: Makes tea."], "tea", "does not fit the format"),
        (["name: ../up", "description: Makes tea."], "tea", "does not fit the format"),
        (["name: -tea", "description: Makes tea."], "tea", "does not fit the format"),
        ([f"name: {'t' * 65}", "description: Makes tea."], "tea", "does not fit the format"),
        (["name: green-tea", "description: Makes tea."], "green-tea", "its folder is called tea"),
        (["name: tea", f"description: {'long ' * 300}"], "tea", "more than 1,024 characters"),
    ],
)
def test_what_breaks_the_format_is_read_with_a_warning(
    lines: list[str], name: str, warning: str
) -> None:
    skill, warnings = parse_skill(written(*lines), "tea")
    assert skill and skill.name == name
    assert 0 < len(skill.description) <= MOST_DESCRIPTION
    assert warning in " ".join(warnings)


def test_a_name_is_made_where_none_fits() -> None:
    skill, _ = parse_skill(written("name: Ä", "description: Makes tea."), "My Tea_Skill!")
    assert skill and skill.name == "my-tea-skill"


@pytest.mark.parametrize(
    "text",
    [
        "",
        BODY,
        written("name: tea"),
        written("name: tea", "description: [a, b]"),
        "---\n- a\n---\n",
    ],
)
def test_a_skill_without_a_description_is_left_out(text: str) -> None:
    skill, warnings = parse_skill(text, "tea")
    assert skill is None
    assert "has no description" in warnings[-1]
