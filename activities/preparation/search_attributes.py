"""Search attributes that the server has registered."""

from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import ListSearchAttributesRequest
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from protocol.search_attribute_names import NAMES


async def registered_search_attributes(client: Client) -> list[str]:
    """Return our search attributes that the server lets us set; others would fail the task."""
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
