"""What the model is told of a server's error."""

import pytest

from activities.mcp.call_errors import explain_server_error
from config.schema.mcp_servers import DeclaredTool

PRICE = DeclaredTool(
    name="shop__get_price", server="shop", tool="get_price", description="", parameters={},
    effect="reads",
)  # fmt: skip


@pytest.mark.parametrize(
    "error",
    [
        "Unknown tool: get_price",
        "MCP error -32602: Tool get_price not found",
        "No such tool 'get_price'.",
        "The tool 'get_price' does not exist",
    ],
)
def test_a_tool_that_the_server_no_longer_has_is_explained(error: str) -> None:
    told = explain_server_error(PRICE, error)
    assert told.startswith(f"{error.rstrip('.')}. shop had this tool when the job began")
    assert told.endswith("say in the files what cannot be done.")


@pytest.mark.parametrize(
    "error", ["get_price: item not found", "Unknown tool: hammer", "out of paper", "No such tool"]
)
def test_other_errors_stay_as_they_are(error: str) -> None:
    assert explain_server_error(PRICE, error) == error
