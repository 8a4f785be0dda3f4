"""Text that can be sent and stored."""


def plain(text: str) -> str:
    """The text with a question mark for each lone surrogate.

    JSON escapes, YAML escapes and file names that are not UTF-8 all give them, and no payload can
    hold one: a result with one in it would fail to be sent, attempt after attempt.
    """
    return text.encode("utf-8", "replace").decode()
