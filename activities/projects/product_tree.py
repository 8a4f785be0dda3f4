"""A job's work as a tree of the project's repository."""

from __future__ import annotations

from activities.checkpoints.volatile_paths import without_volatile
from activities.job.snapshot import Snapshot
from activities.projects.ignored_files import without_ignored
from activities.projects.project_repository import ProjectRepository, Since
from activities.projects.suite_probes import is_test_file
from protocol.handoffs import Handoff
from protocol.project import RESULT
from protocol.project_forms import FORM_SPECS

KEPT_BY_SYSTEM = (RESULT, *(spec.state_file for spec in FORM_SPECS.values()))
"""Files that the system writes beside a project's product; jobs cannot add them to it."""
NOT_PRODUCT = {"output": ("completion.json",)}
"""By product folder: files that every job writes there and that are no part of the product."""


def handoff_product_tree(
    repository: ProjectRepository, snapshot: Snapshot, folder: str, handoff: Handoff
) -> str:
    """Return the tree of a job's work, with the system's files as they were handed over."""
    # Leave out caches of test runs: they would differ after each run and cause conflicts. Keep
    # logs, since a test may read one.
    caches = [pattern for pattern in snapshot.config.shell.volatile if pattern.endswith("/**")]
    before = handoff.inputs.commit
    link, since = snapshot.link, None
    if link and link.tree and snapshot.repository:
        since = Since(before, link.tree)
        files = without_ignored(snapshot.files, folder, link.tree, caches)
    else:
        files = without_volatile(snapshot.files, caches)
    tree = repository.take_from(files, folder, since)
    system_files = {name: repository.read_file(before, name) for name in KEPT_BY_SYSTEM}
    return repository.with_files(tree, system_files | dict.fromkeys(NOT_PRODUCT.get(folder, ())))


def handoff_tree_with_new_tests(
    repository: ProjectRepository, snapshot: Snapshot
) -> tuple[str, list[str]]:
    """Return the handed-over tree with the tester's new tests, and the paths of these tests."""
    assert snapshot.link
    handoff, folder = snapshot.link.handoff, snapshot.link.folder
    tree = handoff_product_tree(repository, snapshot, folder, handoff)
    return repository.with_added(repository.tree_id(handoff.inputs.commit), tree, is_test_file)
