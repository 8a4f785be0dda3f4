"""A prompt cache by the documented rules of providers: reads and writes are computed."""

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

LEAST = 1024
"""Tokens of the shortest prefix that is cached."""
CONSIDERED = 80
"""Breakpoints that OpenAI searches for a match, the latest ones."""
WRITTEN = 3
"""Explicit breakpoints that it writes in addition to the implicit one."""
LOOKBACK = 20
"""Blocks before a mark that Anthropic searches for a match."""
MARKS = ("prompt_cache_breakpoint", "cache_control")


@dataclass(frozen=True)
class Block:
    """A part of a prompt, in order: the tools, a message, or an item."""

    text: str
    mark: str = ""
    by_model: bool = False


@dataclass
class PromptCache:
    """The prompts that one provider has cached."""

    style: str = "breakpoint"
    stored: set[tuple[str, str]] = field(default_factory=set)
    """Key of the cache and hash of the prefix."""
    read: int = 0
    sent: int = 0
    written: int = 0
    shares: list[float] = field(default_factory=list)
    """For each request, the share that was read."""

    def take(self, blocks: list[Block], key: str) -> dict[str, int]:
        """Account for a request; return its tokens, those read from the cache and those written to
        it.
        """
        ends, hashes = _prefixes(blocks)
        marked = [
            n for n, block in enumerate(blocks) if block.mark == MARKS[self.style != "breakpoint"]
        ]
        if self.style == "breakpoint":
            implicit = max(n for n, block in enumerate(blocks) if not block.by_model)
            sought = sorted({*marked, implicit})[-CONSIDERED:]
            new = sorted(
                {*[n for n in marked if (key, hashes[n]) not in self.stored][-WRITTEN:], implicit}
            )
        else:
            assert len(marked) <= 4, f"{len(marked)} marks"
            sought = sorted({n - back for n in marked for back in range(LOOKBACK) if n >= back})
            new = marked
        hits = [ends[n] for n in sought if ends[n] >= LEAST and (key, hashes[n]) in self.stored]
        read = max(hits, default=0)
        put = [n for n in new if ends[n] >= LEAST]
        self.stored |= {(key, hashes[n]) for n in put}
        written = max(0, max((ends[n] for n in put), default=0) - read)
        self.sent, self.read, self.written = (
            self.sent + ends[-1], self.read + read, self.written + written
        )  # fmt: skip
        self.shares.append(read / ends[-1])
        return {"sent": ends[-1], "read": read, "written": written}


def blocks_of(request: dict[str, Any]) -> list[Block]:
    """Return the prompt of a request of either API."""
    tools = Block(json.dumps(request.get("tools") or []))
    return [tools, *map(_block, request.get("input") or request["messages"])]


def _block(message: dict[str, Any]) -> Block:
    parsed = dict(message)
    mark = ""
    for key in ("content", "output"):
        if isinstance(parts := parsed.get(key), list):
            mark = next((name for name in MARKS for part in parts if name in part), mark)
            parsed[key] = "".join(str(part.get("text", "")) for part in parts)
    by_model = parsed.get("role") == "assistant" or parsed.get("type") in (
        "function_call",
        "reasoning",
    )
    return Block(json.dumps(parsed, sort_keys=True), mark, by_model)


def _prefixes(blocks: list[Block]) -> tuple[list[int], list[str]]:
    """Return the end of each block in tokens of four characters, and the hash of everything up to
    there.
    """
    ends, hashes, size, digest = [], [], 0, hashlib.sha256()
    for block in blocks:
        size += len(block.text)
        digest.update(block.text.encode())
        ends.append(size // 4)
        hashes.append(digest.hexdigest())
    return ends, hashes
