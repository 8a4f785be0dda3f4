"""What a start asks of Temporal: an answer is an answer, an outage is none."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from temporalio.api.enums.v1 import IndexedValueType
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from activities.checkpoints import Root, open_checkpoints
from activities.checkpoints.repository_owner import OwnerMark, record_owner
from activities.preparation.fork_origin import unforkable_job_error
from activities.preparation.search_attributes import registered_search_attributes
from protocol.search_attribute_names import NAMES, PHASE


def failing(status: RPCStatusCode) -> Client:
    """Return a client whose every call fails this way."""

    async def fail(*_: Any) -> Any:
        raise RPCError(status.name, status, b"")

    return cast(
        "Client",
        SimpleNamespace(
            namespace="default",
            operator_service=SimpleNamespace(list_search_attributes=fail),
            get_workflow_handle=lambda _: SimpleNamespace(describe=fail),
        ),
    )


@pytest.mark.parametrize("status", [RPCStatusCode.PERMISSION_DENIED, RPCStatusCode.UNIMPLEMENTED])
async def test_a_server_that_does_not_tell_its_search_attributes_has_none_for_us(
    status: RPCStatusCode,
) -> None:
    assert await registered_search_attributes(failing(status)) == []


async def test_a_server_that_is_away_is_asked_for_its_search_attributes_again() -> None:
    with pytest.raises(RPCError):
        await registered_search_attributes(failing(RPCStatusCode.UNAVAILABLE))


async def test_an_attribute_of_another_type_is_none_for_us() -> None:
    """Setting it would fail the workflow's task forever."""
    types = dict.fromkeys(NAMES, IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD)
    types[PHASE] = IndexedValueType.INDEXED_VALUE_TYPE_INT

    async def told(_: Any) -> Any:
        return SimpleNamespace(custom_attributes=types)

    operator = SimpleNamespace(list_search_attributes=told)
    client = cast("Client", SimpleNamespace(namespace="default", operator_service=operator))
    assert await registered_search_attributes(client) == [name for name in NAMES if name != PHASE]


async def test_a_job_is_missing_only_if_the_server_says_so(tmp_path: Path) -> None:
    root = Root.open(tmp_path / "root", create=True)
    with pytest.raises(RPCError):
        await unforkable_job_error(failing(RPCStatusCode.UNAVAILABLE), root, "nobody")
    message = str(await unforkable_job_error(failing(RPCStatusCode.NOT_FOUND), root, "nobody"))
    assert "there is no job 'nobody'" in message


async def test_the_jobs_there_are_carry_their_own_ids(tmp_path: Path) -> None:
    root = Root.open(tmp_path / "root", create=True)
    checkpoints_path = open_checkpoints(root, "tea/green", create=True).path
    record_owner(checkpoints_path, OwnerMark(chain="c", job="tea/green"))
    open_checkpoints(root, "unmarked", create=True)
    message = str(await unforkable_job_error(failing(RPCStatusCode.NOT_FOUND), root, "nobody"))
    assert "tea/green" in message
    assert "unmarked" in message
