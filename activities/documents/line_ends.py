"""Words that were divided at line ends."""

import re

# Before these words, a hyphen at a line end stands for a part of a later word: "Ein-\nund Ausgang".
_HANGING = r"(?!\s*(?:und|oder|bzw|sowie|bis|and|or)\b)"
_HYPHENATED = re.compile(rf"(\w)(?:\u00ad|[-\u2010]{_HANGING})[^\S\n]*\n\s*(?=[a-zäöüß])")
_HYPHEN_KEPT = re.compile(rf"(\w[-\u2010\u2011]){_HANGING}[^\S\n]*\n\s*(?=\w)")


def fold_line_ends(text: str) -> str:
    """Join all lines into one, and words that were divided at line ends."""
    return " ".join(_HYPHEN_KEPT.sub(r"\1", _HYPHENATED.sub(r"\1", text)).split())
