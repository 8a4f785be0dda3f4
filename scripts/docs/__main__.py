"""Writes the generated parts of the documentation: `make docs`.

A part is the text between `<!-- generated: NAME -->` and `<!-- end -->` in a Markdown file; the
function of that name in `PARTS` generates it. A test checks that the parts are up to date.
"""

import re
from collections.abc import Callable
from pathlib import Path

from scripts.docs import command_reference, configuration_reference, modules, signals

ROOT = Path(__file__).parents[2]
PARTS: dict[str, Callable[[], str]] = {
    "agents": configuration_reference.agents_reference_table,
    "commands": command_reference.commands,
    "guards": configuration_reference.guard_keys_reference_table,
    "keys": configuration_reference.agent_keys_reference_table,
    "modules": modules.module_diagram,
    "project": signals.project_start_keys,
    "signals": signals.signals,
    "start": signals.start_keys,
    "status": signals.status_example,
    "tools": configuration_reference.tools_reference_table,
}
_PART = re.compile(r"(<!-- generated: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def documentation_pages() -> list[Path]:
    """Return every page of the documentation, the README first."""
    first = ("README.md", "CONTRIBUTING.md", "AGENTS.md", "skills/longhaul/SKILL.md")
    return [*(ROOT / name for name in first), *sorted((ROOT / "docs").glob("**/*.md"))]


def regenerate_docs_page(text: str) -> str:
    """Return a page's text with its parts generated anew."""
    return _PART.sub(lambda part: f"{part[1]}{PARTS[part[2]]()}{part[3]}", text)


def regenerate_docs() -> None:
    """Write every page whose generated parts are out of date."""
    for page in documentation_pages():
        text = page.read_text(encoding="utf-8")
        if (new := regenerate_docs_page(text)) != text:
            page.write_text(new, encoding="utf-8")
            print(page.relative_to(ROOT))


if __name__ == "__main__":
    regenerate_docs()
