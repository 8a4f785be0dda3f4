"""What a repository's own `AGENTS.md` files say to agents."""

import posixpath

import pygit2
from pygit2.enums import FileMode

from activities.text.safe_text import replace_surrogates

NAMES = ("AGENTS.override.md", "AGENTS.md")
MOST_BYTES = 32 * 1024
"""All files together."""
MOST_LINKS = 5
CUT = "\n[cut here: the files have more than 32 KiB together]"


def read_agents_md(tree: pygit2.Tree, subfolder: str) -> tuple[str, list[str]]:
    """Return texts by path, the farthest cut if they are too long, and notes for people.

    They are guidance for agents, from the repository's root down to the start folder. Each folder
    counts once, with `AGENTS.override.md` before `AGENTS.md`. Nearer files come later and take
    precedence (https://agents.md; the override and the limit follow Codex).
    """
    folders = [""]
    for part in subfolder.split("/") if subfolder else []:
        folders.append(posixpath.join(folders[-1], part))
    texts: list[str] = []
    notes: list[str] = []
    bytes_left = MOST_BYTES
    for folder in reversed(folders):
        for name in NAMES:
            path = posixpath.join(folder, name)
            raw = _read_agents_md_file(tree, path)
            if raw is None or not raw.strip():
                continue
            if len(raw) > bytes_left:
                notes.append(f"{path} is cut: at most {MOST_BYTES:,} bytes of guidance are shown.")
            if bytes_left > 0:
                text = replace_surrogates(raw[:bytes_left].decode(errors="replace")).strip()
                texts.append(f"## {path}\n\n{text}{CUT if len(raw) > bytes_left else ''}")
            bytes_left = max(0, bytes_left - len(raw))
            break
    return "\n\n".join(reversed(texts)), notes[::-1]


def _read_agents_md_file(tree: pygit2.Tree, path: str) -> bytes | None:
    for _ in range(MOST_LINKS):
        try:
            entry = tree[path]
        except KeyError:
            return None
        if not isinstance(entry, pygit2.Blob):
            return None
        if entry.filemode != FileMode.LINK:
            return bytes(entry.data)
        target = posixpath.join(posixpath.dirname(path), entry.data.decode(errors="replace"))
        path = posixpath.normpath(target)
        if path.startswith(("/", "..")):
            return None
    return None
