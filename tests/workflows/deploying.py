"""Worker versioning, as a deployment uses it."""

import asyncio

from temporalio.api.workflowservice.v1 import SetWorkerDeploymentCurrentVersionRequest
from temporalio.client import Client
from temporalio.service import RPCError


async def make_current(client: Client, name: str, build: str) -> None:
    """Give new jobs to these workers, as soon as one of them is known to the server."""
    request = SetWorkerDeploymentCurrentVersionRequest(
        namespace=client.namespace, deployment_name=name, build_id=build
    )
    async with asyncio.timeout(30):
        while True:
            try:
                await client.workflow_service.set_worker_deployment_current_version(request)
            except RPCError:
                await asyncio.sleep(0.2)
            else:
                return
