"""The runs of a handoff's checks on trees of a project's repository, and what is kept of them.

A result that passes is kept for its handoff and tree. Of one that does not, the tests that failed
are kept by name, with the tree: they have to be there the next time.
"""

import hashlib
import json
from collections.abc import Sequence
from contextlib import suppress

from activities.checkpoints import FilesError, Root
from activities.job.result_cache import ResultCache
from activities.job.snapshot import Snapshot
from activities.projects.lost_tests import Baseline
from activities.projects.project_remote import open_linked_remote_project
from activities.projects.proof_run import ProofResult, ProofRunner
from protocol.handoffs import Handoff

MOST_RUNS = 20
"""How many of the newest refused runs are kept."""


def prove_tree(
    root: Root,
    job: str,
    snapshot: Snapshot,
    tree: str,
    unresolved: Sequence[str] = (),
    *,
    is_own: bool = True,
) -> ProofResult:
    """Run the checks of a job's handoff on a tree.

    Args:
        unresolved: What the job lists as unresolved; a test that an entry names may be gone.
        is_own: Whether the tree has the job's own tests, and not only those handed to it.
    """
    link = snapshot.link
    if link is None or not link.handoff.tests:
        return ProofResult()
    handoff, config = link.handoff, snapshot.config
    repository = open_linked_remote_project(root, link)
    cache, store = ResultCache(repository.path), snapshot.files.store
    refused = _refused_runs(cache, handoff) if is_own else []
    key = _proof_key(snapshot, handoff, tree, unresolved, refused)
    if (data := cache.find(key)) is not None:
        with suppress(ValueError):
            return ProofResult.model_validate_json(data)
    # What a coder handed over was tried at its own gate; a tester answers for its own tests.
    handed = repository.files_of(store, repository.tree_id(handoff.inputs.commit))
    base = "" if handoff.report else handoff.inputs.base
    before = repository.files_of(store, repository.tree_id(base)) if base else handed
    proving = ProofRunner(
        *(root, job, config.shell, link.folder, cache),
        earlier=[handed] if handed.id != before.id else [],
        refused=[
            Baseline(repository.files_of(store, earlier), names, command)
            for earlier, command, names in refused
        ],
        sealed=tuple(config.sealed),
    )
    try:
        files = repository.files_of(store, tree)
        result = proving.run_checks(files, handoff, before, unresolved)
    except FilesError as problem:
        # A file that an agent chose is no broken disk.
        return ProofResult(problems=[f"The checks cannot be run: {problem}"])
    for run in result.proofs:
        run.asked_by = handoff.id
        run.phase, run.step = snapshot.state.phase.number, snapshot.state.step
    if not result.problems:
        cache.put(key, result.model_dump_json().encode())
    elif is_own and result.failed:
        refused += [(tree, *each) for each in result.failed.items() if each[1]]
        cache.put(_refused_key(handoff), json.dumps(refused[-MOST_RUNS:]).encode())
    return result


def _refused_runs(cache: ResultCache, handoff: Handoff) -> list[tuple[str, str, list[str]]]:
    """Return the tree, the command and the failed tests of each refused run."""
    refused_runs = json.loads(cache.find(_refused_key(handoff)) or b"[]")
    return [(tree, command, names) for tree, command, names in refused_runs]


def _refused_key(handoff: Handoff) -> str:
    # Coders of a feature go on from one another; what a tester wrote, the next one finds.
    of_whom = handoff.id if handoff.report else handoff.id.rpartition("-")[0]
    return f"refused-{hashlib.sha256(of_whom.encode()).hexdigest()}"


def _proof_key(
    snapshot: Snapshot,
    handoff: Handoff,
    tree: str,
    unresolved: Sequence[str],
    refused: object,
) -> str:
    handoff_json = handoff.model_dump_json(include={"id", "tests", "accepted", "coverage"})
    shell = snapshot.config.shell.model_dump_json()
    shell += "".join(each.model_dump_json() for each in snapshot.config.sealed)
    content = "\n".join((handoff_json, tree, shell, *unresolved, repr(refused)))
    return f"proof-{hashlib.sha256(content.encode()).hexdigest()}"
