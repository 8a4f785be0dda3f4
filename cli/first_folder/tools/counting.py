"""Tools that count: an example of a tool of your own.

A tool is a function with @tool. Its signature is the argument schema, the first line of its
docstring is what the model reads. Agents have it once their `tools` names its group or its name. A
worker reads this file when it starts, and runs it with all that the worker itself may do.
docs/writing-a-tool.md says more; `starter.py tools` shows what is offered.
"""

from typing import Annotated

from pydantic import Field

from activities.toolkit import ToolContext, ToolError, tool


# "counting" is the group. A tool "reads", "writes" the workspace, or reaches "outside" it; one that
# reaches outside also needs local=False.
@tool("counting", effect="reads")
def count_words(
    context: ToolContext,
    path: Annotated[str, Field(description="Path of a text file.")],
) -> str:
    """Count the words of a text file."""
    try:
        text = context.files.read(path).decode()
    except UnicodeDecodeError:
        # The message goes to the model and says what to do instead.
        raise ToolError(f"{path} is not a text file; count_words reads text.") from None
    return f"{path} has {len(text.split())} words."
