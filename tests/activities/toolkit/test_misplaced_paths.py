"""A new file beside the repository is refused where one inside it was surely meant."""

from pathlib import Path

import pytest

from protocol.repository_link import RepositoryLink, RepositoryOrigin
from protocol.repository_start import RepositoryStart
from protocol.todo_list import DoneWhen
from tests.activities.standing import Standing

COMMIT = "0" * 40


@pytest.fixture
def job(tmp_path: Path) -> Standing:
    return _with_repository(Standing.begin(tmp_path))


def _with_repository(job: Standing, subfolder: str = "") -> Standing:
    for path in ("README.md", "src/a.py", "notes/n.md", "packages/one/src/a.py"):
        job.write(f"repo/{path}", "x\n")
    snapshot = job.open()
    start = RepositoryStart(folder="/r", subfolder=subfolder)
    origin = RepositoryOrigin(source="/r", start=start, commit=COMMIT, file_count=4)
    tree = snapshot.files.subfolder("repo").id
    snapshot.repository = RepositoryLink(owner="job", tree=tree, commit=COMMIT, origin=origin)
    job.commit = snapshot.save("repository", 1)
    return job


def test_the_refusal_names_the_path_inside(job: Standing) -> None:
    job.call("write_file", path="notes/b.py", content="x\n")
    for refused in (
        job.call("write_file", path="src/b.py", content="x\n"),
        job.call("append_file", path="./src//b.py", content="x\n"),
        job.call("move_file", old="notes/b.py", new="src/b.py"),
    ):
        assert refused == (
            "Error: 'src/b.py' is outside 'repo', which has 'repo/src'. The path inside is "
            "'repo/src/b.py'; what is no part of 'repo' goes under notes/ or output/."
        )
    assert "'repo/README.md'" in job.call("write_file", path="README.md", content="x\n")
    assert job.open().files.entry("src") is None


def test_a_new_folder_beside_the_repository_is_named(job: Standing) -> None:
    assert job.call("write_file", path="docs/a.md", content="x") == (
        "Wrote 1 characters to docs/a.md. 'docs' is new, and beside 'repo', not in it."
    )
    assert job.call("write_file", path="docs/b.md", content="x").endswith("docs/b.md.")
    assert job.call("write_file", path="list.md", content="x").endswith("list.md.")


def test_the_folder_of_the_work_comes_first(tmp_path: Path) -> None:
    job = _with_repository(Standing.begin(tmp_path), "packages/one")
    refused = job.call("write_file", path="src/b.py", content="x\n")
    assert "The path inside is 'repo/packages/one/src/b.py'" in refused
    refused = job.call("write_file", path="packages/one/b.py", content="x\n")
    assert "The path inside is 'repo/packages/one/b.py'" in refused


def test_what_was_hardly_meant_inside_is_written(job: Standing) -> None:
    paths = ["notes/b.md", "output/b.md", "plan.md", "data/b.csv", "repo/src/b.py"]
    job.write("src/made-by-a-command.py", "x\n")
    for path in (*paths, "src/b.py"):
        assert job.call("write_file", path=path, content="x\n").startswith("Wrote "), path


def test_a_path_that_a_todo_names_is_written(job: Standing) -> None:
    snapshot = job.open()
    snapshot.state.phase.todos[0].done_when = DoneWhen(file_exists="packages/list.md")
    job.commit = snapshot.save("todo", 1)
    assert job.call("write_file", path="packages/list.md", content="x\n").startswith("Wrote ")


def test_a_job_without_a_repository_names_its_folders_freely(tmp_path: Path) -> None:
    job = Standing.begin(tmp_path)
    job.write("repo/src/a.py", "x\n")
    assert job.call("write_file", path="src/b.py", content="x\n").startswith("Wrote ")
