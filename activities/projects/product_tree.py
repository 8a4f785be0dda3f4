"""A job's work as a tree of the project's repository."""

from collections.abc import Sequence

from activities.checkpoints.volatile_paths import without_volatile
from activities.job.deliverables import is_named_unresolved
from activities.job.snapshot import Snapshot
from activities.projects.ignored_files import without_ignored
from activities.projects.project_repository import ProjectRepository, Since
from activities.projects.tests_by_name import dumped_functions, is_test_file
from protocol.handoffs import Handoff
from protocol.project_start import FORM_SPECS
from protocol.project_units import RESULT

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
) -> tuple[str, list[str], list[str]]:
    """Return the handed-over tree with the tester's new tests, the paths of these tests, and those
    of all else in which its copy differs.
    """
    assert snapshot.link
    handoff, folder = snapshot.link.handoff, snapshot.link.folder
    tree = handoff_product_tree(repository, snapshot, folder, handoff)
    return repository.with_taken(
        repository.tree_id(handoff.inputs.commit),
        tree,
        lambda path, is_new: is_new and is_test_file(path),
    )


def restore_written_tests(
    repository: ProjectRepository, handoff: Handoff, tree: str, unresolved: Sequence[str]
) -> tuple[str, list[str]]:
    """Return a coder's tree with the tests of its tester as they were written, and the paths of
    those that the coder changed; a test that a statement of the coder names may differ.
    """
    commit = handoff.inputs.commit

    def is_restored(path: str, _: bool) -> bool:
        text = (repository.read_file(commit, path) or b"").decode(errors="replace")
        functions = {name.rpartition(".")[2] for name in dumped_functions(text)}
        tests = [name for name in functions if name.startswith("test")]
        ways = [[path], [path.rpartition("/")[2]], *([tests] if tests else [])]
        return path in handoff.inputs.written_tests and not any(
            all(is_named_unresolved(each, each, unresolved) for each in names) for names in ways
        )

    return repository.with_taken(tree, repository.tree_id(commit), is_restored)[:2]
