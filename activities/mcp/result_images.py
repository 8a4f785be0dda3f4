"""Save images in servers' answers as files of the workspace."""

from __future__ import annotations

import binascii
import hashlib
from base64 import b64decode

from mcp.types import CallToolResult, ImageContent, TextContent

from activities.checkpoints import Files

PLACE = "received"
ENDINGS = {
    "image/png": "png",
    "image/jpeg": "jpg",
    "image/webp": "webp",
    "image/gif": "gif",
    "image/svg+xml": "svg",
}


def take_result_images(
    result: CallToolResult, limit: int
) -> tuple[CallToolResult, dict[str, bytes]]:
    """Return the result with a path in place of each image, and the files to write.

    Names are derived from content, so the same answer makes the same files.

    Args:
        result: The server's result.
        limit: Largest file, in bytes.
    """
    received: dict[str, bytes] = {}
    blocks = list(result.content)
    for place, block in enumerate(blocks):
        ending = ENDINGS.get(block.mime_type) if isinstance(block, ImageContent) else None
        if not isinstance(block, ImageContent) or ending is None:
            continue
        try:
            data = b64decode(block.data, validate=True)
        except (binascii.Error, ValueError):
            continue
        if len(data) > limit:
            continue
        path = f"{PLACE}/{hashlib.sha256(data).hexdigest()[:16]}.{ending}"
        received[path] = data
        text = f"[{block.type} {block.mime_type}, {len(data):,} bytes, in {path}]"
        blocks[place] = TextContent(type="text", text=text)
    return result.model_copy(update={"content": blocks}), received


def put_result_images(files: Files, received: dict[str, bytes]) -> Files:
    """Return the workspace with the images."""
    for path, data in received.items():
        files = files.write(path, data)
    return files
