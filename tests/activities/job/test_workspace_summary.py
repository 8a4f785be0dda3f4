"""`workspace_summary.md`: every file with what it is for, from the checkpoint alone."""

from pathlib import Path

from activities.job.workspace_summary import MAX_FILES, with_workspace_summary, workspace_summary
from activities.phases.orientation import orientation_messages
from activities.text.tokens import clip_to_tokens, count_tokens
from protocol.job_state import DeferredWrite, Remark
from protocol.scope_ledger import ScopeItem
from tests.activities.standing import Standing


def summary(job: Standing) -> str:
    snapshot = job.open()
    return workspace_summary(snapshot.files, snapshot.changes, snapshot.state)


def test_files_with_purpose_size_and_step(tmp_path: Path) -> None:
    job = Standing.begin(tmp_path)
    job.call("write_file", path="notes/a.md", content="intro\n\n# About tea\n")
    job.call("write_file", path="b.txt", content="\n---\nfirst words " + "x" * 200)
    job.write("c.bin", b"\x00\x01")
    job.write("d.pdf.txt", "[page 1; section Scope]\n\nRecords are kept.\n")
    job.put(lambda files: files.link("door", "notes"))
    text = summary(job)
    for line in (
        "- notes/a.md · 19 bytes · step 1 · About tea",
        "- c.bin · 2 bytes · step 0 · binary",
        "- d.pdf.txt · 43 bytes · step 0 · Records are kept.",
        "- output/ (empty)",
        "- door · 5 bytes · step 0 · link",
    ):
        assert line in text.splitlines()
    assert "first words xxx" in text
    assert max(map(len, text.splitlines())) < 200
    assert summary(job) == text


def test_a_file_that_a_rewind_puts_back_where_a_folder_was(tmp_path: Path) -> None:
    job = Standing.begin(tmp_path)
    job.call("write_file", path="tea", content="green")
    before = job.open().files
    job.call("delete_file", path="tea")
    job.call("write_file", path="tea/black.md", content="black")
    # The new phase's summary is made before the rewind's changes are noted.
    job.put(lambda files: before)
    assert "- tea · 5 bytes · step 0 · green" in summary(job).splitlines()


def test_progress_and_scope(tmp_path: Path) -> None:
    job = Standing.begin(tmp_path)
    job.call("todo_complete", notes="found\nit")
    snapshot = job.open()
    snapshot.state.scope = [
        ScopeItem(id="S1", text="tea"),
        ScopeItem(id="S2", text="w", status="dropped"),
    ]
    text = workspace_summary(snapshot.files, snapshot.changes, snapshot.state)
    for words in (
        "Progress: 1/3",
        "Step 1. Notes: found it",
        "## Open",
        "- Step 2.",
        "0 of 2 items completed; dropped 1",
    ):
        assert words in text
    assert "- open: S1 tea" in text
    # After a rewind nobody should resume the old list.
    snapshot = job.open()
    snapshot.state.issue = "the tea was cold"
    snapshot.state.deferred_writes = [DeferredWrite(kind="node", key="k", at=1, about="R1")]
    snapshot.state.remarks = [Remark(text="Use metric units.", by="ada", phase=1)]
    text = workspace_summary(snapshot.files, snapshot.changes, snapshot.state, given_up=True)
    assert text.endswith(
        "## Blocking\n\n- the last attempt failed: the tea was cold\n"
        "- a write waits for its store: R1\n\n"
        "## Notes\n\n- From ada in phase 1: Use metric units.\n"
    )
    assert "## Open" not in text
    assert "## Given up with it\n\n- Step 2." in text


def test_many_files_are_counted(tmp_path: Path) -> None:
    job = Standing.begin(tmp_path)
    snapshot = job.open()
    for number in range(MAX_FILES + 20):
        snapshot.files = snapshot.files.write(f"many/{number:04d}", b"")
    text = workspace_summary(snapshot.files, snapshot.changes, snapshot.state)
    assert "- … and 24 more" in text


def test_many_files_alike_do_not_push_out_what_is_open(tmp_path: Path) -> None:
    job = Standing.begin(tmp_path)
    snapshot = job.open()
    for number in range(1, 61):
        for name in ("draft.md", "research.md", "citations.md", "final.json"):
            path = f"requirements/req_{number:03d}/{name}"
            snapshot.files = snapshot.files.write(path, f"# REQ-{number:03d}, {name}\n\nx".encode())
    snapshot.files = with_workspace_summary(snapshot)
    assert snapshot.read_text("workspace_summary.md").count("- requirements/") == 240
    first = orientation_messages(snapshot, "")[1]["content"]
    assert first.count("- requirements/") == 4
    assert (
        "- requirements/req_*/draft.md · 60 files, each in workspace_summary.md; the last: "
        "requirements/req_060/draft.md · 22 bytes · step 0 · REQ-060, draft.md\n"
    ) in first
    assert "- instructions.md · " in first
    # The archive page says what was done, and the list below it what is left to do.
    assert "## Accomplished in this phase" not in first
    assert "TRUNCATED" not in first


def test_huge_files_fit_into_the_first_messages(tmp_path: Path) -> None:
    job = Standing.begin(tmp_path)
    for path in ("workspace.md", "plan.md"):
        job.write(path, "tea 🫖 " * 300_000)
    system, first = orientation_messages(job.open(), "")
    assert count_tokens(system["content"]) < 6000
    assert count_tokens(first["content"]) < 16_000
    assert 'read_file("plan.md") shows all' in first["content"]


def test_a_clipped_text_ends_with_a_whole_character() -> None:
    for limit in range(1, 12):
        head = clip_to_tokens("🜁" * 10, limit, "more").partition("\n[TRUNCATED")[0]
        assert head == "🜁" * len(head)
    assert clip_to_tokens("tea", 10, "more") == "tea"
