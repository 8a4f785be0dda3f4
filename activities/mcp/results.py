"""What a server answered, as text for the model."""

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

from activities.text.plain import cut_middle, plain

MOST_CHARACTERS = 1_000_000
"""Of a result: what is beyond is never shown, and need not be kept."""
SILENT = "(the tool answered nothing)"


def text_of(result: CallToolResult) -> str:
    """The result's parts one after the other; of what is no text, what it is."""
    parts = [_part(block) for block in result.content]
    if result.structured_content is not None and not _said(result.structured_content, parts):
        parts.append(json.dumps(result.structured_content, ensure_ascii=False))
    text = plain("\n\n".join(part for part in parts if part.strip())) or SILENT
    return cut_middle(text, MOST_CHARACTERS, "[{gone} characters are left out]")


def _said(structured: Any, parts: list[str]) -> bool:
    """Whether the parts hold the same, as the protocol wants for clients of old: in one of them or
    an item in each. Servers put what is no object under a key: Python's under `result`, the
    reference one for files under `content`."""
    if not parts:
        return False
    read = [_read(part) for part in parts]
    held = [structured]
    if isinstance(structured, dict) and len(structured) == 1:
        held += structured.values()
    return any(value in found or value == found for value in held for found in (parts, read))


def _read(part: str) -> Any:
    try:
        return json.loads(part)
    except (ValueError, RecursionError):
        return part


def _part(block: ContentBlock) -> str:
    match block:
        case TextContent():
            return block.text
        case ImageContent() | AudioContent():
            size = len(block.data) * 3 // 4
            return f"[{block.type} {block.mime_type}, {size:,} bytes: not shown]"
        case ResourceLink():
            return f"[resource {block.uri}: {block.description or block.name}]"
        case EmbeddedResource():
            held = block.resource
            if isinstance(held, TextResourceContents):
                return held.text
            return f"[resource {held.uri}, {len(held.blob) * 3 // 4:,} bytes: not shown]"
