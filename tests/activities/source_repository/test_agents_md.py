"""AGENTS.md from the root down to the folder worked in, at most 32 KiB together."""

from pathlib import Path

import pygit2
import pytest

from activities.projects.agents_md import MOST_BYTES, read_agents_md
from tests.activities.source_repository.origins import WorkTree


def guidance(tmp_path: Path, files: dict[str, str], subfolder: str = "") -> tuple[str, list[str]]:
    tree = WorkTree.create(tmp_path / "tea")
    tree.commit("Guidance", files)
    repository = pygit2.Repository(str(tree.path))
    return read_agents_md(repository.head.peel(pygit2.Tree), subfolder)


def test_nearer_ones_come_later_and_the_override_takes_the_place_of_the_other(
    tmp_path: Path,
) -> None:
    files = {
        "AGENTS.md": "root",
        "a/AGENTS.md": "left out",
        "a/AGENTS.override.md": "near",
        "a/b/AGENTS.md": "nearest",
        "a/b/c/AGENTS.md": "too deep",
        "other/AGENTS.md": "beside",
    }
    text, notes = guidance(tmp_path, files, "a/b")
    assert text == (
        "## AGENTS.md\n\nroot\n\n## a/AGENTS.override.md\n\nnear\n\n## a/b/AGENTS.md\n\nnearest"
    )
    assert notes == []


def test_an_empty_override_leaves_the_other(tmp_path: Path) -> None:
    text, _ = guidance(tmp_path, {"AGENTS.override.md": " \n", "AGENTS.md": "root"})
    assert text == "## AGENTS.md\n\nroot"


@pytest.mark.parametrize("size", [MOST_BYTES - 10, MOST_BYTES + 10])
def test_what_is_too_much_is_cut_from_the_farthest(tmp_path: Path, size: int) -> None:
    text, notes = guidance(tmp_path, {"AGENTS.md": "r" * 100, "a/AGENTS.md": "n" * size}, "a")
    assert min(size, MOST_BYTES) == text.count("n") - text.count("## a")
    assert notes[0].startswith("AGENTS.md is cut: at most 32,768 bytes")
    assert text.count("r") <= 100
    assert len(text.encode()) < MOST_BYTES + 300


def test_a_link_to_another_file_of_the_repository_is_followed(tmp_path: Path) -> None:
    tree = WorkTree.create(tmp_path / "tea", CLAUDE_md="linked")
    (tree.path / "AGENTS.md").symlink_to("CLAUDE.md")
    tree.commit("Link", {})
    repository = pygit2.Repository(str(tree.path))
    text, _ = read_agents_md(repository.head.peel(pygit2.Tree), "")
    assert text == "## AGENTS.md\n\nlinked"
