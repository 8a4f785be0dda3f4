"""How the rehearsal model reads a request."""

from typing import Any

import pytest

from rehearsal.request_view import request_message_text


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("tea", "tea"),
        (None, ""),
        ([{"type": "text", "text": "tea", "prompt_cache_breakpoint": {"mode": "explicit"}}], "tea"),
        ([{"type": "text", "text": "tea"}, {"type": "image_url", "image_url": {}}], "tea"),
    ],
)
def test_text_in_parts_is_read_like_any_other(content: Any, text: str) -> None:
    assert request_message_text({"role": "tool", "content": content}) == text
