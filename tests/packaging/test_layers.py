"""No package imports from a layer above it, wherever in a module the import is."""

import ast
from functools import cache

from scripts.docs.modules import ROOT, imported_modules

LAYERS = [
    "protocol",
    "config",
    "activities.text activities.signatures",
    "rehearsal",
    "activities.redaction",
    "activities.checkpoints",
    "activities.runtime",
    "activities.documents",
    "activities.commands",
    "activities.job",
    "activities.toolkit activities.projects",
    "activities.source_repository",
    "activities.stores",
    "activities.guards activities.model activities.phases activities.web",
    "activities.search activities.mcp activities.notifications",
    "activities.traces activities.forgetting activities.learning activities.preparation",
    "activities.tools",
    "activities.requirements",
    "activities.tool_calls",
    "activities.acceptance",
    "activities.tool_catalogue",
    "activities.steps",
    "activities.activity_catalogue",
    "workflows.runtime",
    "workflows.rules",
    "workflows.jobs",
    "workflows.projects workflows.trials",
    "workflows",
    "engine",
    "cli",
]
"""Lowest first; those on one line do not know each other."""
LATE = {("activities.toolkit.agent_tools", "activities.mcp")}
"""A server's tool is called by name, so that processes without servers load no client."""


TOP = {name.partition(".")[0] for line in LAYERS for name in line.split()}
PACKAGES = {name for line in LAYERS for name in line.split()}
LIBRARIES = {
    "activities.checkpoints": {"activities.redaction"},
    "activities.documents": {"activities.text", "activities.runtime"},
}
"""What these import besides the ground floor; both could leave the project as they are."""
GROUND_FLOOR = {
    *("protocol.data_model", "protocol.errors", "protocol.short_text"),
    *("protocol.git_address", "protocol.s3_address"),
}
KNOW_REQUIREMENTS = {
    *("activities.tool_catalogue", "cli.requirements", "cli.commands.requirements_command"),
    *("cli.commands.graph_command", "cli.checks.storage_checks"),
}
"""Where the requirements are registered, and their commands and checks; the engine knows nothing of
them."""


def unit(module: str) -> str:
    parts = module.split(".")
    return ".".join(parts[:2]) if ".".join(parts[:2]) in PACKAGES else parts[0]


def test_the_packages_form_layers() -> None:
    level = {name: n for n, line in enumerate(LAYERS) for name in line.split()}
    upward = set()
    for module, name in imports():
        own, other = unit(module), unit(name)
        if other not in level or own not in level or own == other:
            continue
        if level[own] <= level[other] and (module, other) not in LATE:
            upward.add(f"{module} imports {name}")
    assert not upward


def test_libraries_know_nothing_of_the_product() -> None:
    foreign = {
        f"{module} imports {name}"
        for module, name in imports()
        if (library := unit(module)) in LIBRARIES
        and name.partition(".")[0] in TOP
        and name not in GROUND_FLOOR
        and not any(name.startswith(known) for known in {library, *LIBRARIES[library]})
    }
    assert not foreign


def test_the_engine_knows_nothing_of_requirements() -> None:
    aware = {
        f"{module} imports {name}"
        for module, name in imports()
        if unit(name) == "activities.requirements" != unit(module)
        and not any(module.startswith(known) for known in KNOW_REQUIREMENTS)
    }
    assert not aware


@cache
def imports() -> list[tuple[str, str]]:
    """Return pairs of modules of which the first imports the second."""
    return [
        (".".join(path.relative_to(ROOT).with_suffix("").parts), name)
        for top in sorted(TOP)
        for path in (ROOT / top).rglob("*.py")
        for name in imported_modules(ast.parse(path.read_text(encoding="utf-8")))
    ]


def test_every_package_has_its_layer() -> None:
    level = {name for line in LAYERS for name in line.split()}
    packages = {path.parent.name for path in (ROOT / "activities").glob("*/__init__.py")}
    assert {f"activities.{name}" for name in packages} <= level
