"""Convert a server's answer to text for the model, and its images to files of the workspace."""

import binascii
import hashlib
import json
from base64 import b64decode
from typing import Any

from mcp.types import (
    AudioContent,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)

from activities.checkpoints import Files
from activities.text.safe_text import cut_middle, replace_surrogates

MAX_CHARACTERS = 1_000_000
"""Most characters of a result; the rest is never shown, and so not stored."""
NO_ANSWER = "(the tool answered nothing)"


def result_text(result: CallToolResult) -> str:
    """Return the result's parts in order, with a description of each part that is not text."""
    parts = [_block_text(block) for block in result.content]
    if result.structured_content is not None and not _repeats_structured(
        result.structured_content, parts
    ):
        parts.append(json.dumps(result.structured_content, ensure_ascii=False))
    text = replace_surrogates("\n\n".join(part for part in parts if part.strip())) or NO_ANSWER
    return cut_middle(text, MAX_CHARACTERS, "[{gone} characters are left out]")


def _repeats_structured(structured: Any, parts: list[str]) -> bool:
    """Whether the parts repeat the structured result, as the protocol requires for older clients.

    They may hold it in one part, or an item in each. Servers put a non-object under a key: Python's
    SDK under `result`, the reference file server under `content`.
    """
    if not parts:
        return False
    read = [_parse_mcp_result_part(part) for part in parts]
    candidates = [structured]
    if isinstance(structured, dict) and len(structured) == 1:
        candidates += structured.values()
    return any(value in texts or value == texts for value in candidates for texts in (parts, read))


def _parse_mcp_result_part(part: str) -> Any:
    try:
        return json.loads(part)
    except (ValueError, RecursionError):
        return part


def _block_text(block: ContentBlock) -> str:
    match block:
        case TextContent():
            return block.text
        case ImageContent() | AudioContent():
            size = len(block.data) * 3 // 4
            return f"[{block.type} {block.mime_type}, {size:,} bytes: not shown]"
        case ResourceLink():
            return f"[resource {block.uri}: {block.description or block.name}]"
        case EmbeddedResource():
            resource = block.resource
            if isinstance(resource, TextResourceContents):
                return resource.text
            return f"[resource {resource.uri}, {len(resource.blob) * 3 // 4:,} bytes: not shown]"


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
    for path, data in received.items():
        files = files.write(path, data)
    return files
