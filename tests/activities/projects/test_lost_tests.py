"""Tests that are gone, weaker or moved, by their names and texts; no command is run."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from activities.checkpoints import Checkpoints, Files, Root
from activities.projects.lost_tests import Baseline, LostTests, find_lost_tests
from activities.projects.runner_reports import RunCounts
from activities.projects.tests_by_name import python_tests

TEA = (
    "import tea\n\n\ndef test_one():\n    assert tea.brew(1) == 2\n\n\n"
    "def test_two():\n    assert tea.brew(2) == 4\n    assert tea.brew(0) == 0\n"
)
BEFORE = {"tests/test_tea.py": TEA, "tests/helpers.py": "CUPS = 1\n", "tests/data.txt": "a\n"}


def files(folder: Path, content: Mapping[str, str]) -> Files:
    root = Root.open(folder / "r", create=True)
    product = Files.empty(Checkpoints.create(root, "job").store)
    for path, text in content.items():
        product = product.write(path, text.encode())
    return product


def names(product: Files) -> list[str]:
    return [f"{test.path}::{key[2]}" for key, test in python_tests(product).items()]


def lost(
    folder: Path,
    after: Mapping[str, str],
    unresolved: Sequence[str] = (),
    *,
    whole: bool = True,
    skipped: Sequence[str] = (),
) -> LostTests:
    before, now = files(folder / "a", BEFORE), files(folder / "b", after)
    counts = RunCounts()
    for name in names(now):
        counts.add(name, "skipped" if name in skipped else "passed")
    baseline = Baseline(before, names(before), "" if whole else "pytest")
    return find_lost_tests(now, counts, [baseline], unresolved)


HONEST = {
    "a file has another name": {"tests/unit/test_brewing.py": TEA},
    "a file has another name and its tests docstrings": {
        "tests/unit/test_brewing.py": TEA.replace("():\n", '():\n    """Brew."""\n')
    },
    "helpers and data differ": {**BEFORE, "tests/helpers.py": "", "tests/data.txt": "b\n"},
    "a docstring": {
        "tests/test_tea.py": TEA.replace("test_one():\n", 'test_one():\n    """One cup."""\n')
    },
    "another value": {"tests/test_tea.py": TEA.replace("== 4", "== 5")},
    "a check goes to a test of its own": {
        "tests/test_tea.py": TEA.replace(
            "    assert tea.brew(0) == 0\n",
            "\n\ndef test_none():\n    assert tea.brew(0) == 0\n",
        )
    },
    "two checks in one": {
        "tests/test_tea.py": TEA.replace(
            "tea.brew(2) == 4\n    assert tea.brew(0) == 0",
            "(tea.brew(2), tea.brew(0)) == (4, 0)",
        )
    },
    "checks in a helper": {
        "tests/test_tea.py": TEA.replace(
            "    assert tea.brew(2) == 4\n    assert tea.brew(0) == 0\n",
            "    check()\n\n\n"
            "def check():\n    assert tea.brew(2) == 4\n    assert tea.brew(0) == 0\n",
        )
    },
    "another way to compare": {
        "tests/test_tea.py": TEA.replace("assert tea.brew(2) == 4", "check(tea.brew(2), 4)")
    },
}


@pytest.mark.parametrize("change", HONEST)
def test_honest_changes_lose_nothing(tmp_path: Path, change: str) -> None:
    found = lost(tmp_path, HONEST[change])
    assert (found.why, found.excused) == ("", [])


CHEATS = {
    "gone": (TEA[: TEA.index("def test_two")], "gone, skipped or expected"),
    "another in its place": (TEA.replace("test_two", "test_other"), "gone, skipped or expected"),
    "a check less": (TEA.replace("    assert tea.brew(0) == 0\n", ""), "compare less"),
    "any value": (TEA.replace("tea.brew(2) == 4", "tea.brew(2)"), "compare less"),
    "with itself": (
        TEA.replace("tea.brew(2) == 4", "tea.brew(2) == tea.brew(2)"),
        "compare less",
    ),
    "a constant": (TEA.replace("tea.brew(2) == 4", "4 == 4"), "compare less"),
    "nothing": (
        TEA.replace("    assert tea.brew(2) == 4\n    assert tea.brew(0) == 0\n", "    pass\n"),
        "compare less",
    ),
}


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("cheat", CHEATS)
def test_what_is_lost_is_named_and_may_be_stated(tmp_path: Path, cheat: str, whole: bool) -> None:
    text, how = CHEATS[cheat]
    after = {**BEFORE, "tests/test_tea.py": text}
    why = lost(tmp_path / "1", after, whole=whole).why
    assert how in why
    assert "tests/test_tea.py::test_two; put them back" in why
    for said in ("test_two: two cups are no longer sold", "tests/test_tea.py asks for old rules"):
        found = lost(tmp_path / said[:8], after, [said], whole=whole)
        assert (found.why, found.excused) == ("", ["tests/test_tea.py::test_two"])
    assert lost(tmp_path / "2", after, ["test_two"], whole=whole).why


def test_a_test_that_is_moved_and_weaker_is_named(tmp_path: Path) -> None:
    weak = TEA.replace("    assert tea.brew(0) == 0\n", "")
    why = lost(tmp_path, {"tests/test_other.py": weak}).why
    assert "compare less than they did: tests/test_tea.py::test_two" in why


def test_a_skip_is_a_loss_and_a_change_after_a_failure_is_shown(tmp_path: Path) -> None:
    why = lost(tmp_path / "1", BEFORE, skipped=["tests/test_tea.py::test_one"]).why
    assert "gone, skipped or expected to fail: tests/test_tea.py::test_one" in why
    other = {**BEFORE, "tests/test_tea.py": TEA.replace("== 4", "== 5")}
    assert lost(tmp_path / "2", other, whole=False).changed == ["tests/test_tea.py::test_two"]
    assert lost(tmp_path / "3", other).changed == []
