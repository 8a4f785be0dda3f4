"""Writes the generated parts of the documentation: `make docs`.

A part stands in a Markdown file between `<!-- generated: NAME -->` and `<!-- end -->`; what
stands there is made from the code by the function of that name in `PARTS`. A test compares.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from scripts.docs import commands, configuration, modules, signals

ROOT = Path(__file__).parents[2]
PARTS: dict[str, Callable[[], str]] = {
    "agents": configuration.agents,
    "commands": commands.commands,
    "guards": configuration.guards,
    "keys": configuration.keys,
    "modules": modules.diagram,
    "project": signals.project,
    "signals": signals.signals,
    "start": signals.start,
    "status": signals.status_example,
    "tools": configuration.tools,
}
_PART = re.compile(r"(<!-- generated: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def pages() -> list[Path]:
    """Every page of the documentation, the README first."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def renewed(text: str) -> str:
    """A page's text with its generated parts made anew."""
    return _PART.sub(lambda part: f"{part[1]}{PARTS[part[2]]()}{part[3]}", text)


def main() -> None:
    """Write every page whose generated parts are out of date."""
    for page in pages():
        text = page.read_text(encoding="utf-8")
        if (new := renewed(text)) != text:
            page.write_text(new, encoding="utf-8")
            print(page.relative_to(ROOT))


if __name__ == "__main__":
    main()
