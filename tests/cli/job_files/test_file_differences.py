"""`diff`, and what `files` shows of files that are not text."""

import base64
import json

import pytest
from temporalio.client import WorkflowFailureError

from activities.checkpoints import Checkpoints, Root, open_checkpoints
from activities.checkpoints.tree_diff import MAX_BYTES
from activities.job.snapshot import Snapshot
from cli.job_files import file_differences
from cli.signals.signal_sending import signal_sender_name
from config.agent_files import load_agent
from protocol.job_state import JobState
from protocol.phase import Phase
from protocol.todo_list import Todo

AT = 1_700_000_000


@pytest.fixture
def grown(engine, workspaces):
    """Return a job with files that changed in every way between the starts of phases 1 and 2, and
    one that came later.
    """
    root = Root.open(workspaces, create=True)
    job = f"grown-{workspaces.parent.name}"
    store = Checkpoints.create(root, job)
    phase = Phase(
        number=1, kind="strategic", purpose="bootstrap", name="Start",
        todos=[Todo(id=1, content="Read")],
    )  # fmt: skip
    snapshot = Snapshot.start(store, load_agent("generalist"), JobState(phase=phase))
    files = snapshot.files.write("notes/a.md", b"one\ntwo\n").write("notes/gone.md", b"old")
    snapshot.files = files.write("picture.png", b"\x89PNG\0\1").write("long.md", b"")
    starts = [snapshot.save("phase 1 begins", AT)]
    files = snapshot.files.write("notes/a.md", b"one\nthree\n").delete("notes/gone.md")
    files = files.write("picture.png", b"\x89PNG\0\2").write("archive/phase_001.md", b"# Phase\n")
    snapshot.files = files.write("long.md", b"line\n" * 1000).make_folder("output")
    starts.append(snapshot.save("phase 2 begins", AT + 1))
    snapshot.files = snapshot.files.write("notes/new.md", b"new")
    newest = snapshot.save("phase 2 · todo 1 · write_file notes/new.md", AT + 2)
    for number, commit in enumerate(starts, 1):
        store.tag(f"phase/{number:04d}", commit)
    store.tag("completed", newest)
    # Left over from a future that Temporal's reset undid.
    store.tag("phase/0003", newest)
    known = [{"phase": number, "id": commit} for number, commit in enumerate(starts, 1)]
    return engine.job(job, set={"checkpoint": newest, "checkpoints": known})


def test_paths_come_with_sizes_and_those_of_the_system_last(grown, starter):
    lines = [line.split() for line in starter("diff", grown, "1", "2", "--stat").out.splitlines()]
    assert lines == [
        ["changed", "0", "→", "5,000", "long.md"],
        ["changed", "8", "→", "10", "notes/a.md"],
        ["removed", "3", "notes/gone.md"],
        ["added", "0", "output/"],
        ["changed", "6", "→", "6", "picture.png"],
        ["added", "8", "archive/phase_001.md"],
    ]
    assert starter("diff", grown, "2", "1", "--stat").out.count("removed") == 2


def test_lines_of_text_are_shown_and_bounded(grown, starter):
    out = starter("diff", grown, "1", "2").out
    assert "--- notes/a.md (phase 1)\n+++ notes/a.md (phase 2)\n" in out
    assert "-two\n+three\n" in out
    assert "-old\n\\ no newline at the end\n" in out
    assert "picture.png: binary" in out
    assert out.count("+line\n") < 500
    assert "more lines; name long.md to see them" in out
    assert "+# Phase" not in out


def test_a_path_narrows_and_shows_all_of_it(grown, starter):
    assert starter("diff", grown, "1", "2", "long.md").out.count("+line\n") == 1000
    assert "notes/gone.md" in starter("diff", grown, "1", "2", "notes").out
    assert "long.md" not in starter("diff", grown, "1", "2", "notes").out
    assert "+# Phase" in starter("diff", grown, "1", "2", "archive/phase_001.md").out
    assert "no 'nothing'" not in starter("diff", grown, "1", "2", "long.md").err
    assert "there is no 'nothing'" in starter("diff", grown, "1", "2", "nothing").error
    assert ".." in starter("diff", grown, "1", "2", "../x").error


def test_now_is_the_newest_checkpoint(grown, starter):
    assert starter("diff", grown, "2", "now", "--stat").out.split() == [
        "added",
        "3",
        "notes/new.md",
    ]
    same = starter("diff", grown, "now", "now")
    assert (same.code, same.out) == (0, "")
    assert "nothing differs" in same.err
    assert "phases: 1, 2" in starter("diff", grown, "1", "3").error


def test_differences_for_programs(grown, starter):
    difference = json.loads(starter("diff", grown, "1", "2", "--json").out)
    assert len(difference["commits"]) == 2
    changes = {change["path"]: change for change in difference["changes"]}
    assert changes["notes/a.md"]["old_bytes"] == 8
    assert "+three" in changes["notes/a.md"]["diff"]
    assert changes["archive/phase_001.md"]["system"] is True
    assert changes["archive/phase_001.md"]["diff"] is None


def test_a_text_too_long_to_compare_is_not_compared(grown, workspaces):
    root = Root.open(workspaces, create=False)
    files = open_checkpoints(root, grown).files("4b825dc642cb6eb9a060e54bf8d69288fbee4904")
    large = files.write("a.md", b"x\n" * MAX_BYTES)
    [one] = file_differences.list_file_differences(files, large, "")
    assert "too large" in file_differences.render_file_difference(
        files, large, one, ("a", "b"), all_lines=True
    )


def test_a_binary_file_for_programs_is_base64(grown, starter):
    file_data = json.loads(starter("files", grown, "picture.png", "--json").out)
    assert base64.b64decode(file_data["base64"]) == b"\x89PNG\0\2"


def test_a_job_that_temporal_has_forgotten_is_read_from_the_store(starter, workspaces):
    root = Root.open(workspaces, create=True)
    store = Checkpoints.create(root, "long-ago")
    phase = Phase(number=1, kind="strategic", purpose="bootstrap", name="Start", todos=[])
    snapshot = Snapshot.start(store, load_agent("generalist"), JobState(phase=phase))
    store.tag("phase/0001", snapshot.save("phase 1 begins", AT))
    snapshot.files = snapshot.files.write("output/a.md", b"made")
    store.tag("completed", snapshot.save("phase 1 · job completed", AT + 1))
    assert starter("files", "long-ago").out.split() == ["4", "output/a.md"]
    assert "output/a.md" in starter("diff", "long-ago", "1", "now").out
    assert len(starter("log", "long-ago").out.splitlines()) == 2


def test_fork_starts_a_job_with_the_plain_object_of_the_contract(engine, grown, starter, tmp_path):
    instructions_file = tmp_path / "told.md"
    instructions_file.write_text("Shorter, please")
    new = f"{grown}-fork"
    ran = starter(
        "fork", grown, "--phase", "2", "--instructions", f"@{instructions_file}",
        "--id", new, "--json", "--set", "model.name=large",
    )  # fmt: skip
    assert json.loads(ran.out)["job_id"] == new
    assert engine.status(new)["input"] == {
        "fork": {"job": grown, "phase": 2},
        "instructions": "Shorter, please",
        "set": {"model.name": "large"},
        "by": signal_sender_name(),
    }
    assert (
        "set: limits.nothing"
        in starter("fork", grown, "--phase", "2", "--set", "limits.nothing=1").error
    )
    assert starter("fork", grown, "--phase", "1").out.startswith("generalist-")
    assert "phases: 1, 2" in starter("fork", grown, "--phase", "3").error
    assert "already running" in starter("fork", grown, "--phase", "1", "--id", new).error


ENDED = {"job": "tea.brew-coder-1", "agent": "coder", "unit": "brew", "status": "accepted"}


def test_a_project_is_not_forked_but_its_jobs(engine, starter):
    engine.job("tea", project=True, jobs=[ENDED])
    message = (
        "tea is a project and cannot be forked; fork one of its jobs, such as tea.brew-coder-1"
    )
    assert starter("fork", "tea", "--phase", "1").error == message
    assert "`starter.py diff tea` shows what was made" in starter("diff", "tea", "1", "now").error
    engine.job("tea-bare", project=True)
    assert "`starter.py show` names them" in starter("fork", "tea-bare", "--phase", "1").error


def test_a_project_that_no_worker_answers_for_is_not_forked_either(engine, starter):
    start = engine.client.start_workflow("Project", {}, id="tea-cold", task_queue="nobody-polls")
    engine.do(start)
    assert "tea-cold is a project" in starter("fork", "tea-cold", "--phase", "1").error


def test_a_job_that_failed_at_its_start_is_not_forked(engine, starter):
    job = engine.job("unmade", "bad start")
    with pytest.raises(WorkflowFailureError):
        engine.do(engine.client.get_workflow_handle(job).result())
    error = starter("fork", job, "--phase", "1").error
    assert "failed before its first checkpoint: agent 'x' is not known" in error


def test_the_id_that_is_made_for_a_fork_is_one(engine, starter):
    job = engine.job("of-an-odd-agent", agent="odd (one)")
    assert "--id odd (one)-" in starter("fork", job, "--phase", "1").error


def test_caches_and_the_branch_as_a_file_come_last_and_by_name(grown, workspaces):
    root = Root.open(workspaces, create=False)
    old = open_checkpoints(root, grown).files("4b825dc642cb6eb9a060e54bf8d69288fbee4904")
    new = old.write("output/changes.patch", b"+x").write("repo/__pycache__/a.pyc", b"x")
    new, caches = new.write("repo/z.py", b"x"), ["**/__pycache__/**"]
    listed = file_differences.list_file_differences(old, new, "", caches)
    files = [each for each in listed if each.change.new and each.change.new.kind == "file"]
    assert [(each.change.path, each.aside) for each in files] == [
        ("repo/z.py", False), ("output/changes.patch", True), ("repo/__pycache__/a.pyc", True),
    ]  # fmt: skip
    [meant] = file_differences.list_file_differences(old, new, "repo/__pycache__", caches)
    assert not meant.aside
