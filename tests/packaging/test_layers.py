"""No package imports from a layer above it, wherever in a module the import is."""

from __future__ import annotations

import ast

from scripts.docs.modules import ROOT, imported_modules

LAYERS = [
    "protocol",
    "config",
    "activities.text",
    "rehearsal",
    "activities.redaction",
    "activities.checkpoints",
    "activities.runtime",
    "activities.commands",
    "activities.job",
    "activities.toolkit activities.documents activities.projects",
    "activities.source_repository",
    "activities.guards activities.model activities.phases activities.stores activities.web",
    "activities.search activities.mcp activities.notifications",
    "activities.traces activities.forgetting activities.learning activities.preparation",
    "activities.tools",
    "activities.requirements",
    "activities.tool_calls",
    "activities.acceptance",
    "activities.tool_catalogue",
    "activities.steps",
    "activities.activity_catalogue",
    "workflows",
    "engine",
    "cli",
]
"""Lowest first; those on one line do not know each other."""
LATE = {("activities.toolkit.remote_tools", "activities.mcp")}
"""A server's tool is called by name, so that processes without servers load no client."""


def unit(module: str) -> str:
    parts = module.split(".")
    return ".".join(parts[:2]) if parts[0] == "activities" else parts[0]


def test_the_packages_form_layers() -> None:
    level = {name: n for n, line in enumerate(LAYERS) for name in line.split()}
    upward = set()
    for top in {name.partition(".")[0] for name in level}:
        for path in (ROOT / top).rglob("*.py"):
            module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            for name in imported_modules(ast.parse(path.read_text(encoding="utf-8"))):
                own, other = unit(module), unit(name)
                if other not in level or own not in level or own == other:
                    continue
                if level[own] <= level[other] and (module, other) not in LATE:
                    upward.add(f"{module} imports {name}")
    assert not upward


def test_every_package_has_its_layer() -> None:
    level = {name for line in LAYERS for name in line.split()}
    packages = {path.parent.name for path in (ROOT / "activities").glob("*/__init__.py")}
    assert {f"activities.{name}" for name in packages} <= level
