"""The message of a commit: a subject, the full text and trailers."""

from collections.abc import Mapping, Sequence

from protocol.short_text import one_line, shorten_to_start

SUBJECT = 72


def commit_message(
    story: str, trailers: Mapping[str, str | Sequence[str]], *, has_subject: bool = False
) -> str:
    """A commit message: first sentence, the text unless it is just that, and trailers.

    Args:
        has_subject: Whether the first line was written as the subject, and stays as it is.
    """
    text = story.strip()
    opening, _, rest = text.partition("\n")
    first = opening.strip()
    if not has_subject or len(first) > SUBJECT:
        first = first.partition(". ")[0].strip().removesuffix(".")
    subject = first if len(first) <= SUBJECT else shorten_to_start(first, SUBJECT)
    if opening.strip() in (subject, f"{subject}."):
        text = rest.strip()
    parts = [subject, *([text] if text else [])]
    lines = [
        f"{name}: {one_line(value, 300)}"
        for name, values in trailers.items()
        for value in ([values] if isinstance(values, str) else values)
        if value
    ]
    return "\n\n".join([*parts, *(["\n".join(lines)] if lines else [])]) + "\n"
