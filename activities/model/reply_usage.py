"""Read what a reply has used from what the endpoint reports, or estimate it."""

from __future__ import annotations

from protocol.usage import Usage

MAX_TOKENS = 10**9
"""A larger token count is not believed."""
CHARACTERS_A_TOKEN = 4
"""Estimated characters per token, for endpoints that count nothing."""


def read_reply_usage(reported: object, sent: int, received: int) -> Usage:
    """Return the usage that the endpoint reports, else an estimate, so that limits always hold.

    Args:
        reported: `usage` of the reply, as it came.
        sent: Bytes of the request.
        received: Characters of the reply.
    """
    details = None
    if isinstance(reported, dict):
        details = reported.get("prompt_tokens_details") or reported.get("input_tokens_details")
    return Usage(
        model_calls=1,
        prompt_tokens=read_token_count(reported, "prompt_tokens", "input_tokens")
        or sent // CHARACTERS_A_TOKEN,
        completion_tokens=read_token_count(reported, "completion_tokens", "output_tokens")
        or received // CHARACTERS_A_TOKEN,
        cached_tokens=read_token_count(details, "cached_tokens")
        or read_token_count(reported, "cache_read_input_tokens"),
        written_tokens=read_token_count(details, "cache_write_tokens", "cache_creation_tokens")
        or read_token_count(reported, "cache_creation_input_tokens"),
    )


def read_token_count(reported: object, *names: str) -> int:
    """Return the count under the first of these names; 0 if it is no count."""
    for name in names:
        count = reported.get(name) if isinstance(reported, dict) else None
        if isinstance(count, int) and 0 < count < MAX_TOKENS:
            return count
    return 0
