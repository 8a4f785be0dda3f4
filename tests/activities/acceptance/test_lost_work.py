"""Work that is deleted, emptied or put back before the end completes nothing; moved work does."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from activities.acceptance.lost_work import KeptWork
from activities.checkpoints import Files, open_checkpoints
from activities.phases.phase_tags import phase_tag
from protocol.evidence import Evidence, SeenWork
from protocol.repository_link import RepositoryLink
from protocol.scope_ledger import ScopeItem, Statement
from tests.activities.standing import Standing

TEA = b"# Tea\n\nGreen tea needs water of 80 degrees.\nLet it rest for two minutes.\n"
POT = b"# Pot\n\nA pot of clay holds eleven cups.\n"
LONG = (
    TEA + b"Pour slowly, warm the cup before, never boil leaves twice, and serve it with honey.\n"
)
Change = Callable[[Files], Files]


def problems(
    path: Path, text: str, change: Change, checks: list[str] | None = None, tea: bytes = TEA
) -> list[str]:
    """Do an item's work in two files, change them, and return what is found amiss."""
    job = Standing.begin(path)
    job.put(lambda files: files.write("code/app.py", b"print(1)\n"))
    start = job.open().files.subfolder("code").id
    job.put(lambda files: files.write("code/app.py", b"print(2)\n"))
    for name, data in (("pages/tea.md", tea), ("pages/pot.md", POT)):
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


@pytest.mark.parametrize(("now", "count"), [(b"done", 1), (b"# Tea\n\nRest, pour, serve.\n", 0)])
def test_a_word_in_the_place_of_a_text_is_no_draft(tmp_path: Path, now: bytes, count: int) -> None:
    def change(files: Files) -> Files:
        return files.write("pages/tea.md", now)

    assert len(problems(tmp_path, "Write a page on tea.", change, tea=LONG)) == count


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
        ("Merge the pages.", lambda files: files.write("b.md", POT + TEA).delete("pages")),
        ("The page must be removed.", lambda files: files.delete("pages/tea.md")),
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


def amiss(
    path: Path,
    text: str,
    made: dict[str, bytes],
    change: Change,
    *,
    before: dict[str, bytes] | None = None,
    checks: list[str] | None = None,
    other: str = "",
) -> list[str]:
    """Complete an item by files, of which some may be gone by then, and change what is there.

    Args:
        before: What there was when the phase began.
        other: A file that completed another item.
    """
    job = Standing.begin(path)
    for name, data in (before or {}).items():
        job.write(name, data)
    open_checkpoints(job.root, "job").tag(phase_tag(2), job.commit)
    for name, data in made.items():
        job.put(lambda files, n=name, d=data: files.write(n, d) if d else files.delete(n))  # type: ignore[misc]
    evidence = Evidence(
        kind="work", phase=2, calls=1, files=list(made), checks=checks or [], commit=job.commit
    )
    item = ScopeItem(id="B1", text=text, status="completed", evidence=evidence)
    job.put(change)
    snapshot = job.open()
    if other:
        seen = Evidence(kind="work", phase=2, calls=1, files=[other], commit=job.commit)
        snapshot.state.scope = [ScopeItem(id="B2", text="Else.", status="completed", evidence=seen)]
    return KeptWork(snapshot).problems(item)


DECOY = {"pages/tea.md": LONG, "pages/index.md": b"See the other pages.\n"}
CLEANING = b"# Removing scale\n\nCook vinegar in the pot, wait, and rinse it three times.\n"
GERMAN = (
    "# Tee\n\nGrüner Tee braucht Wasser von 80 Grad.\nIhn zwei Minuten ziehen lassen.\n"
    "Langsam eingießen, die Tasse vorwärmen, Blätter nie zweimal kochen, mit Honig reichen.\n"
).encode()


def without(*paths: str) -> Change:
    def change(files: Files) -> Files:
        for path in paths:
            files = files.delete(path)
        return files

    return change


@pytest.mark.parametrize(
    ("text", "made", "change", "more"),
    [
        ("Write a page on tea.", DECOY, without("pages/tea.md"), {}),
        ("Write the page on tea for all.", DECOY, without("pages/tea.md"), {}),
        ("Write a page on tea.", {"pages/tea.md": TEA}, without("pages/tea.md"),
         {"checks": ["python3 -c 'print(1)': exit code 0"]}),
        ("Write a page on tea.", {"pages/tea.md": TEA}, without("pages/tea.md"),
         {"checks": ["wc -w pages/tea.md: exit code 0"]}),
        ("Write a page on how to remove scale.", {"scale.md": CLEANING}, without("scale.md"), {}),
        ("Write up cleaning and moving.", {"scale.md": CLEANING}, without("scale.md"), {}),
        ("Describe how a cup is cleaned.", {"scale.md": CLEANING}, without("scale.md"), {}),
        ("Beschreibe, wie man Kalk entfernt.", {"kalk.md": CLEANING}, without("kalk.md"), {}),
        ("Write a page on pots.", {"tmp/x": b""}, without(), {"before": {"tmp/x": b"x y z\n"}}),
        ("Write a page on tea.", {"pages/tea.md": TEA},
         lambda f: f.write("pages/pot.md", POT * 2).delete("pages/tea.md"),
         {"other": "pages/pot.md"}),
        ("Write a page on tea.", {"tea.md": LONG},
         lambda f: f.write("tea.pdf", b"%PDF-1.4\n\0").delete("tea.md"), {}),
        ("Write a page on tea.", {"tea.md": LONG},
         lambda f: f.write("tee.md", b"# Tee\n").delete("tea.md"), {}),
    ],
)  # fmt: skip
def test_a_decoy_a_command_and_a_topic_hide_no_loss(
    tmp_path: Path, text: str, made: dict[str, bytes], change: Change, more: dict[str, Any]
) -> None:
    assert amiss(tmp_path, text, made, change, **more)


@pytest.mark.parametrize(
    ("text", "made", "change", "more"),
    [
        ("Write a page on tea.", {**DECOY, "gen.py": b"print('tea')\n"}, without("gen.py"), {}),
        ("Write a page on tea.", {"tea.md": TEA, "raw.csv": b"tea, page\n" * 99},
         without("raw.csv"), {}),
        ("Write a page on tea.", {"tea.md": LONG},
         lambda f: f.write("tee.md", GERMAN).delete("tea.md"), {}),
        ("Write a page on tea.", {"tea.md": LONG},
         lambda f: f.write("de/tea.md", GERMAN).delete("tea.md"), {"other": "de/tea.md"}),
        ("Write a page on tea.", {"tea.md": LONG},
         lambda f: f.write("out/tea.pdf", b"%PDF-1.4\n\0" + b"x" * 900).delete("tea.md"), {}),
        ("Write a page on tea.", {"tea.md": LONG},
         lambda f: f.write("book.html", b"<p>" + LONG + b"</p>").delete("tea.md"), {}),
        ("Migrate the data with a script.", {"migrate.py": b"# data\n"}, without("migrate.py"),
         {"checks": ["cd tools && python3 ../migrate.py --all: exit code 0"]}),
        ("Get rid of the page on tea.", {"tea.md": b""}, without(), {"before": {"tea.md": TEA}}),
        ("Retire tmp.", {"tmp/x": b""}, without(), {"before": {"tmp/x": b"x y z\n"}}),
        ("Please clean up at the end.", {"x.py": b""}, without(), {"before": {"x.py": b"1\n"}}),
        ("Publish it.", {"dist/a": b"x y z\n"}, without("dist"), {"checks": ["make: exit code 0"]}),
        ("Alte Dateien müssen gelöscht werden.", {"x": b""}, without(), {"before": {"x": b"1\n"}}),
    ],
)  # fmt: skip
def test_tools_drafts_and_deletions_are_no_loss(
    tmp_path: Path, text: str, made: dict[str, bytes], change: Change, more: dict[str, Any]
) -> None:
    assert amiss(tmp_path, text, made, change, **more) == []
