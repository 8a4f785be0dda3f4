"""Work that is deleted, emptied or put back before the end completes nothing; moved work does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from activities.acceptance.lost_work import KeptWork
from activities.checkpoints import Files
from protocol.evidence import Evidence, SeenWork
from protocol.repository_link import RepositoryLink
from protocol.scope_ledger import ScopeItem, Statement
from tests.activities.standing import Standing

TEA = b"# Tea\n\nGreen tea needs water of 80 degrees.\nLet it rest for two minutes.\n"
POT = b"# Pot\n\nA pot of clay holds eleven cups.\n"
Change = Callable[[Files], Files]


def problems(path: Path, text: str, change: Change, checks: list[str] | None = None) -> list[str]:
    """Do an item's work in two files, change them, and return what is found amiss."""
    job = Standing.begin(path)
    job.put(lambda files: files.write("code/app.py", b"print(1)\n"))
    start = job.open().files.subfolder("code").id
    job.put(lambda files: files.write("code/app.py", b"print(2)\n"))
    for name, data in (("pages/tea.md", TEA), ("pages/pot.md", POT)):
        job.write(name, data)
    files = ["pages/tea.md", *(["code/app.py"] if "code" in text else [])]
    evidence = Evidence(
        kind="work", phase=2, calls=1, files=files, checks=checks or [], commit=job.commit
    )
    item = ScopeItem(id="B1", text=text, status="completed", evidence=evidence)
    item.statements = [Statement(text=text)]
    job.put(change)
    snapshot = job.open()
    fields: dict[str, Any] = {"folder": "code", "tree": start}
    snapshot.repository = RepositoryLink.model_construct(**fields)
    return KeptWork(snapshot).problems(item)


def rewritten(files: Files) -> Files:
    """The page within a book, in other lines."""
    text = b"Chapter 1: Tea. Let green tea rest for two minutes; it needs water of\n80 degrees.\n"
    return files.write("book.md", text).delete("pages/tea.md")


@pytest.mark.parametrize(
    "change",
    [
        lambda files: files.delete("pages/tea.md"),
        lambda files: files.write("pages/tea.md", b"\n"),
        lambda files: files.write("notes/tea.md", TEA).delete("pages/tea.md"),
        lambda files: files.write("pages/other.md", b"# Tea\n\nIt is good.\n").delete(
            "pages/tea.md"
        ),
    ],
)
def test_work_that_is_gone_is_named(tmp_path: Path, change: Change) -> None:
    [why] = problems(tmp_path, "Write a page on tea.", change, ["file_exists pages: held"])
    assert why == (
        "nothing is left of the work seen for it: pages/tea.md was deleted, emptied or put back"
    )


def test_a_change_of_the_repository_that_is_put_back_is_no_work(tmp_path: Path) -> None:
    def back(files: Files) -> Files:
        return files.delete("pages/tea.md").write("code/app.py", b"print(1)\n")

    assert problems(tmp_path, "Change the code.", back)


@pytest.mark.parametrize(
    ("text", "change"),
    [
        ("Write a page on tea.", lambda files: files),
        ("Write a page on tea.", lambda files: files.write("pages/tea.md", b"# Tea\nHot.\n")),
        (
            "Write a page on tea.",
            lambda files: files.write("pages/green.md", TEA).delete("pages/tea.md"),
        ),
        (
            "Write a page on tea.",
            lambda files: files.write("all.md", POT + TEA).delete("pages"),
        ),
        ("Write a page on tea.", rewritten),
        ("Merge the pages.", lambda files: files.delete("pages/tea.md")),
        ("Change the code.", lambda files: files.delete("pages/tea.md")),
        ("Change the code.", lambda files: files.delete("pages/tea.md").delete("code/app.py")),
    ],
)
def test_work_that_is_kept_moved_or_merged_counts(
    tmp_path: Path, text: str, change: Change
) -> None:
    assert problems(tmp_path, text, change) == []


def test_what_a_command_did_is_left_to_the_review(tmp_path: Path) -> None:
    checks = ["make publish: exit code 0"]
    assert problems(tmp_path, "Publish it.", lambda files: files.delete("pages"), checks) == []


def test_deleted_files_are_the_first_to_leave_the_evidence() -> None:
    seen = SeenWork()
    seen.add_work(["output/a.md"])
    scratch = [f"tmp/{n}" for n in range(11)]
    seen.add_work(scratch)
    seen.add_work(scratch, "rm -r tmp: exit code 0", gone=set(scratch))
    assert seen.files[-1] == "output/a.md"
