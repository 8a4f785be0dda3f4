"""What the documentation states is true: generated parts, links, commands, variables."""

import re
import shlex
from pathlib import Path

import pytest
import yaml

from config.agent_files import load_agent
from protocol.stuck_thresholds import StuckThresholds
from scripts.docs.__main__ import regenerate_docs_page
from scripts.docs.command_reference import command_options, registered_commands
from tests.docs.reading import (
    ROOT,
    anchors,
    blocks,
    commands,
    documentation_pages,
    links,
    page,
    tables,
)

CODE = ("activities", "cli", "config", "engine", "protocol", "rehearsal", "workflows")
VARIABLE = re.compile(r"\b(?:LONGHAUL|TEMPORAL|OPENAI)_[A-Z_]+\b")
CELLS = re.compile(r"(?<!\\)\|")
STARTER = re.compile(r"^(?:(?:(?:\.venv/bin/)?python )?starter(?:\.py)?|longhaul) (.+)")
every_page = pytest.mark.parametrize("page", documentation_pages(), ids=lambda page: page.name)


@every_page
def test_generated_parts_are_current(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert regenerate_docs_page(text) == text, "run `make docs`"


@every_page
def test_links_lead_somewhere(page: Path) -> None:
    for link in links(page):
        if not link.startswith("https://"):
            path, _, anchor = link.partition("#")
            target = (page.parent / path).resolve() if path else page
            assert target.exists(), link
            assert not anchor or anchor in anchors(target), link


@every_page
def test_the_rows_of_a_table_have_as_many_cells_as_its_heading(page: Path) -> None:
    for rows in tables(page.read_text(encoding="utf-8")):
        for row in rows:
            assert len(CELLS.findall(row)) == len(CELLS.findall(rows[0])), row


def test_no_table_of_the_configuration_is_empty_or_given_twice() -> None:
    text = page("configuration.md")
    assert not re.search(r"^\|---.*\n(?!\|)", text, re.MULTILINE)
    assert text.count("| `temperature` |") == 1
    assert "tuple" not in text
    headings = re.findall(r"^### `(.+)`$", text, re.MULTILINE)
    assert {"verifiers[]", "hooks.*[]", "prices.*", "judge.model", "web.search"} <= set(headings)
    assert "| `extends` |" in text


def test_every_page_can_be_reached_from_the_readme() -> None:
    readme, *others = documentation_pages()
    index = ROOT / "docs" / "decisions" / "README.md"
    reached = {
        (page.parent / link.partition("#")[0]).resolve()
        for page in (readme, index)
        for link in links(page)
    }
    assert set(others) <= reached


@every_page
def test_starter_commands_exist_with_their_options(page: Path) -> None:
    known = registered_commands()
    for line in commands(page.read_text(encoding="utf-8")):
        if not (match := STARTER.match(line)):
            continue
        name, *words = shlex.split(match[1])
        words = words[: words.index("--")] if "--" in words else words
        if name.startswith("-"):
            continue
        if words and f"{name} {words[0]}" in known:
            name = f"{name} {words[0]}"
        assert name in known, line
        options = {word.partition("=")[0] for word in words if word.startswith("--")}
        assert options <= command_options(known[name]), line


@every_page
def test_make_targets_exist(page: Path) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    known = set(re.findall(r"^([a-z]+):", makefile, re.MULTILINE))
    for line in commands(page.read_text(encoding="utf-8")):
        if line.startswith("make ") and line.split()[1].isalpha():
            assert line.split()[1] in known, line


def test_environment_variables_are_documented() -> None:
    read = {
        name
        for folder in CODE
        for path in (ROOT / folder).rglob("*.py")
        for name in VARIABLE.findall(path.read_text(encoding="utf-8"))
    }
    documented = set(VARIABLE.findall((ROOT / "docs/configuration.md").read_text(encoding="utf-8")))
    # Temporal's own variables are read by its library.
    assert read - documented == set()
    assert {name for name in documented if name.startswith("LONGHAUL")} <= read


def test_ci_runs_the_test_command_of_the_readme() -> None:
    script = (ROOT / ".ci/run").read_text(encoding="utf-8").splitlines()
    readme_commands = commands((ROOT / "README.md").read_text(encoding="utf-8"))
    assert script[-1].removeprefix("exec ") == "make test"
    assert "make test" in readme_commands
    assert (ROOT / ".ci/run").stat().st_mode & 0o111


def test_the_figures_of_stuck_detection_are_the_defaults() -> None:
    text = page("staying-on-course.md")
    rows = re.findall(r"\| `(\w+)` \| (\d+)[^|]*\| [^|]*?(\d+) \|", text)
    patterns = load_agent("generalist").stuck.model_dump()
    shipped = {name: {"nudge": p["nudge"], "then": p["then"]} for name, p in patterns.items()}
    assert {row: {"nudge": int(n), "then": int(t)} for row, n, t in rows} == shipped
    (example,) = blocks(text, "yaml")
    StuckThresholds.model_validate(yaml.safe_load(example)["stuck"])
