"""A job that began from a folder goes on at a host that never saw the folder."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from temporalio.client import Client

from activities.checkpoints import Root
from tests.activities.repository.origins import WorkTree, bare_clone, git
from tests.buckets import empty_remote
from tests.workflows.serving import serving
from tests.workflows.short import job
from tests.workflows.test_hosts import another
from tests.workflows.test_publish import MENDED, model


@pytest.mark.parametrize("kind", ["git", "s3"])
async def test_the_branch_of_a_folder_is_made_on_a_host_that_never_saw_it(
    kind: str, temporal: Client, root: Root, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = WorkTree.create(tmp_path / "tea", _gitignore="*.log\n", tea_py="def brew():\n    ...\n")
    tree.commit("Two", {"pot.txt": "a pot\n"})
    clone = bare_clone(tree, tmp_path / "clone.git")
    other = Root.open(tmp_path / "other", create=True)
    queue = f"folder-{kind}"
    with empty_remote(kind, tmp_path, monkeypatch) as address:
        start = job(repository={"folder": str(tree.path)}, set={"workspace.remote": address})
        async with serving(temporal, root, model(), queue=queue) as jobs:
            handle = await jobs.start(start)
            await handle.signal("pause", {})
            status = await jobs.until(handle, waiting_for=lambda reason: reason == "paused")
            await jobs.until(handle, remote=lambda remote: remote and not remote["behind"])
        shutil.rmtree(root.path)
        shutil.rmtree(tree.path)
        async with serving(await another(temporal), other, model(), queue=queue) as jobs:
            await handle.signal("resume", {})
            result = await jobs.result(handle)
            folder = jobs.folder(handle)
    assert result["status"] == "completed", status["notices"]
    # The branch goes on from the folder's own history.
    branch = result["branch"]
    bundle = next(folder / name for name in branch["files"] if name.endswith(".bundle"))
    git(clone, "fetch", "-q", str(bundle), branch["branch"])
    assert git(clone, "show", "FETCH_HEAD:tea.py") == MENDED
    assert git(clone, "log", "--format=%s", "FETCH_HEAD").splitlines()[-2:] == ["Two", "One"]
