"""Opened checkpoints: those of a later version are refused rather than read in part."""

from pathlib import Path

import pytest
from pydantic import ValidationError
from temporalio.exceptions import ApplicationError

from activities.checkpoints import Checkpoints, NewerCheckpoint, Root
from activities.job.snapshot import Snapshot
from activities.runtime.failures import typed_failures
from config.agent_files import load_agent
from protocol.job_state import JobState
from protocol.phase import Phase
from tests.activities.standing import environment

PHASE = Phase(number=1, kind="strategic", purpose="bootstrap", name="Start", todos=[])


class LaterState(JobState):
    """The state of a job in a later version."""

    steeped: int = 0


class LaterPhase(Phase):
    """A phase in a later version, in which another kind is known."""

    kind: str = "tea"  # type: ignore[assignment]


def save(path: Path, state: JobState) -> tuple[Checkpoints, str]:
    store = Checkpoints.create(Root.open(path / "root", create=True), "job")
    return store, Snapshot.start(store, load_agent("generalist"), state).save("a step", 1)


def test_a_checkpoint_of_a_later_version_is_refused_with_what_is_not_known(tmp_path):
    store, commit = save(tmp_path, LaterState(phase=PHASE, steeped=3))
    with pytest.raises(NewerCheckpoint, match=r"whose state\.json has .* \(steeped\)"):
        Snapshot.load(store, commit)


def test_values_that_are_not_known_are_no_sign_of_a_later_version(tmp_path):
    store, commit = save(
        tmp_path, JobState(phase=LaterPhase(number=1, purpose="work", name="Tea", todos=[]))
    )
    with pytest.raises(ValidationError, match=r"phase\.kind"):
        Snapshot.load(store, commit)


def test_a_worker_that_is_too_old_says_so_and_leaves_it_to_another(tmp_path):
    store, commit = save(tmp_path, LaterState(phase=PHASE, steeped=3))

    def step() -> None:
        with typed_failures():
            Snapshot.load(store, commit)

    with pytest.raises(ApplicationError, match="This worker is too old: a later version") as raised:
        environment().run(step)
    assert (raised.value.type, raised.value.non_retryable) == ("NewerVersion", False)
