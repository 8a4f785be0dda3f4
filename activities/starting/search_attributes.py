"""Which search attributes the server knows."""

from __future__ import annotations

from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import ListSearchAttributesRequest
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from protocol.search_attributes import NAMES


async def registered_attributes(client: Client) -> list[str]:
    """Those of our search attributes that may be set; another would fail the workflow's task.

    None where the server does not tell. Raises RPCError when it cannot be asked.
    """
    try:
        answer = await client.operator_service.list_search_attributes(
            ListSearchAttributesRequest(namespace=client.namespace)
        )
    except RPCError as error:
        if error.status in (RPCStatusCode.PERMISSION_DENIED, RPCStatusCode.UNIMPLEMENTED):
            return []
        raise
    known = answer.custom_attributes
    return [
        name for name in NAMES if known.get(name) == IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD
    ]
