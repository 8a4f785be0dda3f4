"""The tool that shows the model an image."""

import hashlib
from typing import Annotated

from pydantic import Field

from activities.documents.bounded_reader import draw_bounded
from activities.documents.pages import DocumentError
from activities.toolkit.registry import tool
from activities.toolkit.tool_context import ToolContext, ViewedImage
from activities.toolkit.tool_errors import ToolError

MOST_IMAGES = 4
"""Limit for one reply: its images are sent again with each request of the phase."""


@tool("images", effect="reads", local=False, seconds=120)
def view_image(
    context: ToolContext,
    path: Annotated[str, Field(description="PNG, JPEG, WebP, GIF or PDF in the workspace.")],
    page: Annotated[int, Field(ge=1, description="Page of a PDF, from 1.")] = 1,
) -> str:
    """Look at an image, or at a page of a PDF.

    A large one is shown smaller: at most 1,568 pixels wide or high and 1.2 million together.
    Images of MCP servers are in received/. Up to four images can be looked at in one reply.
    """
    if not context.config.model_for(context.state.phase.kind).vision:
        raise ToolError("This model cannot look at images.")
    if len(context.state.images) >= MOST_IMAGES:
        raise ToolError(
            f"At most {MOST_IMAGES} images are shown in one reply. Look at this one in the next."
        )
    data = context.files.read(path)
    try:
        picture = draw_bounded(path, data, page)
    except DocumentError as error:
        raise ToolError(str(error)) from None
    digest = hashlib.sha256(data).hexdigest()[:16]
    pointer = f"{path} ({picture.about}, {len(data):,} bytes, sha256 {digest})"
    shown = ViewedImage(picture.data, picture.mime, pointer, picture.tokens)
    context.images.append(shown)
    return f"{pointer}: shown after the results of this reply."
