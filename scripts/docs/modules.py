"""Draws which package imports which, from the code."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
TOP = (
    "starter",
    "worker",
    "longhaul_agents",
    "cli",
    "engine",
    "workflows",
    "activities",
    "rehearsal",
    "config",
    "protocol",
)
SAID = {
    "starter": "starter.py",
    "worker": "worker.py",
    "longhaul_agents": "longhaul_agents<br/>commands as installed",
    "cli": "cli<br/>the commands",
    "engine": "engine<br/>connection, server, worker",
    "workflows": "workflows<br/>when: deterministic",
    "activities": "activities<br/>what: the world",
    "rehearsal": "rehearsal<br/>a model that needs no key",
    "config": "config<br/>agents, prompts, limits",
    "protocol": "protocol<br/>data both sides know",
}


def module_diagram() -> str:
    """Return a Mermaid diagram with an arrow from each package to those it imports."""
    lines = ["```mermaid", "flowchart TD"]
    lines += [f'    {name}["{SAID[name]}"]' for name in TOP]
    lines += [f"    {importer} --> {importee}" for importer, importee in sorted(package_imports())]
    return "\n".join([*lines, "```", ""])


def package_imports() -> set[tuple[str, str]]:
    """Return pairs of packages of which the first imports the second."""
    pairs = set()
    for name in TOP:
        folder = ROOT / name
        files = folder.rglob("*.py") if folder.is_dir() else [ROOT / f"{name}.py"]
        for file in files:
            for module in imported_modules(ast.parse(file.read_text(encoding="utf-8"))):
                package = module.partition(".")[0]
                if package in TOP and package != name:
                    pairs.add((name, package))
    return pairs


def imported_modules(tree: ast.AST) -> Iterator[str]:
    """Yield the imported modules of a file, including imports within functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            yield node.module or ""
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.Call):
            # `importlib.import_module(…)` or `import_module(…)`.
            called = getattr(node.func, "attr", None) or getattr(node.func, "id", None)
            argument = node.args[0] if node.args else None
            if called == "import_module" and isinstance(argument, ast.Constant):
                yield str(argument.value)
