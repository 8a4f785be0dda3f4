"""Publishing a job's work: commits, a patch and a bundle, or a branch that is pushed."""

from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client, WorkflowFailureError

from activities.checkpoints import Root
from rehearsal.request_view import RequestView
from tests.activities.source_repository.origins import WorkTree, bare_clone, git
from tests.activities.wires import PASSWORD, USER, Web, web
from tests.workflows.serving import Jobs, serving
from tests.workflows.short import DONE, MARKED, TEA, Call, Short, close, hand_over, job

MENDED = "def brew():\n    return 'strong tea'\n"
SUMMARY = "The tea was too weak. It is strong now."
WORK = [
    ("write_file", {"path": "repo/tea.py", "content": MENDED}),
    ("write_file", {"path": "repo/cups/one.txt", "content": "a cup\n"}),
    ("write_file", {"path": "repo/brewing.log", "content": "left by a run\n"}),
    ("write_file", {"path": "output/tea.md", "content": "tea"}),
    DONE,
]


def model(**close_details: Any) -> Short:
    return Short(
        {
            "Work": lambda view: WORK,
            "Mark": lambda view: [
                ("write_file", {"path": "plan.md", "content": PLAN}),
                close("output/tea.md", summary=SUMMARY, **close_details),
            ],
        }
    )


PLAN = "# Plan\n\n## Phase 1: Tea\n- [x] Boil\n- [x] Brew\n"


@pytest.fixture
def tree(tmp_path: Path) -> WorkTree:
    return WorkTree.create(tmp_path / "tea", _gitignore="*.log\n", tea_py="def brew():\n    ...\n")


@pytest.fixture
def remote(tree: WorkTree, tmp_path: Path) -> Path:
    return bare_clone(tree, tmp_path / "remote.git")


def publishing(remote: Path, **details: Any) -> dict[str, Any]:
    url = f"file://{remote}"
    return job(repository={"url": url}, publish={"branch": "stronger", **details})


def tip(remote: Path, branch: str = "stronger") -> str:
    return git(remote, "for-each-ref", "--format=%(objectname)", f"refs/heads/{branch}").strip()


async def test_without_publish_a_patch_and_a_bundle_apply_to_a_clone(
    temporal: Client, root: Root, tree: WorkTree, tmp_path: Path
) -> None:
    async with serving(temporal, root, model()) as jobs:
        handle = await jobs.start(job(repository={"url": tree.url}))
        result = await jobs.result(handle)
        folder = jobs.folder(handle)
    branch = result["branch"]
    assert branch["base"] == tree.head
    assert branch["files"] == ["output/changes.patch", "output/branch.bundle"]
    git(tmp_path, "clone", "-q", tree.url, "patched")
    git(tmp_path / "patched", "am", str(folder / "output" / "changes.patch"))
    git(tmp_path, "clone", "-q", tree.url, "pulled")
    git(
        tmp_path / "pulled",
        "pull",
        "-q",
        str(folder / "output" / "branch.bundle"),
        branch["branch"],
    )
    assert git(tmp_path / "pulled", "rev-parse", "HEAD").strip() == branch["commit"]
    for clone in ("patched", "pulled"):
        assert (tmp_path / clone / "tea.py").read_text() == MENDED
        assert (tmp_path / clone / "cups" / "one.txt").read_text() == "a cup\n"
        assert not (tmp_path / clone / "brewing.log").exists()
        # What was done, in the agent's own words, and nothing of its instructions.
        message = git(tmp_path / clone, "log", "-1", "--format=%B")
        assert message.strip() == (f"The tea was too weak\n\n{SUMMARY}\n\nJob: {handle.id}")


async def test_a_correction_while_planning_is_in_the_commit_of_the_work_after_it(
    temporal: Client, root: Root, remote: Path
) -> None:
    def mark(view: RequestView) -> list[Call]:
        if view.number > 3:
            return [MARKED, close("output/tea.md", summary=SUMMARY)]
        return [("write_file", {"path": "repo/cups/two.txt", "content": "a cup\n"}), hand_over({})]

    def work(view: RequestView) -> list[Call]:
        name = f"repo/pot-{view.number}.txt"
        return [("write_file", {"path": name, "content": "a pot\n"}), TEA, DONE]

    async with serving(temporal, root, Short({"Work": work, "Mark": mark})) as jobs:
        await jobs.result(await jobs.start(publishing(remote)))
    shown = git(remote, "log", "--name-only", "--format=%s", "stronger~2..stronger").split("\n")
    assert [line for line in shown if line] == [
        "Tea",
        *("cups/two.txt", "pot-4.txt"),
        "Tea",
        "pot-2.txt",
    ]


async def test_the_bundle_of_a_plain_folder_can_be_cloned(
    temporal: Client, root: Root, tmp_path: Path
) -> None:
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain" / "tea.py").write_text("def brew():\n    ...\n")
    async with serving(temporal, root, model()) as jobs:
        handle = await jobs.start(job(repository={"folder": str(tmp_path / "plain")}))
        branch = (await jobs.result(handle))["branch"]
        bundle = jobs.folder(handle) / "output" / "branch.bundle"
    git(tmp_path, "clone", "-q", str(bundle), "cloned")
    cloned = tmp_path / "cloned"
    assert git(cloned, "rev-parse", "HEAD").strip() == branch["commit"]
    assert git(cloned, "rev-parse", "--abbrev-ref", "HEAD").strip() == branch["branch"]
    assert git(cloned, "rev-list", "--count", "HEAD").strip() == "2"
    assert (cloned / "tea.py").read_text() == MENDED
    git(cloned, "fsck", "--strict")


async def test_the_bundle_of_uncommitted_changes_is_pulled_where_they_are_not_committed(
    temporal: Client, root: Root, tree: WorkTree
) -> None:
    (tree.path / "notes.md").write_text("not committed yet\n")
    async with serving(temporal, root, model()) as jobs:
        handle = await jobs.start(job(repository={"folder": str(tree.path)}))
        branch = (await jobs.result(handle))["branch"]
        bundle = jobs.folder(handle) / "output" / "branch.bundle"
    assert branch["base"] != tree.head
    tree.git("fetch", "-q", str(bundle), f"{branch['branch']}:mended")
    assert tree.git("rev-parse", "mended~2").strip() == tree.head
    assert tree.git("show", "mended:tea.py") == MENDED
    assert tree.git("show", "mended~1:notes.md") == "not committed yet\n"


async def test_work_that_changes_nothing_is_no_branch(
    temporal: Client, root: Root, tree: WorkTree
) -> None:
    async with serving(temporal, root, Short()) as jobs:
        result = await jobs.result(await jobs.start(job(repository={"url": tree.url})))
    assert result["branch"]["commit"] == ""
    assert result["branch"]["files"] == []


async def test_a_branch_is_pushed_before_the_job_ends(
    temporal: Client, root: Root, tree: WorkTree, remote: Path
) -> None:
    async with serving(temporal, root, model()) as jobs:
        result = await jobs.result(await jobs.start(publishing(remote)))
    assert result["branch"]["published"] == f"file://{remote}"
    assert result["branch"]["files"] == []
    assert tip(remote) == result["branch"]["commit"]
    assert git(remote, "rev-parse", "stronger^").strip() == tree.head


async def test_a_branch_that_moved_parks_the_job_and_is_never_forced(
    temporal: Client, root: Root, tree: WorkTree, remote: Path
) -> None:
    tree.git("switch", "-q", "--orphan", "stronger")
    theirs = tree.commit("Another", {"other.md": "x\n"})
    tree.git("push", "-q", str(remote), "stronger")
    async with serving(temporal, root, model()) as jobs:
        handle = await jobs.start(publishing(remote))
        status = await jobs.until(handle, waiting_for="dependency")
        assert f"stands at {theirs[:12]}" in status["waiting"]["message"]
        assert "Nothing was pushed" in status["waiting"]["message"]
        assert "Rename or delete that branch" in status["waiting"]["remedy"]
        assert tip(remote) == theirs
        git(remote, "branch", "-m", "stronger", "other")
        await handle.signal("resume", {})
        result = await jobs.result(handle)
    assert tip(remote) == result["branch"]["commit"]


async def await_approval(jobs: Jobs, remote: Path) -> Any:
    handle = await jobs.start(publishing(remote, approve=True))
    status = await jobs.until(handle, waiting_for="approval")
    assert "would be pushed as branch stronger to file://" in status["waiting"]["message"]
    assert tip(remote) == ""
    return handle


async def test_with_approval_nothing_is_pushed_before_it(
    temporal: Client, root: Root, remote: Path
) -> None:
    async with serving(temporal, root, model()) as jobs:
        handle = await await_approval(jobs, remote)
        await handle.signal("approve", {})
        result = await jobs.result(handle)
    assert tip(remote) == result["branch"]["commit"]


async def test_who_approves_the_call_has_not_approved_the_push(
    temporal: Client, root: Root, remote: Path
) -> None:
    async with serving(temporal, root, model()) as jobs:
        start = publishing(remote, approve=True)
        start["set"] = {**start["set"], "approve": ["job_complete"]}
        handle = await jobs.start(start)
        await jobs.until(handle, approval=lambda asked: asked and asked["guard"] == "approve")
        await handle.signal("approve", {})
        await jobs.until(handle, approval=lambda asked: asked and asked["guard"] == "publish")
        assert tip(remote) == ""
        await handle.signal("approve", {})
        result = await jobs.result(handle)
    assert tip(remote) == result["branch"]["commit"]


async def test_nobody_is_asked_to_approve_where_nothing_was_changed(
    temporal: Client, root: Root, remote: Path
) -> None:
    async with serving(temporal, root, Short()) as jobs:
        handle = await jobs.start(publishing(remote, approve=True))
        result = await jobs.result(handle)
        status = await handle.query("status")
    assert status["approvals"] == []
    assert (result["branch"]["commit"], result["branch"]["published"]) == ("", "")
    assert tip(remote) == ""


async def test_a_person_who_denies_sends_the_work_back(
    temporal: Client, root: Root, remote: Path
) -> None:
    async with serving(temporal, root, model()) as jobs:
        handle = await await_approval(jobs, remote)
        await handle.signal("deny", {"reason": "Too strong."})
        status = await jobs.until(handle, waiting_for="approval", refusals=lambda n: n >= 1)
        assert tip(remote) == ""
        await handle.signal("cancel", {"reason": "enough"})
        with pytest.raises(WorkflowFailureError):
            await jobs.result(handle)
        patch = (jobs.folder(handle) / "output" / "changes.patch").read_text()
    assert status["refusals"] >= 1
    assert f"Subject: [PATCH] Unfinished work of {handle.id}" in patch
    assert tip(remote) == ""


async def test_a_branch_that_a_hook_refuses_goes_under_another_name(
    temporal: Client, root: Root, remote: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEA_ACCESS", PASSWORD)
    git(remote, "config", "http.receivepack", "true")
    hook = remote / "hooks" / "update"
    hook.write_text('#!/bin/sh\n[ "$1" = refs/heads/free ] || { echo "protected" >&2; exit 1; }\n')
    hook.chmod(0o755)
    async with serving(temporal, root, model()) as jobs:
        with web(remote.parent) as served:
            await publish_elsewhere(jobs, served, remote)


async def publish_elsewhere(jobs: Jobs, served: Web, remote: Path) -> None:
    url = f"{served.url.replace('://', f'://{USER}@')}/remote.git"
    repository = {"url": url, "token_variable": "TEA_ACCESS"}
    start = job(repository=repository, publish={"branch": "stronger"})
    handle = await jobs.start(start)
    status = await jobs.until(handle, waiting_for="dependency")
    assert "does not take the branch stronger: [remote rejected]" in status["waiting"]["message"]
    assert "protected" in status["waiting"]["message"]
    assert "--set publish.branch=" in status["waiting"]["remedy"]
    await handle.signal("resume", {"set": {"publish.branch": "-bad"}})
    await jobs.until(handle, notices=lambda lines: any("publish.branch:" in x for x in lines))
    await handle.signal("resume", {"set": {"publish.branch": "free"}})
    result = await jobs.result(handle)
    assert result["status"] == "completed"
    assert tip(remote, "free") == result["branch"]["commit"]


async def test_checked_out_branches_are_not_pushed_and_work_ends_without_a_push(
    temporal: Client, root: Root, tree: WorkTree
) -> None:
    start = job(repository={"url": tree.url}, publish={"branch": "trunk"})
    before = tree.head
    async with serving(temporal, root, model()) as jobs:
        handle = await jobs.start(start)
        status = await jobs.until(handle, waiting_for="dependency")
        assert "currently checked out" in status["waiting"]["message"]
        await handle.signal("resume", {"set": {"publish": None}})
        result = await jobs.result(handle)
    assert (result["status"], tree.head) == ("completed", before)
    assert result["branch"]["published"] == ""
    assert result["branch"]["files"] == ["output/changes.patch", "output/branch.bundle"]
