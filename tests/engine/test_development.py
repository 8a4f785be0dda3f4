"""The embedded server: what is set up at the start, and ports that are taken."""

import socket

from temporalio import workflow
from temporalio.api.operatorservice.v1 import ListSearchAttributesRequest
from temporalio.service import GrpcCompression

from engine.connection import connect_client
from engine.development import development_server, find_temporal_binary
from engine.service import build_worker
from protocol.search_attribute_names import NAMES


@workflow.defn(name="Job")
class Echo:
    def __init__(self) -> None:
        self.inbox: list[object] = []

    @workflow.run
    async def run(self, *start: object) -> list[object]:
        await workflow.wait_condition(lambda: len(self.inbox) == 2)
        return [*start, *self.inbox]

    @workflow.signal
    def put(self, *payload: object) -> None:
        self.inbox.append(payload)


def test_the_binary_is_found():
    assert find_temporal_binary().is_file()


async def test_search_attributes_are_registered_and_data_outlives_the_server(tmp_path):
    database = tmp_path / "deep" / "temporal.db"
    async with development_server(ui=False, database=database) as first:
        response = await first.client.operator_service.list_search_attributes(
            ListSearchAttributesRequest(namespace="default")
        )
        assert set(NAMES) <= set(response.custom_attributes)
        await first.client.start_workflow("Job", id="kept", task_queue="longhaul")
    async with development_server(ui=False, database=database) as second:
        again = await connect_client(second.address)
        assert (await again.get_workflow_handle("kept").describe()).workflow_type == "Job"


async def test_what_stays_on_this_machine_is_not_compressed():
    async with development_server(ui=False) as running:
        for client in (running.client, await connect_client(running.address)):
            assert client.service_client.config.grpc_compression is GrpcCompression.NONE


async def test_another_port_is_chosen_when_the_wanted_one_is_taken():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        async with development_server(port=port, ui_port=port) as running:
            assert running.address != f"127.0.0.1:{port}"
            assert running.ui
            assert str(port) not in running.ui


async def test_a_worker_serves_and_drops_no_signal(running):
    client = running.client
    async with build_worker(client, task_queue="q", workflows=[Echo], activities=[]):
        handle = await client.start_workflow("Job", {"a": 1}, id="echo", task_queue="q")
        await handle.signal("put", b"\xff bytes")
        await handle.signal("put", args=[1, 2])
        assert await handle.result() == [
            {"a": 1},
            [{"undecodable": "binary/plain: only JSON is understood"}],
            [1, 2],
        ]
