"""Convert a server's answer to text for the model."""

from __future__ import annotations

import json
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
